import * as vscode from 'vscode';
import type { Log } from '../log';
import { errorText } from '../log';
import { type ModulesResult, MODULES_REQUEST } from '../protocol';
import type { Server } from '../server';

const AFTER_JOBS_MS = 50;
const AFTER_TYPING_MS = 400;
const NOTHING: ModulesResult = { modules: [], device: null, dollars: 0 };

/** What the server knows of all modules, asked for anew after whatever may have changed it. */
export class ModuleFeed implements vscode.Disposable {
  private readonly changed = new vscode.EventEmitter<void>();
  readonly onDidChange = this.changed.event;
  private known = NOTHING;
  private timer: NodeJS.Timeout | undefined;
  private dueAt = Infinity;
  private readonly subscriptions: vscode.Disposable;

  constructor(
    private readonly server: Server,
    private readonly log: Log,
  ) {
    const onText = ({ languageId }: vscode.TextDocument): void => {
      if (languageId === 'python') {
        this.askIn(AFTER_TYPING_MS);
      }
    };
    this.subscriptions = vscode.Disposable.from(
      this.changed,
      server.onDidChange(() => {
        this.askIn(AFTER_JOBS_MS);
      }),
      vscode.workspace.onDidOpenTextDocument(onText),
      vscode.workspace.onDidCloseTextDocument(onText),
      vscode.workspace.onDidChangeTextDocument((event) => {
        onText(event.document);
      }),
    );
  }

  get now(): ModulesResult {
    return this.known;
  }

  dispose(): void {
    clearTimeout(this.timer);
    this.subscriptions.dispose();
  }

  /** A job reports often: what is due already is not put off. */
  private askIn(ms: number): void {
    const at = Date.now() + ms;
    if (at < this.dueAt) {
      clearTimeout(this.timer);
      this.dueAt = at;
      this.timer = setTimeout(() => void this.ask(), ms);
    }
  }

  private async ask(): Promise<void> {
    this.dueAt = Infinity;
    try {
      this.known = (await this.server.request<ModulesResult>(MODULES_REQUEST, {})) ?? NOTHING;
    } catch (error) {
      this.log.debug(`The server did not say what it knows of the modules: ${errorText(error)}`);
      return;
    }
    this.changed.fire();
  }
}
