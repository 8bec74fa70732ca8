import * as vscode from 'vscode';
import type { ServerOptions } from './protocol';

export const SECTION = 'cutesmith';

/** What decides which process runs. */
export interface ProcessSettings {
  readonly interpreter: string;
  readonly serverCommand: readonly string[];
}

/** Settings that the server reads; a project's pyproject.toml may say them, too. */
const SERVER_SETTINGS = [
  'device',
  'archs',
  'watch',
  'watchRegenerates',
  'watchMinutes',
  'confirmEdits',
  'askModel',
  'modelProvider',
] as const;

/** Settings that decide which process runs; a change of them restarts the server. */
const PROCESS_SETTINGS = [`${SECTION}.interpreter`, `${SECTION}.serverCommand`];

export function readSettings(folder: vscode.WorkspaceFolder | undefined): ProcessSettings {
  const section = vscode.workspace.getConfiguration(SECTION, folder?.uri);
  return { interpreter: section.get('interpreter', ''), serverCommand: section.get<string[]>('serverCommand', []) };
}

/** The server's settings that the user or the workspace set; those left alone are the project's or the server's to say. */
export function chosenSettings(folder: vscode.WorkspaceFolder | undefined): ServerOptions {
  const section = vscode.workspace.getConfiguration(SECTION, folder?.uri);
  const chosen = SERVER_SETTINGS.filter((name) => isSet(section.inspect(name)));
  return Object.fromEntries(chosen.map((name) => [name, section.get(name)]));
}

type Inspected = ReturnType<vscode.WorkspaceConfiguration['inspect']>;

function isSet(found: Inspected): boolean {
  const places = [found?.globalValue, found?.workspaceValue, found?.workspaceFolderValue];
  return places.some((value) => value !== undefined);
}

export function needsRestart(change: vscode.ConfigurationChangeEvent): boolean {
  return PROCESS_SETTINGS.some((name) => change.affectsConfiguration(name));
}
