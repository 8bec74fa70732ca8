import { basename, dirname } from 'node:path';
import * as vscode from 'vscode';
import type { ModuleFeed } from '../kernels/feed';
import { type ClassRef, type Proposal, PROPOSAL_REQUEST } from '../protocol';
import type { Server } from '../server';
import { placeIn, queryOf, REVIEW_SCHEME } from './places';

/** The texts of open reviews, kept up to date; a review whose kernel is no more on offer is closed. */
export class ReviewDocuments implements vscode.TextDocumentContentProvider, vscode.Disposable {
  private readonly changed = new vscode.EventEmitter<vscode.Uri>();
  readonly onDidChange = this.changed.event;
  private readonly subscription: vscode.Disposable;

  constructor(
    private readonly server: Server,
    feed: ModuleFeed,
  ) {
    this.subscription = vscode.Disposable.from(
      this.changed,
      vscode.workspace.registerTextDocumentContentProvider(REVIEW_SCHEME, this),
      feed.onDidChange(() => void this.refresh()),
    );
  }

  /** Shows a class's kernel on offer: the file before and after, and the kernel beside. False where there is none. */
  async open(target: ClassRef): Promise<boolean> {
    const proposal = await this.proposal(target);
    if (!proposal) {
      return false;
    }
    const file = vscode.Uri.parse(target.uri);
    const query = { query: queryOf({ target, part: 'after' }) };
    const after = vscode.Uri.from({ scheme: REVIEW_SCHEME, path: file.path, ...query });
    const title = `${target.class} with its CuTe kernel (${proposal.headline})`;
    await vscode.commands.executeCommand('vscode.diff', file, after, title, { preview: false });
    await this.openKernel(target, file, proposal);
    return true;
  }

  async provideTextDocumentContent(uri: vscode.Uri): Promise<string> {
    const place = placeIn(uri.query);
    const proposal = place && (await this.proposal(place.target));
    return (place?.part === 'kernel' ? proposal?.kernel.source : proposal?.after) ?? '';
  }

  dispose(): void {
    this.subscription.dispose();
  }

  private async openKernel(target: ClassRef, file: vscode.Uri, { kernel }: Proposal): Promise<void> {
    const path = `${dirname(file.path)}/${basename(kernel.path)}`;
    const uri = vscode.Uri.from({ scheme: REVIEW_SCHEME, path, query: queryOf({ target, part: 'kernel' }) });
    const viewColumn = vscode.ViewColumn.Beside;
    await vscode.window.showTextDocument(uri, { viewColumn, preserveFocus: true, preview: false });
  }

  private async proposal(target: ClassRef): Promise<Proposal | null | undefined> {
    return this.server.request<Proposal | null>(PROPOSAL_REQUEST, { uri: target.uri, class: target.class });
  }

  private async refresh(): Promise<void> {
    for (const document of vscode.workspace.textDocuments.filter(isReview)) {
      const place = placeIn(document.uri.query);
      const proposal = place && (await this.proposal(place.target));
      if (proposal) {
        this.changed.fire(document.uri);
      } else if (this.server.status === 'running') {
        await closeTabsOf(document.uri);
      }
    }
  }
}

function isReview(document: vscode.TextDocument): boolean {
  return document.uri.scheme === REVIEW_SCHEME && !document.isClosed;
}

async function closeTabsOf(uri: vscode.Uri): Promise<void> {
  const tabs = vscode.window.tabGroups.all.flatMap((group) => group.tabs);
  const shown = (input: unknown): vscode.Uri | undefined =>
    input instanceof vscode.TabInputTextDiff
      ? input.modified
      : input instanceof vscode.TabInputText
        ? input.uri
        : undefined;
  await vscode.window.tabGroups.close(tabs.filter((tab) => shown(tab.input)?.toString() === uri.toString()));
}
