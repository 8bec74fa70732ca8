import type { CheckRef, ClassRef } from './protocol';

/** A command that the server offers in a lens or a code action. */
export interface Offer {
  readonly title: string;
  readonly line: number;
  readonly arguments: readonly unknown[] | undefined;
}

/** The classes that these offers are for, each once, in the order of the file. */
export function classesIn(offers: readonly Offer[]): readonly { line: number; target: ClassRef }[] {
  const found = new Map<string, { line: number; target: ClassRef }>();
  for (const { line, arguments: args } of [...offers].sort((a, b) => a.line - b.line)) {
    const target = args?.[0];
    if (isClassRef(target) && !found.has(target.class)) {
      found.set(target.class, { line, target: { uri: target.uri, class: target.class } });
    }
  }
  return [...found.values()];
}

/** The offers that name a kernel file to validate. */
export function checksIn(offers: readonly Offer[]): readonly { title: string; target: CheckRef }[] {
  return offers.flatMap(({ title, arguments: args }) => {
    const target = args?.[0];
    return isClassRef(target) && isCheckRef(target) ? [{ title, target }] : [];
  });
}

export function isClassRef(value: unknown): value is ClassRef {
  return typeof value === 'object' && value !== null && 'uri' in value && 'class' in value;
}

function isCheckRef(value: ClassRef): value is CheckRef {
  return 'candidate' in value;
}
