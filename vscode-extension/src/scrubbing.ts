/** What must not be in a text that leaves the machine, and what stands there instead. */
export interface Private {
  readonly home: string;
  readonly user: string;
  readonly folders: readonly string[];
}

const SECRETS: readonly (readonly [RegExp, string])[] = [
  [/\bsk-[A-Za-z0-9_-]{8,}/g, '<key>'],
  [/\b(gh[pousr]_|github_pat_|hf_|xox[abp]-|AKIA)[A-Za-z0-9_-]{8,}/g, '<key>'],
  [/\b(authorization:?\s+\w+|bearer|x-api-key:?)\s+\S+/gi, '$1 <key>'],
  [/\b(\w*(?:key|token|secret|password)\w*)(["']?\s*[=:]\s*["']?)[^\s"',;]{6,}/gi, '$1$2<key>'],
  [/:\/\/[^\s/@:]+:[^\s/@]+@/g, '://<key>@'],
  [/[\w.+-]+@[\w-]+\.[\w.]+/g, '<address>'],
];

/** The text without keys, mail addresses, the user's name, and the names of their folders. */
export function scrub(text: string, known: Private): string {
  const folders = known.folders.map((folder, place): readonly [string, string] => [folder, `<workspace ${place + 1}>`]);
  const paths = [...folders, [known.home, '~'] as const].filter(([path]) => path.length > 1);
  let scrubbed = text;
  for (const [path, instead] of paths.sort(([a], [b]) => b.length - a.length)) {
    scrubbed = scrubbed.replaceAll(path, instead);
  }
  for (const [pattern, instead] of SECRETS) {
    scrubbed = scrubbed.replaceAll(pattern, instead);
  }
  return known.user.length > 2
    ? scrubbed.replaceAll(new RegExp(`\\b${escaped(known.user)}\\b`, 'g'), '<user>')
    : scrubbed;
}

function escaped(text: string): string {
  return text.replaceAll(/[.*+?^${}()|[\]\\]/g, '\\$&');
}
