/** A question of the server, as a dialog shows it: the question itself, and what there is to know for the answer. */
export interface Question {
  readonly message: string;
  readonly detail: string;
}

/** The question ends with the first question mark. */
export function questionIn(text: string): Question {
  const end = text.indexOf('?') + 1;
  return end > 0
    ? { message: text.slice(0, end).trim(), detail: text.slice(end).trim() }
    : { message: text, detail: '' };
}

/** The answers that a dialog needs buttons for: it has a Cancel of its own. */
export function answersOf(titles: readonly string[]): readonly string[] {
  return titles.filter((title) => !['Cancel', 'Not now', "Don't trust"].includes(title));
}
