const POLICY = /(<meta http-equiv="Content-Security-Policy" content=")([^"]*)(">)/;

/** Tells the extension which line of the kernel was asked for; everything else of the page stays as it is. */
const SCRIPT = `
const vscode = acquireVsCodeApi();
document.addEventListener('click', (event) => {
  const link = event.target.closest('a[data-line]');
  if (link) {
    event.preventDefault();
    vscode.postMessage({ line: Number(link.dataset.line) });
  }
});
const seen = vscode.getState();
if (seen) {
  window.scrollTo(0, seen.top);
  document.querySelectorAll('details').forEach((each, index) => (each.open = seen.open.includes(index)));
}
const remember = () => {
  const open = [...document.querySelectorAll('details')].flatMap((each, index) => (each.open ? [index] : []));
  vscode.setState({ top: window.scrollY, open });
};
window.addEventListener('scroll', remember);
document.addEventListener('toggle', remember, true);
`;

/**
 * The server's page with the one script that a webview needs, and leave for that one alone to run.
 * @throws if the page has no policy of its own: then it is not what the server makes.
 */
export function withScript(page: string, nonce: string): string {
  if (!POLICY.test(page)) {
    throw new Error('The report has no content security policy.');
  }
  const allowed = page.replace(
    POLICY,
    (_, before: string, policy: string, after: string) => `${before}${policy}; script-src 'nonce-${nonce}'${after}`,
  );
  const end = allowed.lastIndexOf('</body>');
  return `${allowed.slice(0, end)}<script nonce="${nonce}">${SCRIPT}</script>${allowed.slice(end)}`;
}

/** The line that a message of the page asks for; undefined for anything else. */
export function lineIn(message: unknown): number | undefined {
  if (typeof message !== 'object' || message === null || !('line' in message)) {
    return undefined;
  }
  const { line } = message;
  return typeof line === 'number' && Number.isInteger(line) && line >= 1 ? line : undefined;
}
