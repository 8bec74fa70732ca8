import * as vscode from 'vscode';
import type { Keys } from '../model/keys';
import { PaletteCommand } from '../paletteCommands';
import type { Server } from '../server';
import { SECTION } from '../settings';
import { openExample } from './example';
import type { Setup } from './setup';

const ASK_MODEL = 'askModel';

/** The commands of the first minute, and those about models. */
export function registerSetupCommands(setup: Setup, keys: Keys, server: Server): vscode.Disposable {
  const commands: Readonly<Record<string, () => Promise<void>>> = {
    [PaletteCommand.checkSetup]: () => setup.check(),
    [PaletteCommand.install]: () => setup.install(),
    [PaletteCommand.openExample]: openExample,
    [PaletteCommand.setKey]: async () => {
      if (await keys.ask()) {
        await takeUp(server, 'The key is kept');
      }
    },
    [PaletteCommand.forgetKey]: async () => {
      await keys.forget();
      await takeUp(server, 'The key was deleted');
    },
    [PaletteCommand.toggleModel]: toggleModel,
  };
  return vscode.Disposable.from(
    ...Object.entries(commands).map(([id, run]) => vscode.commands.registerCommand(id, run)),
  );
}

/** A server has the key from its start on: it is started anew, at once where no job would be interrupted. */
async function takeUp(server: Server, what: string): Promise<void> {
  const isBusy = server.jobs.all.some((job) => job.state === 'running');
  const restart = 'Restart Server';
  const told = `${what}; the server takes it up when it starts anew. A job is running: it would be paused.`;
  if (!isBusy || (await vscode.window.showInformationMessage(told, restart)) === restart) {
    await server.restartIfWanted('the key for models changed');
  }
}

/** Turns asking models off for this workspace, or on again. */
async function toggleModel(): Promise<void> {
  const section = vscode.workspace.getConfiguration(SECTION);
  const isOn = section.get<boolean>(ASK_MODEL, true);
  const hasFolder = (vscode.workspace.workspaceFolders?.length ?? 0) > 0;
  const target = hasFolder ? vscode.ConfigurationTarget.Workspace : vscode.ConfigurationTarget.Global;
  await section.update(ASK_MODEL, !isOn, target);
  const where = hasFolder ? 'in this workspace' : 'everywhere';
  const now = isOn ? 'No language model is asked' : 'A language model may be asked, after your consent,';
  void vscode.window.showInformationMessage(`${now} ${where}.`);
}
