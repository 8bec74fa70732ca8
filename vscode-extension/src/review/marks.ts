import * as vscode from 'vscode';
import type { ModuleFeed } from '../kernels/feed';

/** Marks the lines of accepted kernels in the gutter: the import, and the guard in forward. */
export class KernelMarks implements vscode.Disposable {
  private readonly decoration: vscode.TextEditorDecorationType;
  private readonly subscription: vscode.Disposable;

  constructor(
    extensionUri: vscode.Uri,
    private readonly feed: ModuleFeed,
  ) {
    this.decoration = vscode.window.createTextEditorDecorationType({
      gutterIconPath: vscode.Uri.joinPath(extensionUri, 'images', 'accepted.svg'),
      gutterIconSize: '75%',
      overviewRulerColor: new vscode.ThemeColor('testing.iconPassed'),
      overviewRulerLane: vscode.OverviewRulerLane.Left,
    });
    const show = (): void => {
      this.show();
    };
    this.subscription = vscode.Disposable.from(
      this.decoration,
      feed.onDidChange(show),
      vscode.window.onDidChangeVisibleTextEditors(show),
    );
  }

  dispose(): void {
    this.subscription.dispose();
  }

  private show(): void {
    for (const editor of vscode.window.visibleTextEditors.filter(isFile)) {
      editor.setDecorations(this.decoration, this.rangesIn(editor.document));
    }
  }

  private rangesIn(document: vscode.TextDocument): vscode.DecorationOptions[] {
    const uri = document.uri.toString();
    const modules = this.feed.now.modules.filter((module) => vscode.Uri.parse(module.uri).toString() === uri);
    return modules.flatMap(({ class: name, message, kernelLines }) => {
      const words = message ? `${name}: ${message}` : `${name} hands over to its CuTe kernel here.`;
      const lines = kernelLines.filter((line) => line <= document.lineCount);
      return lines.map((line) => ({ range: document.lineAt(line - 1).range, hoverMessage: words }));
    });
  }
}

function isFile(editor: vscode.TextEditor): boolean {
  return editor.document.uri.scheme === 'file';
}
