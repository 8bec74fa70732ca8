import { randomBytes } from 'node:crypto';
import { basename } from 'node:path';
import * as vscode from 'vscode';
import type { ModuleFeed } from '../kernels/feed';
import { type ClassRef, type KernelReport, REPORT_REQUEST } from '../protocol';
import type { Server } from '../server';
import { lineIn, withScript } from './html';

const VIEW_TYPE = 'cutesmith.report';

interface Shown {
  readonly target: ClassRef;
  readonly panel: vscode.WebviewPanel;
  report: KernelReport;
  /** What the Kernels view said of the class when the report was made. */
  row: string;
}

/** The reports that are open: one a class, made anew when something became of it. */
export class ReportPanels implements vscode.Disposable {
  private readonly shown = new Map<string, Shown>();
  private readonly subscription: vscode.Disposable;

  constructor(
    private readonly server: Server,
    private readonly feed: ModuleFeed,
  ) {
    this.subscription = feed.onDidChange(() => void this.refresh());
  }

  async open(target: ClassRef): Promise<void> {
    const known = this.shown.get(keyOf(target));
    if (known) {
      known.panel.reveal();
      return;
    }
    const report = await this.ask(target);
    if (report) {
      this.show(target, report);
    } else {
      void vscode.window.showInformationMessage(`No kernel was tried for ${target.class} yet: generate one.`);
    }
  }

  /** Writes the report that is in front, as a page of its own, where the user says. */
  async exportActive(): Promise<void> {
    const active = [...this.shown.values()].find(({ panel }) => panel.active);
    if (!active) {
      return;
    }
    const file = vscode.Uri.parse(active.target.uri);
    const defaultUri = vscode.Uri.joinPath(file, '..', `${basename(file.path, '.py')}_${active.target.class}.html`);
    const chosen = await vscode.window.showSaveDialog({ defaultUri, filters: { HTML: ['html'] } });
    if (chosen) {
      await vscode.workspace.fs.writeFile(chosen, new TextEncoder().encode(active.report.html));
    }
  }

  dispose(): void {
    this.subscription.dispose();
    for (const { panel } of this.shown.values()) {
      panel.dispose();
    }
  }

  private show(target: ClassRef, report: KernelReport): void {
    const options = { enableScripts: true, enableFindWidget: true, localResourceRoots: [] };
    const panel = vscode.window.createWebviewPanel(
      VIEW_TYPE,
      `${target.class}: kernel report`,
      vscode.ViewColumn.Active,
      options,
    );
    const shown = { target, panel, report, row: this.rowOf(target) };
    this.shown.set(keyOf(target), shown);
    panel.webview.html = withScript(report.html, nonce());
    panel.webview.onDidReceiveMessage((message) => void openLine(shown, lineIn(message)));
    panel.onDidDispose(() => this.shown.delete(keyOf(target)));
  }

  private async refresh(): Promise<void> {
    for (const shown of this.shown.values()) {
      const row = this.rowOf(shown.target);
      const report = row === shown.row ? undefined : await this.ask(shown.target);
      if (report && report.html !== shown.report.html) {
        shown.panel.webview.html = withScript(report.html, nonce());
        shown.report = report;
      }
      shown.row = row;
    }
  }

  private rowOf(target: ClassRef): string {
    return JSON.stringify(this.feed.now.modules.find((module) => keyOf(module) === keyOf(target)) ?? null);
  }

  private ask({ uri, class: name }: ClassRef): Promise<KernelReport | null | undefined> {
    return this.server.request<KernelReport | null>(REPORT_REQUEST, { uri, class: name });
  }
}

async function openLine({ report }: Shown, line: number | undefined): Promise<void> {
  if (line === undefined || report.source === null) {
    return;
  }
  const start = new vscode.Position(line - 1, 0);
  const options = { viewColumn: vscode.ViewColumn.Beside, selection: new vscode.Range(start, start) };
  await vscode.window.showTextDocument(vscode.Uri.file(report.source), options);
}

function keyOf({ uri, class: name }: ClassRef): string {
  return `${uri}#${name}`;
}

function nonce(): string {
  return randomBytes(16).toString('base64url');
}
