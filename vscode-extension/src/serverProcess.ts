import { type ChildProcessWithoutNullStreams, spawn } from 'node:child_process';
import { createInterface } from 'node:readline';

const STDERR_LINES_KEPT = 20;
const STDERR_GRACE_MS = 500;

/** A language server running as a child process on stdio. */
export class ServerProcess {
  /** Resolves with a few words on how the process ended. */
  readonly exited: Promise<string>;
  private readonly stderrTail: string[] = [];

  private constructor(
    readonly child: ChildProcessWithoutNullStreams,
    onStderr: (line: string) => void,
  ) {
    createInterface({ input: child.stderr }).on('line', (line) => {
      this.stderrTail.push(line);
      this.stderrTail.splice(0, this.stderrTail.length - STDERR_LINES_KEPT);
      onStderr(line);
    });
    this.exited = new Promise((resolve) => {
      child.on('exit', (code, signal) => {
        const ending = signal ? `ended by ${signal}` : `exit code ${code ?? 'unknown'}`;
        // 'close' comes once stderr was read to its end, or never while a grandchild holds it open.
        const timer = setTimeout(resolve, STDERR_GRACE_MS, ending);
        child.on('close', () => {
          clearTimeout(timer);
          resolve(ending);
        });
      });
    });
  }

  /** Rejects when the program cannot be started at all. */
  static async start(
    command: readonly string[],
    cwd: string | undefined,
    onStderr: (line: string) => void,
    environment: NodeJS.ProcessEnv = process.env,
  ): Promise<ServerProcess> {
    const [file = '', ...args] = command;
    const child = spawn(file, args, { cwd, stdio: 'pipe', env: environment });
    await new Promise<void>((resolve, reject) => {
      child.once('spawn', resolve);
      child.once('error', reject);
    });
    return new ServerProcess(child, onStderr);
  }

  /** The last line that the server wrote to stderr: for a Python program that failed, its exception. */
  get lastWords(): string | undefined {
    return this.stderrTail.findLast((line) => line.trim() !== '');
  }

  /** Waits for the process to end by itself, then kills it. */
  async end(graceMs: number): Promise<void> {
    const timer = setTimeout(() => this.child.kill('SIGKILL'), graceMs);
    await this.exited;
    clearTimeout(timer);
  }
}
