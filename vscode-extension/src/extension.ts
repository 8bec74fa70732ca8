import * as vscode from 'vscode';
import { registerCommands } from './commands';
import { Launcher } from './launch';
import { createLog } from './log';
import { Notices } from './notices';
import { PaletteCommand } from './paletteCommands';
import { SelectedInterpreter } from './pythonExtension';
import { Server } from './server';
import { needsRestart, SECTION } from './settings';
import { StatusBar } from './status';

let server: Server | undefined;

export function activate(context: vscode.ExtensionContext): void {
  const log = createLog();
  const python = new SelectedInterpreter(log);
  const started = new Server(new Launcher(context.extensionPath, python, log), new Notices(log), log);
  server = started;
  const status = new StatusBar(PaletteCommand.showLog);
  context.subscriptions.push(
    log,
    python,
    status,
    registerCommands(started, log),
    started.onDidChange(() => {
      status.show(started.status, started.jobs);
    }),
    python.onDidChange(() => void started.restartIfInterpreterChanged()),
    vscode.workspace.onDidGrantWorkspaceTrust(() => void started.restart('the workspace is now trusted')),
    vscode.workspace.onDidChangeConfiguration((change) => {
      if (needsRestart(change)) {
        void started.restart('its settings changed');
      } else if (change.affectsConfiguration(SECTION)) {
        void started.sendSettings();
      }
    }),
  );
  // Not awaited: the editor goes on while the server starts, and what goes wrong is told to the user by then.
  void started.restart('the extension was activated');
}

export async function deactivate(): Promise<void> {
  await server?.close();
}
