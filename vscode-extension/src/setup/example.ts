import * as vscode from 'vscode';
import { EXAMPLE } from './exampleText';

const NAME = 'cutesmith_example.py';

/** Opens the example, which is written into the workspace first, or where the user says. */
export async function openExample(): Promise<void> {
  const folder = vscode.workspace.workspaceFolders?.[0]?.uri;
  const file = folder
    ? vscode.Uri.joinPath(folder, NAME)
    : await vscode.window.showSaveDialog({ filters: { Python: ['py'] } });
  if (!file) {
    return;
  }
  const exists = await vscode.workspace.fs.stat(file).then(
    () => true,
    () => false,
  );
  if (!exists) {
    await vscode.workspace.fs.writeFile(file, new TextEncoder().encode(EXAMPLE));
  }
  await vscode.window.showTextDocument(file);
}
