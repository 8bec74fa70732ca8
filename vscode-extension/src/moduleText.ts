const IMPORTED = /\btorch\b/;
const NAMED = /\bnn\b/;
const DERIVED = /^[ \t]*class[ \t]+\w+[^\n]*\(/m;

/**
 * Whether a Python text may hold an nn.Module class: it names torch and nn, and has a class with a base. Cheap, and never
 * wrong the other way: the server finds no module in a text that fails this.
 */
export function mayHoldModule(text: string): boolean {
  return IMPORTED.test(text) && NAMED.test(text) && DERIVED.test(text);
}
