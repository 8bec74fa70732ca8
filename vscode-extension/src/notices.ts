import * as vscode from 'vscode';
import { CannotLaunch } from './launch';
import type { Log } from './log';
import { errorText } from './log';
import { PaletteCommand } from './paletteCommands';

const SHOW_LOG = 'Show Log';
const COPY_INSTALL = 'Copy Install Command';
const OPEN_SETTINGS = 'Choose Interpreter';
const RESTART = 'Restart Server';

/** What the user is told when the server is not running: one message each time, with what to do about it. */
export class Notices {
  constructor(private readonly log: Log) {}

  cannotStart(error: unknown): void {
    this.log.error(errorText(error));
    if (error instanceof CannotLaunch && error.install !== undefined) {
      const message = `${error.message} Install it there or choose another interpreter, then restart the server.`;
      this.tell(message, [COPY_INSTALL, OPEN_SETTINGS, SHOW_LOG], error.install);
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

  private tell(message: string, actions: readonly string[], install = ''): void {
    void vscode.window.showErrorMessage(message, ...actions).then(async (action) => {
      if (action === SHOW_LOG) {
        this.log.show();
      } else if (action === COPY_INSTALL) {
        await vscode.env.clipboard.writeText(install);
      } else if (action === OPEN_SETTINGS) {
        await openInterpreterSetting();
      } else if (action === RESTART) {
        await vscode.commands.executeCommand(PaletteCommand.restartServer);
      }
    });
  }
}

/** The setting belongs to the machine: where that is a remote one, the user's settings do not show it. */
async function openInterpreterSetting(): Promise<void> {
  const where = vscode.env.remoteName === undefined ? 'openSettings2' : 'openRemoteSettings';
  await vscode.commands.executeCommand(`workbench.action.${where}`, { query: 'cutesmith.interpreter' });
}
