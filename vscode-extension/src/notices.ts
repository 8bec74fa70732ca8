import * as vscode from 'vscode';
import { CannotLaunch } from './launch';
import type { Log } from './log';
import { errorText } from './log';
import { PaletteCommand } from './paletteCommands';

const SHOW_LOG = 'Show Log';
const INSTALL = 'Install…';
const OPEN_SETTINGS = 'Choose Interpreter';
const RESTART = 'Restart Server';

/** What the user is told when the server is not running: one message each time, with what to do about it. */
export class Notices {
  private readonly told = new Set<string>();

  constructor(private readonly log: Log) {}

  cannotStart(error: unknown): void {
    this.log.error(errorText(error));
    if (error instanceof CannotLaunch && error.isInstallable) {
      this.tell(`${error.message} Install it, or choose another interpreter.`, [INSTALL, OPEN_SETTINGS, SHOW_LOG]);
    } else if (error instanceof CannotLaunch) {
      this.tell(`${error.message} Choose another interpreter.`, [OPEN_SETTINGS, SHOW_LOG]);
    } else {
      this.tell(`${errorText(error)}. See the log, then restart it.`, [RESTART, SHOW_LOG]);
    }
  }

  keepsStopping(ending: string): void {
    const message = `The CuteSmith server keeps stopping (${ending}) and is left stopped. See the log, then restart it.`;
    this.tell(message, [RESTART, SHOW_LOG]);
  }

  /** Modules are found all the same, so it is said once for an interpreter. */
  lacks(interpreter: string, missing: readonly string[]): void {
    if (missing.length > 0 && !this.told.has(interpreter)) {
      this.told.add(interpreter);
      const verb = missing.length > 1 ? 'are' : 'is';
      const message = `${missing.join(' and ')} ${verb} not installed in ${interpreter}: no kernel can be made with it.`;
      this.tell(message, [INSTALL, OPEN_SETTINGS]);
    }
  }

  private tell(message: string, actions: readonly string[]): void {
    void vscode.window.showErrorMessage(message, ...actions).then(async (action) => {
      if (action === SHOW_LOG) {
        this.log.show();
      } else if (action === INSTALL) {
        await vscode.commands.executeCommand(PaletteCommand.install);
      } else if (action === OPEN_SETTINGS) {
        await openInterpreterSetting();
      } else if (action === RESTART) {
        await vscode.commands.executeCommand(PaletteCommand.restartServer);
      }
    });
  }
}

/** The setting belongs to the machine: where that is a remote one, the user's settings do not show it. */
export async function openInterpreterSetting(): Promise<void> {
  const where = vscode.env.remoteName === undefined ? 'openSettings2' : 'openRemoteSettings';
  await vscode.commands.executeCommand(`workbench.action.${where}`, { query: 'cutesmith.interpreter' });
}
