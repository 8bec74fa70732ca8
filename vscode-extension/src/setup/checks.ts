import type { Packages, Probe } from '../interpreter';
import type { Missing } from './plans';

/** One thing that CuteSmith needs. */
export interface Check {
  readonly name: string;
  readonly ok: boolean;
  readonly found: string;
}

/** What an interpreter has of what is needed. */
export function checksOf(
  interpreter: string,
  reason: string,
  probe: Probe,
  ownServer: string | undefined,
): readonly Check[] {
  const place = { name: 'Interpreter', ok: true, found: `${interpreter} (${reason})` };
  if (!probe.ok && !probe.installable) {
    return [{ ...place, ok: false, found: probe.problem }];
  }
  const { torch, dsl } = packagesOf(probe);
  const server = probe.ok ? probe.origin : ownServer;
  return [
    place,
    { name: 'CuteSmith', ok: server !== undefined, found: server ?? 'not installed' },
    { name: 'PyTorch', ok: torch !== '', found: torch || 'not installed' },
    { name: 'CuTe DSL', ok: dsl !== '', found: dsl || 'not installed' },
  ];
}

/** What to install: in order, the server, then what the module's interpreter lacks. */
export function missingIn(probe: Probe, hasOwnServer: boolean): readonly Missing[] {
  if (!probe.ok) {
    return probe.installable && !hasOwnServer ? ['cutesmith'] : [];
  }
  const { torch, dsl } = probe.packages;
  return [...(torch === '' ? (['torch'] as const) : []), ...(dsl === '' ? (['CuTe DSL'] as const) : [])];
}

function packagesOf(probe: Probe): Packages {
  return probe.ok ? probe.packages : { torch: '', dsl: '' };
}
