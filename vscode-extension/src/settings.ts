import * as vscode from 'vscode';

export const SECTION = 'cutesmith';

export interface Settings {
  readonly interpreter: string;
  readonly serverCommand: readonly string[];
  readonly device: string;
  readonly archs: readonly string[];
}

/** Settings that decide which process runs; a change of them restarts the server. */
const PROCESS_SETTINGS = [`${SECTION}.interpreter`, `${SECTION}.serverCommand`];

export function readSettings(folder: vscode.WorkspaceFolder | undefined): Settings {
  const section = vscode.workspace.getConfiguration(SECTION, folder?.uri);
  return {
    interpreter: section.get('interpreter', ''),
    serverCommand: section.get<string[]>('serverCommand', []),
    device: section.get('device', 'auto'),
    archs: section.get<string[]>('archs', []),
  };
}

export function needsRestart(change: vscode.ConfigurationChangeEvent): boolean {
  return PROCESS_SETTINGS.some((name) => change.affectsConfiguration(name));
}
