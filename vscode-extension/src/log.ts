import * as vscode from 'vscode';

/** The extension's one output channel; its level is set by the user with "Developer: Set Log Level". */
export type Log = vscode.LogOutputChannel;

export function createLog(): Log {
  return vscode.window.createOutputChannel('CuteSmith', { log: true });
}

export function errorText(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}
