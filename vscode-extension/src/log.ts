import * as vscode from 'vscode';

/** The extension's one output channel; its level is set by the user with "Developer: Set Log Level". */
export type Log = Pick<vscode.LogOutputChannel, 'trace' | 'debug' | 'info' | 'warn' | 'error' | 'dispose'> & {
  /** For what wants a channel of its own: the language client's trace. */
  readonly channel: vscode.LogOutputChannel;
  readonly show: () => void;
};

const LINES_KEPT = 150;
type Level = 'trace' | 'debug' | 'info' | 'warn' | 'error';

const kept: string[] = [];

/** The last lines of the log, for a bug report. */
export function recentLines(): readonly string[] {
  return kept;
}

export function createLog(): Log {
  const channel = vscode.window.createOutputChannel('CuteSmith', { log: true });
  const at = (level: Level) => (message: string | Error) => {
    keep(`${new Date().toISOString()} [${level}] ${errorText(message)}`);
    channel[level](errorText(message));
  };
  const show = (): void => {
    channel.show(false);
  };
  const dispose = (): void => {
    channel.dispose();
  };
  const levels = { trace: at('trace'), debug: at('debug'), info: at('info'), warn: at('warn'), error: at('error') };
  return { ...levels, channel, show, dispose };
}

/** A line that the server wrote to stderr, at the level that it names itself. */
export function logServerLine(log: Log, line: string): void {
  const level = / (DEBUG|INFO|WARNING|ERROR|CRITICAL) /.exec(line)?.[1];
  const levels: Readonly<Record<string, Level>> = {
    DEBUG: 'debug',
    WARNING: 'warn',
    ERROR: 'error',
    CRITICAL: 'error',
  };
  log[levels[level ?? ''] ?? 'info'](`[server] ${line}`);
}

export function errorText(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}

function keep(line: string): void {
  kept.push(line);
  kept.splice(0, kept.length - LINES_KEPT);
}
