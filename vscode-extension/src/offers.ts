import * as vscode from 'vscode';
import { classesIn, type Offer } from './target';
import type { ClassRef } from './protocol';

const OUR_ACTIONS = vscode.CodeActionKind.RefactorRewrite.append('cutesmith').value;
const LENSES_RESOLVED = 1_000;

/** What the server offers at the cursor. It offers a class's actions anywhere within the class. */
export async function offersAtCursor(editor: vscode.TextEditor): Promise<readonly Offer[]> {
  const actions = await vscode.commands.executeCommand<vscode.CodeAction[]>(
    'vscode.executeCodeActionProvider',
    editor.document.uri,
    editor.selection,
    OUR_ACTIONS,
  );
  return actions.map(({ title, command }) => ({ title, line: editor.selection.start.line, ...argumentsOf(command) }));
}

/** The class at the cursor; where there is none, the one that the user picks. */
export async function classAtCursor(editor: vscode.TextEditor): Promise<ClassRef | undefined> {
  const here = classesIn(await offersAtCursor(editor)).filter(({ target }) => isIn(editor.document, target));
  return here[0]?.target ?? (await pickClass(editor.document));
}

async function pickClass(document: vscode.TextDocument): Promise<ClassRef | undefined> {
  const classes = classesIn(await lensesOf(document)).filter(({ target }) => isIn(document, target));
  if (classes.length === 0) {
    void vscode.window.showInformationMessage('CuteSmith finds no torch.nn.Module class in this file.');
    return undefined;
  }
  const items = classes.map(({ line, target }) => ({ label: target.class, description: `line ${line + 1}`, target }));
  return (await vscode.window.showQuickPick(items, { placeHolder: 'No class at the cursor. Which one?' }))?.target;
}

async function lensesOf(document: vscode.TextDocument): Promise<readonly Offer[]> {
  const lenses = await vscode.commands.executeCommand<vscode.CodeLens[]>(
    'vscode.executeCodeLensProvider',
    document.uri,
    LENSES_RESOLVED,
  );
  return lenses.map(({ range, command }) => ({ title: '', line: range.start.line, ...argumentsOf(command) }));
}

/** Offers in a kernel's file are for a class in another one. */
function isIn(document: vscode.TextDocument, target: ClassRef): boolean {
  return vscode.Uri.parse(target.uri).toString() === document.uri.toString();
}

function argumentsOf(command: vscode.Command | undefined): { arguments: unknown[] | undefined } {
  return { arguments: command?.arguments };
}
