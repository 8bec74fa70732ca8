import * as vscode from 'vscode';
import type { Log } from './log';
import { classAtCursor, offersAtCursor } from './offers';
import { CLASS_COMMANDS, PaletteCommand } from './paletteCommands';
import { type CheckRef, type ClassRef, ServerCommand } from './protocol';
import type { ReportPanels } from './report/panels';
import type { Server } from './server';
import { checksIn } from './target';

type Choose = (editor: vscode.TextEditor) => Promise<ClassRef | undefined>;

export function registerCommands(server: Server, reports: ReportPanels, log: Log): vscode.Disposable {
  const { restartServer, showLog, reportHere, exportReport } = PaletteCommand;
  return vscode.Disposable.from(
    ...Object.entries(CLASS_COMMANDS).map(([id, command]) => onClass(server, id, command, classAtCursor)),
    onClass(server, PaletteCommand.checkHere, ServerCommand.check, chooseCheck),
    vscode.commands.registerCommand(reportHere, async () => {
      await server.need('a command asked for it');
      const editor = vscode.window.activeTextEditor;
      const target = editor && (await classAtCursor(editor));
      await (target && reports.open(target));
    }),
    vscode.commands.registerCommand(exportReport, () => reports.exportActive()),
    vscode.commands.registerCommand(restartServer, () => server.restart('asked by the user')),
    vscode.commands.registerCommand(showLog, () => {
      log.show();
    }),
  );
}

/** A palette command that runs a server command on what is chosen from the place of the cursor. */
function onClass(server: Server, id: string, command: ServerCommand, choose: Choose): vscode.Disposable {
  return vscode.commands.registerCommand(id, async () => {
    await server.need('a command asked for it');
    const editor = vscode.window.activeTextEditor;
    const target = editor && (await choose(editor));
    if (target) {
      await vscode.commands.executeCommand(command, target);
    }
  });
}

/** One of the validations that the server offers here, or a kernel file that the user picks for the class. */
async function chooseCheck(editor: vscode.TextEditor): Promise<CheckRef | undefined> {
  const offered = checksIn(await offersAtCursor(editor));
  const other = { title: 'Choose a kernel file…', target: undefined };
  const items = [...offered, other].map(({ title, target }) => ({ label: title, target }));
  const picked = offered.length > 0 ? await vscode.window.showQuickPick(items) : { target: undefined };
  return picked && (picked.target ?? (await pickKernel(editor)));
}

async function pickKernel(editor: vscode.TextEditor): Promise<CheckRef | undefined> {
  const target = await classAtCursor(editor);
  if (!target) {
    return undefined;
  }
  const [file] =
    (await vscode.window.showOpenDialog({
      title: `Kernel to validate against ${target.class}`,
      openLabel: 'Validate',
      defaultUri: vscode.Uri.joinPath(editor.document.uri, '..'),
      filters: { Python: ['py'] },
    })) ?? [];
  return file && { ...target, candidate: file.fsPath };
}
