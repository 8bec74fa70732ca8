import type { ClassRef } from '../protocol';

/** Documents that show what accepting would make of a file, and the kernel that it would use. */
export const REVIEW_SCHEME = 'cutesmith-review';

export type Part = 'after' | 'kernel';

/** What a review document is of. */
export interface Place {
  readonly target: ClassRef;
  readonly part: Part;
}

/** The query of a review document's URI. */
export function queryOf({ target, part }: Place): string {
  return JSON.stringify({ uri: target.uri, class: target.class, part });
}

/** Reads a query back; undefined for what is none of ours. */
export function placeIn(query: string): Place | undefined {
  try {
    const value = JSON.parse(query) as Partial<Record<'uri' | 'class' | 'part', unknown>> | null;
    const { uri, class: name, part } = value ?? {};
    if (typeof uri === 'string' && typeof name === 'string' && (part === 'after' || part === 'kernel')) {
      return { target: { uri, class: name }, part };
    }
  } catch {
    // not JSON
  }
  return undefined;
}
