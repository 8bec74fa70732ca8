import { existsSync } from 'node:fs';
import * as vscode from 'vscode';
import type { Log } from '../log';
import { interpreterIn, type Missing, type Plan, plansFor, typed } from './plans';
import { run } from './running';

const RUN = 'Run';
const COPY = 'Copy';

/** Installs what is missing, after showing exactly what it will run. */
export class Installer {
  private readonly ownFolder: string;

  constructor(
    storage: vscode.Uri,
    private readonly log: Log,
  ) {
    this.ownFolder = vscode.Uri.joinPath(storage, 'environment').fsPath;
  }

  /** The interpreter of the environment that is the server's alone, once it was made. */
  get ownInterpreter(): string | undefined {
    const path = interpreterIn(this.ownFolder);
    return existsSync(path) ? path : undefined;
  }

  /** True when everything was installed. */
  async offer(missing: readonly Missing[], interpreter: string): Promise<boolean> {
    const plan = await this.choose(plansFor(missing, interpreter, this.ownFolder));
    return plan !== undefined && (await this.confirms(plan)) && (await this.carryOut(plan));
  }

  private async choose(plans: readonly Plan[]): Promise<Plan | undefined> {
    const items = plans.map((plan) => ({ label: plan.label, detail: plan.detail, description: '', plan }));
    const placeHolder = 'Where to install it (the commands are shown before anything runs)';
    return (await vscode.window.showQuickPick(items, { placeHolder }))?.plan;
  }

  private async confirms(plan: Plan): Promise<boolean> {
    const detail = `${typed(plan)}\n\nIt may download some gigabytes (PyTorch). The log shows its output.`;
    const answer = await vscode.window.showInformationMessage('Run this?', { modal: true, detail }, RUN, COPY);
    if (answer === COPY) {
      await vscode.env.clipboard.writeText(typed(plan));
    }
    return answer === RUN;
  }

  private async carryOut(plan: Plan): Promise<boolean> {
    const location = vscode.ProgressLocation.Notification;
    const failure = await vscode.window.withProgress(
      { location, title: 'Installing for CuteSmith', cancellable: true },
      (progress, token) =>
        this.runAll(
          plan,
          (message) => {
            progress.report({ message });
          },
          token,
        ),
    );
    if (failure !== undefined) {
      const show = 'Show Log';
      const message = `The installation did not come to its end: ${failure}`;
      void vscode.window.showErrorMessage(message, show).then((chosen) => {
        if (chosen === show) {
          this.log.show();
        }
      });
    }
    return failure === undefined;
  }

  private async runAll(
    plan: Plan,
    onLine: (line: string) => void,
    token: vscode.CancellationToken,
  ): Promise<string | undefined> {
    const abort = new AbortController();
    token.onCancellationRequested(() => {
      abort.abort();
    });
    for (const words of plan.commands) {
      this.log.info(`Running: ${words.join(' ')}`);
      const tell = (line: string): void => {
        this.log.info(`[install] ${line}`);
        onLine(line.slice(0, 80));
      };
      const { failure } = await run(words, tell, abort.signal);
      if (failure !== undefined) {
        return failure;
      }
    }
    return undefined;
  }
}
