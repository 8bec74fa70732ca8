import assert from 'node:assert/strict';
import * as vscode from 'vscode';
import type { LanguageClient } from 'vscode-languageclient/node';
import type { Hooks } from './client';
import { JobList } from './jobs';
import { type Launch, type Launcher, optionsWith } from './launch';
import type { Log } from './log';
import { errorText, logServerLine } from './log';
import type { Keys } from './model/keys';
import type { Notices } from './notices';
import { JOB_CHANGED, JOBS_REQUEST, type JobsResult, type JobState } from './protocol';
import { Coalesced, CrashBudget } from './restart';
import { ServerProcess } from './serverProcess';
import { SECTION } from './settings';
import type { ServerStatus } from './status';

const START_DEADLINE_MS = 60_000;
const STOP_GRACE_MS = 2_000;
const CRASHES_ALLOWED = 2;
const CRASH_WINDOW_MS = 3 * 60_000;

interface Running {
  readonly client: LanguageClient;
  readonly process: ServerProcess;
  readonly launch: Launch;
}

/** The one language server of this window: starts it, restarts it, and says once when it cannot. */
export class Server {
  readonly jobs = new JobList();
  /** Shows a kernel on offer; false where it cannot, and the server is to. */
  review: Hooks['review'] = () => Promise.resolve(false);
  private readonly changed = new vscode.EventEmitter<void>();
  readonly onDidChange = this.changed.event;
  private readonly restarts = new Coalesced(() => this.relaunch());
  private readonly crashes = new CrashBudget(CRASHES_ALLOWED, CRASH_WINDOW_MS);
  private current: ServerStatus = 'idle';
  private running: Running | undefined;
  private closing = false;
  private wanted = false;

  constructor(
    private readonly launcher: Launcher,
    private readonly keys: Keys,
    private readonly notices: Notices,
    private readonly log: Log,
  ) {}

  get status(): ServerStatus {
    return this.current;
  }

  get version(): string | undefined {
    return this.running?.client.initializeResult?.serverInfo?.version;
  }

  /** The interpreter that modules run in. */
  get interpreter(): string | undefined {
    return this.running?.launch.options.interpreter;
  }

  /** Starts the server, or starts it anew. Calls made meanwhile end in one more restart. */
  restart(reason: string): Promise<void> {
    this.wanted = true;
    this.log.info(`Starting the server: ${reason}.`);
    return this.restarts.request();
  }

  /** Starts the server the first time that there is something for it to do. */
  async need(reason: string): Promise<void> {
    if (!this.wanted) {
      await this.restart(reason);
    }
  }

  /** Restarts a server that was started before, whether it runs or could not. */
  async restartIfWanted(reason: string): Promise<void> {
    if (this.wanted) {
      await this.restart(reason);
    }
  }

  /** The answer to one of our own requests; undefined while no server runs. */
  async request<Result>(method: string, params: object): Promise<Result | undefined> {
    return this.status === 'running' ? this.running?.client.sendRequest<Result>(method, params) : undefined;
  }

  async restartIfInterpreterChanged(): Promise<void> {
    if (!this.wanted) {
      return;
    }
    const next = await this.launcher.interpreter();
    if (next.path !== this.running?.launch.options.interpreter) {
      await this.restart(`the interpreter is now ${next.path}`);
    }
  }

  /** Tells the running server its settings; those that decide which process runs need a restart instead. */
  async sendSettings(): Promise<void> {
    if (this.running) {
      const settings = { [SECTION]: optionsWith(this.running.launch.options.interpreter) };
      await this.running.client.sendNotification('workspace/didChangeConfiguration', { settings });
    }
  }

  async close(): Promise<void> {
    this.closing = true;
    await this.restarts.request();
    this.changed.dispose();
  }

  private async relaunch(): Promise<void> {
    await this.shutDown();
    if (this.closing) {
      return;
    }
    this.become('starting');
    try {
      await this.launch(await this.launcher.plan());
      this.become('running');
    } catch (error) {
      await this.shutDown();
      this.notices.cannotStart(error);
    }
  }

  private async launch(launch: Launch): Promise<void> {
    const onStderr = (line: string): void => {
      logServerLine(this.log, line);
    };
    const environment = await this.keys.environment();
    const process = await ServerProcess.start(launch.command, launch.cwd, onStderr, environment);
    // Loaded when a server is: the client is most of the extension's code, and many windows never need it.
    const { createClient } = await import('./client');
    const client = createClient(process, launch.options, this.log, {
      onClosed: () => void this.onClosed(process),
      review: (target) => this.review(target),
    });
    this.running = { client, process, launch };
    client.onNotification(JOB_CHANGED, (job: JobState) => {
      this.jobs.update(job);
      this.changed.fire();
    });
    await startWithin(START_DEADLINE_MS, client, process);
    this.jobs.replace((await client.sendRequest<JobsResult>(JOBS_REQUEST, {})).jobs);
    this.log.info(`The server is running: ${this.version ?? 'version unknown'}.`);
    if (vscode.workspace.isTrusted) {
      this.notices.lacks(launch.options.interpreter, launch.missing);
    }
  }

  /** The connection ended. While starting, `start` rejects and tells; here only what was running counts. */
  private async onClosed(process: ServerProcess): Promise<void> {
    if (this.current !== 'running' || this.running?.process !== process) {
      return;
    }
    const ending = await describeEnd(process);
    this.log.error(`The server stopped unexpectedly: ${ending}.`);
    if (this.crashes.spend()) {
      await this.restart('it stopped unexpectedly');
    } else {
      await this.shutDown();
      this.notices.keepsStopping(ending);
    }
  }

  private async shutDown(): Promise<void> {
    const ending = this.running;
    this.running = undefined;
    this.jobs.replace([]);
    this.become(this.wanted ? 'stopped' : 'idle');
    if (!ending) {
      return;
    }
    await ending.client.stop(STOP_GRACE_MS).catch((error: unknown) => {
      this.log.debug(`The server did not take its shutdown: ${errorText(error)}`);
    });
    await ending.process.end(STOP_GRACE_MS);
  }

  private become(status: ServerStatus): void {
    this.current = status;
    void vscode.commands.executeCommand('setContext', 'cutesmith.running', status === 'running');
    void vscode.commands.executeCommand('setContext', 'cutesmith.status', status);
    this.changed.fire();
  }
}

/** A server that does not answer `initialize` in time is killed, which makes `start` reject. */
async function startWithin(deadlineMs: number, client: LanguageClient, process: ServerProcess): Promise<void> {
  const deadline = AbortSignal.timeout(deadlineMs);
  const kill = (): boolean => process.child.kill('SIGKILL');
  deadline.addEventListener('abort', kill);
  try {
    await client.start();
    // A connection that closes while starting makes `start` resolve all the same.
    assert(client.isRunning(), 'the connection was closed');
  } catch (error) {
    kill();
    await process.exited;
    const ending = process.lastWords ?? errorText(error);
    const why = deadline.aborted ? `no answer within ${deadlineMs / 1000} seconds` : ending;
    throw new Error(`The CuteSmith server did not start: ${why}`, { cause: error });
  } finally {
    deadline.removeEventListener('abort', kill);
  }
}

async function describeEnd(process: ServerProcess): Promise<string> {
  const how = await process.exited;
  return process.lastWords ? `${process.lastWords} (${how})` : how;
}
