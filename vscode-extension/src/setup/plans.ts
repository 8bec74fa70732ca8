import { join } from 'node:path';

/** A way to get what is missing: the commands that it runs, in order, each as its words. */
export interface Plan {
  readonly label: string;
  readonly detail: string;
  readonly commands: readonly (readonly string[])[];
}

/** What can be missing in an interpreter, by the packages that bring it. */
export type Missing = 'cutesmith' | 'torch' | 'CuTe DSL';

const PACKAGES: Readonly<Record<Missing, readonly string[]>> = {
  cutesmith: ['cutesmith'],
  torch: ['torch'],
  'CuTe DSL': ['nvidia-cutlass-dsl', 'apache-tvm-ffi'],
};

/** The interpreter of an environment in this folder. */
export function interpreterIn(folder: string): string {
  return process.platform === 'win32' ? join(folder, 'Scripts', 'python.exe') : join(folder, 'bin', 'python');
}

/** The ways to install what is missing; `ownFolder` is where an environment for the server alone would be. */
export function plansFor(missing: readonly Missing[], interpreter: string, ownFolder: string): readonly Plan[] {
  const names = missing.flatMap((each) => PACKAGES[each]);
  const there: Plan = {
    label: `Install into ${interpreter}`,
    detail: "Your project's environment: what kernels are proved with.",
    commands: [[interpreter, '-m', 'pip', 'install', ...names]],
  };
  const apart: Plan = {
    label: 'Install CuteSmith into an environment of its own',
    detail: 'Leaves your environment as it is; modules still run in it, so it needs torch and the CuTe DSL.',
    commands: [
      [interpreter, '-m', 'venv', ownFolder],
      [interpreterIn(ownFolder), '-m', 'pip', 'install', 'cutesmith'],
    ],
  };
  return missing.includes('cutesmith') ? [there, apart] : [there];
}

/** The commands as one would type them. */
export function typed({ commands }: Plan): string {
  return commands.map((words) => words.map(quoted).join(' ')).join('\n');
}

function quoted(word: string): string {
  return /^[\w@%+=:,./\\-]+$/.test(word) ? word : `"${word.replaceAll('"', '\\"')}"`;
}
