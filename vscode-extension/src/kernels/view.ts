import * as vscode from 'vscode';
import type { ModuleRow } from '../protocol';
import type { ModuleFeed } from './feed';
import { candidatesOf, filtered, FILTERS, idOf, lookOf, type Row, waitingForReview } from './rows';

const VIEW = 'cutesmith.kernels';
const FILTER_KEY = 'cutesmith.kernels.filter';

/** The Kernels view: every module of the open files, with the candidates of its last job. */
export class KernelsView implements vscode.TreeDataProvider<Row>, vscode.Disposable {
  private readonly changed = new vscode.EventEmitter<void>();
  readonly onDidChangeTreeData = this.changed.event;
  private readonly tree: vscode.TreeView<Row>;
  private readonly subscription: vscode.Disposable;
  private unfolded = new Set<string>();

  constructor(
    private readonly feed: ModuleFeed,
    private readonly memory: vscode.Memento,
  ) {
    this.tree = vscode.window.createTreeView(VIEW, { treeDataProvider: this, showCollapseAll: true });
    this.subscription = vscode.Disposable.from(
      this.tree,
      this.changed,
      feed.onDidChange(() => {
        this.show();
      }),
      this.tree.onDidChangeVisibility(() => void this.unfoldNew()),
    );
    this.show();
  }

  /** The row that a command is for: the one it was called on, else the selected one. */
  rowOf(argument: unknown): Row | undefined {
    return isRow(argument) ? argument : this.tree.selection[0];
  }

  getChildren(row?: Row): Row[] {
    if (row) {
      return row.kind === 'module' ? candidatesOf(row.module) : [];
    }
    return this.shown.map((module) => ({ kind: 'module', module }));
  }

  getParent(row: Row): Row | undefined {
    return row.kind === 'candidate' ? { kind: 'module', module: row.module } : undefined;
  }

  getTreeItem(row: Row): vscode.TreeItem {
    const look = lookOf(row, new Set(this.feed.now.modules.map((module) => module.uri)).size > 1);
    const item = new vscode.TreeItem(look.label, foldingOf(row));
    item.id = idOf(row);
    item.description = look.description;
    item.iconPath = new vscode.ThemeIcon(look.icon, look.color ? new vscode.ThemeColor(look.color) : undefined);
    item.contextValue = look.context;
    item.tooltip = look.spoken;
    item.accessibilityInformation = { label: look.spoken };
    item.command = { command: 'vscode.open', title: 'Open', arguments: [...placeOf(row)] };
    return item;
  }

  async chooseFilter(): Promise<void> {
    const count = (name?: string): number => filtered(this.feed.now.modules, name).length;
    const names = Object.keys(FILTERS).map((label) => ({ label, description: String(count(label)), filter: label }));
    const all = { label: 'All modules', description: String(count()), filter: undefined };
    const picked = await vscode.window.showQuickPick([all, ...names], { placeHolder: 'Which modules to show' });
    if (picked) {
      await this.setFilter(picked.filter);
    }
  }

  async setFilter(name: string | undefined): Promise<void> {
    await this.memory.update(FILTER_KEY, name);
    this.show();
  }

  dispose(): void {
    this.subscription.dispose();
  }

  private get filter(): string | undefined {
    return this.memory.get<string>(FILTER_KEY);
  }

  private get shown(): readonly ModuleRow[] {
    return filtered(this.feed.now.modules, this.filter);
  }

  private show(): void {
    const { modules } = this.feed.now;
    const waiting = waitingForReview(modules);
    const tooltip = `${waiting} ${waiting === 1 ? 'kernel' : 'kernels'} to review`;
    this.tree.badge = waiting > 0 ? { value: waiting, tooltip } : undefined;
    this.tree.description = this.filter ?? '';
    void vscode.commands.executeCommand('setContext', 'cutesmith.filtered', this.filter !== undefined);
    this.changed.fire();
    void this.unfoldNew();
  }

  /** Shows a module's first candidates. The tree keeps a row that had no children folded when it gets some. */
  private async unfoldNew(): Promise<void> {
    if (!this.tree.visible) {
      return;
    }
    const rows = this.getChildren().filter((row) => row.module.candidates.length > 0);
    const fresh = rows.filter((row) => !this.unfolded.has(idOf(row)));
    this.unfolded = new Set(rows.map(idOf));
    for (const row of fresh) {
      await this.tree.reveal(row, { select: false, focus: false, expand: true });
    }
  }
}

/** A module's class, or a candidate's source at its first error. */
export function placeOf(row: Row): readonly [vscode.Uri, vscode.TextDocumentShowOptions] {
  const path = row.kind === 'candidate' ? row.candidate.path : null;
  const line = row.kind === 'candidate' ? row.candidate.line : row.module.line;
  const start = new vscode.Position(Math.max((line ?? 1) - 1, 0), 0);
  const uri = path === null ? vscode.Uri.parse(row.module.uri) : vscode.Uri.file(path);
  return [uri, { selection: new vscode.Range(start, start) }];
}

function foldingOf(row: Row): vscode.TreeItemCollapsibleState {
  const hasChildren = row.kind === 'module' && row.module.candidates.length > 0;
  return hasChildren ? vscode.TreeItemCollapsibleState.Expanded : vscode.TreeItemCollapsibleState.None;
}

function isRow(value: unknown): value is Row {
  return typeof value === 'object' && value !== null && 'kind' in value && 'module' in value;
}
