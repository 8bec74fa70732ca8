import * as vscode from 'vscode';
import type { Log } from './log';
import { errorText } from './log';

const EXTENSION_ID = 'ms-python.python';

/** The part of the Python extension's public API that is used here. */
interface PythonApi {
  readonly environments: {
    getActiveEnvironmentPath(resource?: vscode.Uri): { readonly path: string };
    resolveEnvironment(environment: { readonly path: string }): Promise<PythonEnvironment | undefined>;
    readonly onDidChangeActiveEnvironmentPath: vscode.Event<unknown>;
  };
}

interface PythonEnvironment {
  readonly executable: { readonly uri?: vscode.Uri };
}

/** The interpreter that the user selected in the Python extension, when that extension is installed. */
export class SelectedInterpreter implements vscode.Disposable {
  private readonly changed = new vscode.EventEmitter<void>();
  readonly onDidChange = this.changed.event;
  private subscription: vscode.Disposable | undefined;

  constructor(private readonly log: Log) {}

  async path(resource: vscode.Uri | undefined): Promise<string | undefined> {
    const api = await this.activate();
    if (!api) {
      return undefined;
    }
    this.subscription ??= api.environments.onDidChangeActiveEnvironmentPath(() => {
      this.changed.fire();
    });
    const environment = await api.environments.resolveEnvironment(api.environments.getActiveEnvironmentPath(resource));
    return environment?.executable.uri?.fsPath;
  }

  dispose(): void {
    this.subscription?.dispose();
    this.changed.dispose();
  }

  private async activate(): Promise<PythonApi | undefined> {
    const extension = vscode.extensions.getExtension<PythonApi>(EXTENSION_ID);
    try {
      return await extension?.activate();
    } catch (error) {
      this.log.warn(`The Python extension did not activate: ${errorText(error)}`);
      return undefined;
    }
  }
}
