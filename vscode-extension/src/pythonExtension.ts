import type { PythonExtension } from '@vscode/python-extension';
import * as vscode from 'vscode';
import type { Log } from './log';
import { errorText } from './log';

const EXTENSION_ID = 'ms-python.python';

/** The interpreter that the user selected in the Python extension, when that extension is installed. */
export class SelectedInterpreter implements vscode.Disposable {
  private readonly changed = new vscode.EventEmitter<void>();
  readonly onDidChange = this.changed.event;
  private subscription: vscode.Disposable | undefined;

  constructor(private readonly log: Log) {}

  async path(resource: vscode.Uri | undefined): Promise<string | undefined> {
    try {
      return await this.ask(resource);
    } catch (error) {
      this.log.warn(`The Python extension could not be asked for its interpreter: ${errorText(error)}`);
      return undefined;
    }
  }

  dispose(): void {
    this.subscription?.dispose();
    this.changed.dispose();
  }

  private async ask(resource: vscode.Uri | undefined): Promise<string | undefined> {
    const extension = vscode.extensions.getExtension<PythonExtension>(EXTENSION_ID);
    const environments = (await extension?.activate())?.environments;
    this.subscription ??= environments?.onDidChangeActiveEnvironmentPath(() => {
      this.changed.fire();
    });
    const selected = await environments?.resolveEnvironment(environments.getActiveEnvironmentPath(resource));
    return selected?.executable.uri?.fsPath;
  }
}
