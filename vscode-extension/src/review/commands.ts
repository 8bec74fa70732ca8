import * as vscode from 'vscode';
import { REVIEW_COMMANDS } from '../paletteCommands';
import type { ServerCommand } from '../protocol';
import { placeIn, REVIEW_SCHEME } from './places';

/** Accept and Reject in the title bar of a review. */
export function registerReviewCommands(): vscode.Disposable {
  return vscode.Disposable.from(
    ...Object.entries(REVIEW_COMMANDS).map(([id, command]) =>
      vscode.commands.registerCommand(id, (uri?: vscode.Uri) => decide(uri, command)),
    ),
  );
}

/** `uri`: of the review document, from the title bar; by key it is the active editor's. */
async function decide(uri: vscode.Uri | undefined, command: ServerCommand): Promise<void> {
  const input = vscode.window.tabGroups.activeTabGroup.activeTab?.input;
  const shown =
    input instanceof vscode.TabInputTextDiff ? input.modified : vscode.window.activeTextEditor?.document.uri;
  const found = [uri, shown].find((each) => each?.scheme === REVIEW_SCHEME);
  const place = found && placeIn(found.query);
  if (place) {
    await vscode.commands.executeCommand(command, place.target);
  }
}
