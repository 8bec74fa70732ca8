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

  async chooseFilters(): Promise<void> {
    const items = Object.entries(FILTERS).map(([label, states]) => ({
      label,
      picked: this.filters.includes(label),
      description: String(this.feed.now.modules.filter((module) => states.includes(module.state)).length),
    }));
    const placeHolder = 'Show modules that are… (none: all)';
    const picked = await vscode.window.showQuickPick(items, { canPickMany: true, placeHolder });
    if (picked) {
      await this.setFilters(picked.map((item) => item.label));
    }
  }

  async setFilters(filters: readonly string[]): Promise<void> {
    await this.memory.update(FILTER_KEY, filters);
    this.show();
  }

  dispose(): void {
    this.subscription.dispose();
  }

  private get filters(): readonly string[] {
    return this.memory.get<readonly string[]>(FILTER_KEY, []);
  }

  private get shown(): readonly ModuleRow[] {
    return filtered(this.feed.now.modules, this.filters);
  }

  private show(): void {
    const { modules } = this.feed.now;
    const waiting = waitingForReview(modules);
    const tooltip = `${waiting} ${waiting === 1 ? 'kernel' : 'kernels'} to review`;
    this.tree.badge = waiting > 0 ? { value: waiting, tooltip } : undefined;
    this.tree.description = this.filters.join(', ');
    void vscode.commands.executeCommand('setContext', 'cutesmith.filtered', this.filters.length > 0);
    this.changed.fire();
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
