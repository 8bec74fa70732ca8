import * as vscode from 'vscode';
import { chooseInterpreter, type Interpreter, type Probe, probe, serverCommand } from './interpreter';
import type { Log } from './log';
import type { ServerOptions } from './protocol';
import type { SelectedInterpreter } from './pythonExtension';
import { chosenSettings, readSettings } from './settings';
import { missingIn } from './setup/checks';
import type { Installer } from './setup/installer';
import type { Missing } from './setup/plans';

export type LaunchOptions = ServerOptions & { readonly interpreter: string };

/** Everything that starting a server needs. */
export interface Launch {
  readonly command: readonly string[];
  readonly cwd: string | undefined;
  readonly options: LaunchOptions;
  /** What the modules' interpreter lacks, without which no kernel can be made. */
  readonly missing: readonly Missing[];
}

/** Why there is nothing to start: one sentence, and whether an installation would put it right. */
export class CannotLaunch extends Error {
  constructor(
    problem: string,
    readonly isInstallable: boolean,
  ) {
    super(problem);
  }
}

/** Decides from the settings, the trust and the Python extension what to run, and logs why. */
export class Launcher {
  constructor(
    private readonly extensionPath: string,
    private readonly python: SelectedInterpreter,
    private readonly installer: Installer,
    private readonly log: Log,
  ) {}

  /** Throws CannotLaunch when the chosen interpreter cannot run the server. */
  async plan(): Promise<Launch> {
    const interpreter = await this.interpreter();
    this.log.info(`Interpreter: ${interpreter.path}, from ${interpreter.reason}.`);
    const configured = readSettings(firstFolder()).serverCommand;
    const options = optionsWith(interpreter.path);
    const cwd = firstFolder()?.uri.fsPath;
    if (configured.length > 0) {
      this.log.info(`Server command: ${configured.join(' ')}`);
      return { command: configured, cwd, options, missing: [] }; // its interpreter runs when a job does, not before
    }
    const found = await probe(interpreter.path, this.extensionPath);
    const command = this.serverFor(interpreter.path, found);
    this.log.info(`Server command: ${command.join(' ')}`);
    return { command, cwd, options, missing: missingIn(found, true) };
  }

  /** The interpreter that would be taken, and what it has. */
  async look(): Promise<{ interpreter: Interpreter; probe: Probe }> {
    const interpreter = await this.interpreter();
    return { interpreter, probe: await probe(interpreter.path, this.extensionPath) };
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

  /** The interpreter's own server, else the one in an environment of its own. */
  private serverFor(interpreter: string, found: Probe): readonly string[] {
    if (found.ok) {
      this.log.info(`Python ${found.python} with ${found.origin}.`);
      return serverCommand(interpreter);
    }
    const own = this.installer.ownInterpreter;
    if (found.installable && own !== undefined) {
      return serverCommand(own);
    }
    throw new CannotLaunch(found.problem, found.installable);
  }
}

export function optionsWith(interpreter: string): LaunchOptions {
  return { interpreter, ...chosenSettings(firstFolder()), trusted: vscode.workspace.isTrusted };
}

function firstFolder(): vscode.WorkspaceFolder | undefined {
  return vscode.workspace.workspaceFolders?.[0];
}
