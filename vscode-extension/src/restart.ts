/** Runs one action at a time; requests made while it runs collapse into a single further run. */
export class Coalesced {
  private running: Promise<void> | undefined;
  private again = false;

  constructor(private readonly action: () => Promise<void>) {}

  /** Resolves once a run that began after this request has ended; rejects if that run did. */
  request(): Promise<void> {
    if (this.running) {
      this.again = true;
      return this.running;
    }
    this.running = this.drain().finally(() => {
      this.running = undefined;
    });
    return this.running;
  }

  private async drain(): Promise<void> {
    let more = true;
    while (more) {
      this.again = false;
      const failure = await this.action().then(
        () => undefined,
        (error: unknown) => ({ error }),
      );
      more = this.wasAskedAgain();
      if (failure && !more) {
        throw failure.error;
      }
    }
  }

  private wasAskedAgain(): boolean {
    return this.again;
  }
}

/** How many crashes in how long a time are answered with a restart. */
export class CrashBudget {
  private crashes: number[] = [];

  constructor(
    private readonly allowed: number,
    private readonly windowMs: number,
    private readonly now: () => number = Date.now,
  ) {}

  /** Counts a crash; true if the server may be started again. */
  spend(): boolean {
    const since = this.now() - this.windowMs;
    this.crashes = [...this.crashes.filter((time) => time > since), this.now()];
    return this.crashes.length <= this.allowed;
  }

  reset(): void {
    this.crashes = [];
  }
}
