import type { ClassRef } from './protocol';

/** A command that the server put at a line of a file: in a lens or a code action. */
export interface PlacedCommand {
  readonly line: number;
  readonly arguments: readonly unknown[] | undefined;
}

/** The classes that commands of these lenses are for, each once, in the order of the file. */
export function classesIn(lenses: readonly PlacedCommand[]): readonly { line: number; target: ClassRef }[] {
  const found = new Map<string, { line: number; target: ClassRef }>();
  for (const { line, arguments: args } of [...lenses].sort((a, b) => a.line - b.line)) {
    const target = args?.[0];
    if (isClassRef(target) && !found.has(target.class)) {
      found.set(target.class, { line, target: { uri: target.uri, class: target.class } });
    }
  }
  return [...found.values()];
}

function isClassRef(value: unknown): value is ClassRef {
  return typeof value === 'object' && value !== null && 'uri' in value && 'class' in value;
}
