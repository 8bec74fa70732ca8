import * as vscode from 'vscode';
import { registerCommands } from './commands';
import { Demand } from './demand';
import { copyDiagnostics } from './diagnostics';
import { registerRowCommands } from './kernels/commands';
import { ModuleFeed } from './kernels/feed';
import { KernelsView } from './kernels/view';
import { Launcher } from './launch';
import { createLog } from './log';
import { Keys } from './model/keys';
import { Notices } from './notices';
import { PaletteCommand } from './paletteCommands';
import { SelectedInterpreter } from './pythonExtension';
import { registerReviewCommands } from './review/commands';
import { ReportPanels } from './report/panels';
import { ReviewDocuments } from './review/documents';
import { KernelMarks } from './review/marks';
import { Server } from './server';
import { needsRestart, SECTION } from './settings';
import { registerSetupCommands } from './setup/commands';
import { Installer } from './setup/installer';
import { Setup } from './setup/setup';
import { StatusBar } from './status';

let server: Server | undefined;

export function activate(context: vscode.ExtensionContext): void {
  const log = createLog();
  const python = new SelectedInterpreter(log);
  const installer = new Installer(context.globalStorageUri, log);
  const launcher = new Launcher(context.extensionPath, python, installer, log);
  const keys = new Keys(context.secrets);
  const started = new Server(launcher, keys, new Notices(log), log);
  server = started;
  const feed = new ModuleFeed(started, log);
  const view = new KernelsView(feed, context.workspaceState);
  const reviews = new ReviewDocuments(started, feed);
  started.review = (target) => reviews.open(target);
  const reports = new ReportPanels(started, feed);
  context.subscriptions.push(
    log,
    python,
    feed,
    view,
    reports,
    registerCommands(started, reports, log),
    registerSetupCommands(new Setup(launcher, installer, started), keys, started),
    vscode.commands.registerCommand(PaletteCommand.copyDiagnostics, () =>
      copyDiagnostics(started, feed, (context.extension.packageJSON as { version: string }).version),
    ),
    reviews,
    new KernelMarks(context.extensionUri, feed),
    registerRowCommands(view, reports),
    registerReviewCommands(),
    showStatus(started, feed),
    python.onDidChange(() => void started.restartIfInterpreterChanged()),
    vscode.workspace.onDidGrantWorkspaceTrust(() => void started.restartIfWanted('the workspace is now trusted')),
    vscode.workspace.onDidChangeConfiguration((change) => {
      if (needsRestart(change)) {
        void started.restartIfWanted('its settings changed');
      } else if (change.affectsConfiguration(SECTION)) {
        void started.sendSettings();
      }
    }),
    new Demand(started),
  );
}

export async function deactivate(): Promise<void> {
  await server?.close();
}

function showStatus(server: Server, feed: ModuleFeed): vscode.Disposable {
  const status = new StatusBar(PaletteCommand.showLog);
  const show = (): void => {
    status.show(server.status, server.jobs, feed.now);
  };
  show();
  return vscode.Disposable.from(status, server.onDidChange(show), feed.onDidChange(show));
}
