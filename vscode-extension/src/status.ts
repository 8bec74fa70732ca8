import * as vscode from 'vscode';
import { type JobList, type Known, type Summary, summarise } from './jobs';

/** `idle`: nothing that is open needs a server. */
export type ServerStatus = 'idle' | 'starting' | 'running' | 'stopped';

const NOT_RUNNING: Readonly<Record<Exclude<ServerStatus, 'running'>, Summary>> = {
  idle: { text: '$(chip) CuteSmith', tooltip: 'No open file holds an nn.Module: nothing runs.' },
  starting: { text: '$(sync~spin) CuteSmith', tooltip: 'The CuteSmith server is starting.' },
  stopped: { text: '$(warning) CuteSmith', tooltip: 'The CuteSmith server is not running: see the log.' },
};

/** The status bar item: the server's state, its device, what its jobs are doing, and what models cost. */
export class StatusBar implements vscode.Disposable {
  private readonly item = vscode.window.createStatusBarItem('cutesmith.status', vscode.StatusBarAlignment.Left, 0);

  constructor(command: string) {
    this.item.name = 'CuteSmith';
    this.item.command = command;
    this.item.show();
  }

  show(status: ServerStatus, jobs: JobList, known: Known): void {
    const isStopped = status === 'stopped';
    this.item.backgroundColor = isStopped ? new vscode.ThemeColor('statusBarItem.warningBackground') : undefined;
    const { text, tooltip } = status === 'running' ? summarise(jobs.all, known) : NOT_RUNNING[status];
    this.item.text = text;
    this.item.tooltip = withLinks(tooltip);
    this.item.accessibilityInformation = { label: text.replaceAll(/\$\([^)]*\)\s*/g, '') };
  }

  dispose(): void {
    this.item.dispose();
  }
}

/** Class names and messages come from the user's files: they are text here, never links. */
function withLinks(tooltip: string): vscode.MarkdownString {
  const links = [
    '[Kernels](command:cutesmith.kernels.focus)',
    '[Log](command:cutesmith.showLog)',
    '[Restart](command:cutesmith.restartServer)',
    '[Check setup](command:cutesmith.checkSetup)',
    '[Copy diagnostics](command:cutesmith.copyDiagnostics)',
  ];
  const shown = new vscode.MarkdownString();
  shown.isTrusted = { enabledCommands: links.map((link) => /command:([\w.]+)/.exec(link)?.[1] ?? '') };
  shown.appendText(tooltip).appendMarkdown(`\n\n---\n\n${links.join(' · ')}`);
  return shown;
}
