import * as vscode from 'vscode';
import type { Log } from './log';
import { CLASS_COMMANDS, PaletteCommand } from './paletteCommands';
import type { ClassRef, ServerCommand } from './protocol';
import type { Server } from './server';
import { classesIn } from './target';

const LENSES_RESOLVED = 1_000;

export function registerCommands(server: Server, log: Log): vscode.Disposable {
  const forClasses = Object.entries(CLASS_COMMANDS).map(([id, command]) =>
    vscode.commands.registerCommand(id, () => runOnClassAtCursor(command)),
  );
  return vscode.Disposable.from(
    ...forClasses,
    vscode.commands.registerCommand(PaletteCommand.restartServer, () => server.restart('asked by the user')),
    vscode.commands.registerCommand(PaletteCommand.showLog, () => {
      log.show();
    }),
  );
}

async function runOnClassAtCursor(command: ServerCommand): Promise<void> {
  const editor = vscode.window.activeTextEditor;
  if (!editor) {
    return;
  }
  const target = (await classAtCursor(editor)) ?? (await pickClass(editor.document));
  if (target) {
    await vscode.commands.executeCommand(command, target);
  }
}

/** The server places its code actions where its classes are, so what it offers at the cursor names the class. */
async function classAtCursor(editor: vscode.TextEditor): Promise<ClassRef | undefined> {
  const actions = await vscode.commands.executeCommand<vscode.CodeAction[]>(
    'vscode.executeCodeActionProvider',
    editor.document.uri,
    editor.selection,
    vscode.CodeActionKind.RefactorRewrite.value,
  );
  const placed = actions.map((action) => ({ line: 0, arguments: action.command?.arguments }));
  return classesIn(placed)[0]?.target;
}

async function pickClass(document: vscode.TextDocument): Promise<ClassRef | undefined> {
  const lenses = await vscode.commands.executeCommand<vscode.CodeLens[]>(
    'vscode.executeCodeLensProvider',
    document.uri,
    LENSES_RESOLVED,
  );
  const classes = classesIn(
    lenses.map((lens) => ({ line: lens.range.start.line, arguments: lens.command?.arguments })),
  );
  if (classes.length === 0) {
    void vscode.window.showInformationMessage('CuteSmith finds no torch.nn.Module class in this file.');
    return undefined;
  }
  const items = classes.map(({ line, target }) => ({ label: target.class, description: `line ${line + 1}`, target }));
  return (await vscode.window.showQuickPick(items, { placeHolder: 'No class at the cursor. Which one?' }))?.target;
}
