import * as vscode from 'vscode';
import { chooseInterpreter, installCommand, type Interpreter, probe, serverCommand } from './interpreter';
import type { Log } from './log';
import type { ServerOptions } from './protocol';
import type { SelectedInterpreter } from './pythonExtension';
import { chosenSettings, readSettings } from './settings';

export type LaunchOptions = ServerOptions & { readonly interpreter: string };

/** Everything that starting a server needs. */
export interface Launch {
  readonly command: readonly string[];
  readonly cwd: string | undefined;
  readonly options: LaunchOptions;
}

/** Why there is nothing to start: one sentence, and how to put it right where an installation would. */
export class CannotLaunch extends Error {
  constructor(
    problem: string,
    readonly install?: string,
  ) {
    super(problem);
  }
}

/** Decides from the settings, the trust and the Python extension what to run, and logs why. */
export class Launcher {
  constructor(
    private readonly extensionPath: string,
    private readonly python: SelectedInterpreter,
    private readonly log: Log,
  ) {}

  /** Throws CannotLaunch when the chosen interpreter cannot run the server. */
  async plan(): Promise<Launch> {
    const interpreter = await this.interpreter();
    this.log.info(`Interpreter: ${interpreter.path}, from ${interpreter.reason}.`);
    const configured = readSettings(firstFolder()).serverCommand;
    const command = configured.length > 0 ? configured : await this.serverIn(interpreter.path);
    this.log.info(`Server command: ${command.join(' ')}`);
    return { command, cwd: firstFolder()?.uri.fsPath, options: optionsWith(interpreter.path) };
  }

  interpreter(): Promise<Interpreter> {
    const folder = firstFolder();
    return chooseInterpreter({
      configured: readSettings(folder).interpreter,
      workspaceFolder: folder?.uri.fsPath,
      trusted: vscode.workspace.isTrusted,
      selected: () => this.python.path(folder?.uri),
    });
  }

  private async serverIn(interpreter: string): Promise<readonly string[]> {
    const found = await probe(interpreter, this.extensionPath);
    if (!found.ok) {
      throw new CannotLaunch(found.problem, found.installable ? installCommand(interpreter) : undefined);
    }
    this.log.info(`Python ${found.python} with ${found.origin}.`);
    return serverCommand(interpreter);
  }
}

export function optionsWith(interpreter: string): LaunchOptions {
  return { interpreter, ...chosenSettings(firstFolder()), trusted: vscode.workspace.isTrusted };
}

function firstFolder(): vscode.WorkspaceFolder | undefined {
  return vscode.workspace.workspaceFolders?.[0];
}
