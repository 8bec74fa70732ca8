import * as vscode from 'vscode';
import { ROW_COMMANDS, ViewCommand } from '../paletteCommands';
import { ServerCommand } from '../protocol';
import type { ReportPanels } from '../report/panels';
import type { Row } from './rows';
import { type KernelsView, placeOf } from './view';

export function registerRowCommands(view: KernelsView, reports: ReportPanels): vscode.Disposable {
  return vscode.Disposable.from(
    ...Object.entries(ROW_COMMANDS).map(([id, command]) => onRow(view, id, (row) => runOn(row, command))),
    onRow(view, ViewCommand.open, open),
    onRow(view, ViewCommand.report, ({ module }) => reports.open({ uri: module.uri, class: module.class })),
    onRow(view, ViewCommand.dismiss, (row) => runOn(row, dismissing(row))),
    vscode.commands.registerCommand(ViewCommand.filter, () => view.chooseFilter()),
    vscode.commands.registerCommand(ViewCommand.clearFilter, () => view.setFilter(undefined)),
  );
}

function onRow(view: KernelsView, id: string, run: (row: Row) => Promise<void>): vscode.Disposable {
  return vscode.commands.registerCommand(id, async (argument: unknown) => {
    const row = view.rowOf(argument);
    if (row) {
      await run(row);
    }
  });
}

async function runOn({ module }: Row, command: ServerCommand): Promise<void> {
  await vscode.commands.executeCommand(command, { uri: module.uri, class: module.class });
}

/** What takes a row's kernel, or what is on its way to one, off the list. */
function dismissing({ module }: Row): ServerCommand {
  if (module.state === 'running' || module.state === 'paused') {
    return ServerCommand.cancel;
  }
  return module.state === 'accepted' ? ServerCommand.remove : ServerCommand.reject;
}

async function open(row: Row): Promise<void> {
  await vscode.window.showTextDocument(...placeOf(row));
}
