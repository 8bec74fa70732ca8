import { homedir, release, userInfo } from 'node:os';
import * as vscode from 'vscode';
import type { ModuleFeed } from './kernels/feed';
import { recentLines } from './log';
import { scrub } from './scrubbing';
import type { Server } from './server';
import { SECTION } from './settings';

/** What a bug report needs, on the clipboard, without what is nobody's business. */
export async function copyDiagnostics(server: Server, feed: ModuleFeed, version: string): Promise<void> {
  const folders = vscode.workspace.workspaceFolders?.map((folder) => folder.uri.fsPath) ?? [];
  const known = { home: homedir(), user: userInfo().username, folders };
  await vscode.env.clipboard.writeText(scrub(diagnostics(server, feed, version), known));
  const message =
    'Copied. Keys, mail addresses, your name and the names of your folders were taken out: look it over all the same.';
  void vscode.window.showInformationMessage(message);
}

function diagnostics(server: Server, feed: ModuleFeed, version: string): string {
  const states = feed.now.modules.map((module) => `${module.state}${module.stage ? ` (${module.stage})` : ''}`);
  const facts = {
    CuteSmith: version,
    server: `${server.status}, ${server.version ?? 'version unknown'}`,
    interpreter: server.interpreter ?? 'not known yet',
    'VS Code': `${vscode.version}, ${vscode.env.appName}, remote: ${vscode.env.remoteName ?? 'no'}`,
    system: `${process.platform} ${process.arch} ${release()}, Node ${process.version}`,
    'trusted workspace': String(vscode.workspace.isTrusted),
    device: feed.now.device ?? 'not known yet',
    modules: states.join(', ') || 'none',
    settings: JSON.stringify(vscode.workspace.getConfiguration().get(SECTION)),
  };
  const lines = Object.entries(facts).map(([name, value]) => `- ${name}: ${value}`);
  return ['## CuteSmith diagnostics', '', ...lines, '', '```', ...recentLines(), '```', ''].join('\n');
}
