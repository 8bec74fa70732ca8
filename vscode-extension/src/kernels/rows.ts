import { basename } from 'node:path';
import { fileURLToPath } from 'node:url';
import type { CandidateRow, ModuleRow, State } from '../protocol';

/** An entry of the Kernels view. */
export type Row =
  | { readonly kind: 'module'; readonly module: ModuleRow }
  | { readonly kind: 'candidate'; readonly module: ModuleRow; readonly candidate: CandidateRow };

/** How a row looks: `icon` is a codicon, `color` a theme colour. `context` decides which actions it offers. */
export interface Look {
  readonly label: string;
  readonly description: string;
  readonly icon: string;
  readonly color: string | undefined;
  readonly context: string;
  readonly spoken: string;
}

interface StateLook {
  readonly words: string;
  readonly icon: string;
  readonly color?: string;
}

const GREEN = 'testing.iconPassed';
const RED = 'testing.iconFailed';
const YELLOW = 'list.warningForeground';

const STATES: Readonly<Record<State, StateLook>> = {
  idle: { words: 'no kernel yet', icon: 'circle-outline' },
  running: { words: 'running', icon: 'loading~spin' },
  paused: { words: 'paused', icon: 'debug-pause' },
  ready: { words: 'on offer', icon: 'sparkle', color: GREEN },
  compiled: { words: 'on offer', icon: 'sparkle', color: YELLOW },
  failed: { words: 'no kernel', icon: 'error', color: RED },
  accepted: { words: 'in use', icon: 'pass-filled', color: GREEN },
  stale: { words: 'out of date', icon: 'warning', color: YELLOW },
  cancelled: { words: 'cancelled', icon: 'circle-slash' },
  reference: { words: 'reference to approve', icon: 'question', color: YELLOW },
};

export function lookOf(row: Row, severalFiles: boolean): Look {
  return row.kind === 'module' ? moduleLook(row.module, severalFiles) : candidateLook(row.candidate);
}

function moduleLook(module: ModuleRow, severalFiles: boolean): Look {
  const { words, icon, color } = STATES[module.state];
  const news = module.state === 'running' ? joined(': ', module.stage, module.message) : module.message;
  const file = severalFiles ? fileName(module.uri) : '';
  return {
    label: module.class,
    description: joined(' · ', words, news, file),
    icon,
    color,
    context: `module:${module.state}`,
    spoken: joined(', ', module.class, words, news, file && `in ${file}`),
  };
}

function candidateLook(candidate: CandidateRow): Look {
  const { icon, color, words } = verdictOf(candidate);
  const precision = candidate.precision && `precision ${candidate.precision}`;
  const origin = { recipe: 'recipe', llm: 'model', user: 'yours' }[candidate.origin] ?? candidate.origin;
  const standing = candidate.isAccepted ? 'in use' : candidate.isBest ? 'best' : '';
  return {
    label: candidate.id.slice(0, 7),
    description: joined(' · ', standing, candidate.headline, candidate.ok === false ? '' : precision, origin),
    icon,
    color,
    context: `candidate:${candidate.isBest ? 'best' : 'other'}`,
    spoken: joined(', ', `candidate ${candidate.id.slice(0, 7)}`, words, standing, candidate.headline, precision),
  };
}

function verdictOf(candidate: CandidateRow): StateLook {
  if (candidate.ok === false) {
    return { words: `failed at ${candidate.stage}`, icon: 'error', color: RED };
  }
  if (candidate.ok === null) {
    return { words: `compiled, not run`, icon: 'package', color: YELLOW };
  }
  return { words: 'right', icon: candidate.isBest ? 'star-full' : 'pass', color: GREEN };
}

/** The candidates of a module, the best first. */
export function candidatesOf(module: ModuleRow): Row[] {
  const sorted = [...module.candidates].sort((a, b) => Number(b.isBest) - Number(a.isBest));
  return sorted.map((candidate) => ({ kind: 'candidate', module, candidate }));
}

/** Stable between answers of the server: what is selected and unfolded stays so. */
export function idOf(row: Row): string {
  const module = `${row.module.uri}#${row.module.class}`;
  return row.kind === 'module' ? module : `${module}#${row.candidate.id}`;
}

/** What the view may be limited to, and the states that belong to it. */
export const FILTERS: Readonly<Record<string, readonly State[]>> = {
  'To review': ['ready', 'compiled', 'reference'],
  'At work': ['running', 'paused'],
  'In use': ['accepted'],
  'Needs attention': ['failed', 'stale'],
  'No kernel': ['idle', 'cancelled'],
};

/** The modules that a filter lets through; all of them without one. */
export function filtered(modules: readonly ModuleRow[], filter: string | undefined): readonly ModuleRow[] {
  const states = filter === undefined ? undefined : (FILTERS[filter] ?? []);
  return modules.filter((module) => states?.includes(module.state) ?? true);
}

export function waitingForReview(modules: readonly ModuleRow[]): number {
  return filtered(modules, 'To review').length;
}

export function fileName(uri: string): string {
  return uri.startsWith('file:') ? basename(fileURLToPath(uri)) : uri;
}

function joined(separator: string, ...parts: readonly (string | null | undefined)[]): string {
  return parts.filter((part) => part).join(separator);
}
