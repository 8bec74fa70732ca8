import { spawn } from 'node:child_process';
import { createInterface } from 'node:readline';

/** How a command ended: `failure` is undefined when it did what it should. */
export interface Ending {
  readonly failure: string | undefined;
}

/** Runs one command, tells of every line that it prints, and ends it with all it started when aborted. */
export function run(words: readonly string[], onLine: (line: string) => void, signal: AbortSignal): Promise<Ending> {
  const [file = '', ...args] = words;
  let last = '';
  const tell = (line: string): void => {
    last = line.trim() || last;
    onLine(line);
  };
  return new Promise((resolve) => {
    const detached = process.platform !== 'win32';
    const child = spawn(file, args, { detached, stdio: ['ignore', 'pipe', 'pipe'] });
    const stop = (): void => {
      endGroup(child.pid, detached);
    };
    signal.addEventListener('abort', stop);
    createInterface({ input: child.stdout }).on('line', tell);
    createInterface({ input: child.stderr }).on('line', tell);
    child.on('error', (error) => {
      resolve({ failure: error.message });
    });
    child.on('close', (code) => {
      signal.removeEventListener('abort', stop);
      const failure = signal.aborted ? 'cancelled' : last || `exit code ${code ?? 'unknown'}`;
      resolve({ failure: code === 0 && !signal.aborted ? undefined : failure });
    });
  });
}

function endGroup(pid: number | undefined, isGroup: boolean): void {
  if (pid === undefined) {
    return;
  }
  try {
    process.kill(isGroup ? -pid : pid, 'SIGTERM');
  } catch {
    // it ended meanwhile
  }
}
