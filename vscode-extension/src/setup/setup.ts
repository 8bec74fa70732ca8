import * as vscode from 'vscode';
import type { Launcher } from '../launch';
import { openInterpreterSetting } from '../notices';
import type { Server } from '../server';
import { checksOf, missingIn } from './checks';
import type { Installer } from './installer';

/** Shows what the chosen interpreter has of what is needed, and puts right what can be. */
export class Setup {
  constructor(
    private readonly launcher: Launcher,
    private readonly installer: Installer,
    private readonly server: Server,
  ) {}

  async check(): Promise<void> {
    const { interpreter, probe } = await this.launcher.look();
    const checks = checksOf(interpreter.path, interpreter.reason, probe, this.installer.ownInterpreter);
    const missing = missingIn(probe, this.installer.ownInterpreter !== undefined);
    const rows = checks.map(({ name, ok, found }) => ({
      label: `$(${ok ? 'pass' : 'error'}) ${name}`,
      description: found,
      run: undefined,
    }));
    const install = { label: '$(cloud-download) Install what is missing…', run: () => this.install() };
    const choose = { label: '$(settings-gear) Choose another interpreter', run: openInterpreterSetting };
    const restart = { label: '$(refresh) Restart the server', run: () => this.server.restart('asked by the user') };
    const actions = [...(missing.length > 0 ? [install] : []), choose, restart];
    const separator = { label: '', kind: vscode.QuickPickItemKind.Separator, run: undefined };
    const title = missing.length > 0 ? 'CuteSmith cannot make kernels yet' : 'CuteSmith has all that it needs';
    const picked = await vscode.window.showQuickPick([...rows, separator, ...actions], { title });
    await picked?.run?.();
  }

  /** Offers to install what the chosen interpreter lacks; restarts the server when that was done. */
  async install(): Promise<void> {
    const { interpreter, probe } = await this.launcher.look();
    const missing = missingIn(probe, this.installer.ownInterpreter !== undefined);
    if (missing.length === 0) {
      void vscode.window.showInformationMessage(`Nothing is missing in ${interpreter.path}.`);
    } else if (await this.installer.offer(missing, interpreter.path)) {
      await this.server.restart('something was installed');
    }
  }
}
