import * as vscode from 'vscode';
import { summarise, type JobList } from './jobs';

export type ServerStatus = 'starting' | 'running' | 'stopped';

/** The status bar item: the server's state, then what its jobs are doing. A click opens the log. */
export class StatusBar implements vscode.Disposable {
  private readonly item = vscode.window.createStatusBarItem('cutesmith.status', vscode.StatusBarAlignment.Left, 0);

  constructor(command: string) {
    this.item.name = 'CuteSmith';
    this.item.command = command;
    this.item.show();
  }

  show(status: ServerStatus, jobs: JobList): void {
    const stopped = status === 'stopped';
    this.item.backgroundColor = stopped ? new vscode.ThemeColor('statusBarItem.warningBackground') : undefined;
    if (status === 'running') {
      ({ text: this.item.text, tooltip: this.item.tooltip } = summarise(jobs.all));
    } else if (stopped) {
      this.item.text = '$(warning) CuteSmith';
      this.item.tooltip = 'The CuteSmith server is not running. Click for the log.';
    } else {
      this.item.text = '$(sync~spin) CuteSmith';
      this.item.tooltip = 'The CuteSmith server is starting.';
    }
  }

  dispose(): void {
    this.item.dispose();
  }
}
