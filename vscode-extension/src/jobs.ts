import type { JobState } from './protocol';

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

/** What the status bar says of these jobs: the running one, else how many kernels wait for a decision. */
export function summarise(jobs: readonly JobState[]): Summary {
  const running = jobs.filter((job) => job.state === 'running');
  const waiting = jobs.filter((job) => ['ready', 'compiled', 'reference'].includes(job.state));
  const tooltip = [...running, ...waiting].map(describe).join('\n') || 'No kernel is being made.';
  const [first] = running;
  if (first) {
    const others = running.length > 1 ? ` +${running.length - 1}` : '';
    return { text: `$(sync~spin) CuteSmith: ${first.class}${others}`, tooltip };
  }
  return {
    text: waiting.length > 0 ? `$(check) CuteSmith: ${waiting.length} to review` : '$(chip) CuteSmith',
    tooltip,
  };
}

function describe(job: JobState): string {
  return `${job.class}: ${job.message || job.state}`;
}

function keyOf(job: JobState): string {
  return `${job.uri}#${job.class}`;
}
