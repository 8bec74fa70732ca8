import type { JobState, ModulesResult } from './protocol';

/** The jobs of this session by class, kept from the server's notifications. */
export class JobList {
  private readonly jobs = new Map<string, JobState>();

  get all(): readonly JobState[] {
    return [...this.jobs.values()];
  }

  update(job: JobState): void {
    this.jobs.set(keyOf(job), job);
  }

  replace(jobs: readonly JobState[]): void {
    this.jobs.clear();
    for (const job of jobs) {
      this.update(job);
    }
  }
}

export interface Summary {
  /** With `$(icon)` markers, as the status bar takes it. */
  readonly text: string;
  readonly tooltip: string;
}

/** What else the server knows: where the latest job ran, and what models cost since it began (null: not known). */
export type Known = Pick<ModulesResult, 'device' | 'dollars'>;

/** What the status bar says of these jobs: the running one, else how many kernels wait for a decision. */
export function summarise(jobs: readonly JobState[], known: Known): Summary {
  const running = jobs.filter((job) => job.state === 'running');
  const waiting = jobs.filter((job) => ['ready', 'compiled', 'reference'].includes(job.state));
  const told = [...running, ...waiting].map(describe);
  const tooltip = [...(told.length > 0 ? told : ['No kernel is being made.']), ...facts(known)].join('\n');
  const spent = known.dollars !== null && known.dollars > 0 ? ` · ${money(known.dollars)}` : '';
  return { text: `${news(running, waiting.length)}${spent}`, tooltip };
}

function news(running: readonly JobState[], waiting: number): string {
  const [first] = running;
  if (first) {
    const others = running.length > 1 ? ` +${running.length - 1}` : '';
    return `$(sync~spin) CuteSmith: ${first.class}${others}`;
  }
  return waiting > 0 ? `$(check) CuteSmith: ${waiting} to review` : '$(chip) CuteSmith';
}

const DEVICES = new Map([
  ['emulated', 'the emulated device'],
  ['none', 'none: kernels are compiled only'],
]);

function facts({ device, dollars }: Known): readonly string[] {
  const where = device === null ? 'not known before the first job' : (DEVICES.get(device) ?? device);
  const spent = dollars === null ? 'not known (a model without a price was asked)' : money(dollars);
  return [`Device: ${where}`, `Spent on models since the start: ${spent}`];
}

function money(dollars: number): string {
  return `$${dollars.toFixed(2)}`;
}

function describe(job: JobState): string {
  return `${job.class}: ${job.message || job.state}`;
}

function keyOf(job: JobState): string {
  return `${job.uri}#${job.class}`;
}
