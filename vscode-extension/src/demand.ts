import * as vscode from 'vscode';
import { mayHoldModule } from './moduleText';
import type { Server } from './server';

const AFTER_TYPING_MS = 500;

/** Starts the server once an open Python file holds an nn.Module; until then nothing runs. */
export class Demand implements vscode.Disposable {
  private subscription: vscode.Disposable | undefined;
  private timer: NodeJS.Timeout | undefined;

  constructor(private readonly server: Server) {
    this.subscription = vscode.Disposable.from(
      vscode.workspace.onDidOpenTextDocument((document) => {
        this.look(document);
      }),
      vscode.workspace.onDidChangeTextDocument(({ document }) => {
        clearTimeout(this.timer);
        this.timer = setTimeout(() => {
          this.look(document);
        }, AFTER_TYPING_MS);
      }),
    );
    for (const document of vscode.workspace.textDocuments) {
      this.look(document);
    }
  }

  dispose(): void {
    clearTimeout(this.timer);
    this.subscription?.dispose();
    this.subscription = undefined;
  }

  private look(document: vscode.TextDocument): void {
    const isFile = document.languageId === 'python' && document.uri.scheme === 'file';
    if (this.subscription && isFile && mayHoldModule(document.getText())) {
      this.dispose();
      // Not awaited: the editor goes on while the server starts, and what goes wrong is told to the user by then.
      void this.server.need(`${vscode.workspace.asRelativePath(document.uri)} holds a module`);
    }
  }
}
