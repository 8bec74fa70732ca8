// The first minute: nothing runs without a module; the walkthrough, the setup, the example, and how long it takes to be there.
import assert from 'node:assert/strict';
import { setTimeout as sleep } from 'node:timers/promises';
import { statSync } from 'node:fs';
import { serverProcesses } from './processes.mjs';
import { Project, PYTHON } from './project.mjs';

const project = new Project('first-minute');
project.add('plain.py', 'import torch\n\nprint(torch.ones(3))\n');
let editor;

await project.step('the package is under 1 MB', () => {
  assert.ok(statSync(process.env.E2E_VSIX).size < 1_000_000);
});

await project.step('a Python file without a module starts no server; the view says what to do', async () => {
  editor = await project.openEditor('plain.py', { 'cutesmith.interpreter': PYTHON }, { trusted: true });
  await editor.statusBar(/^\s*CuteSmith\s*$/).waitFor({ timeout: 60_000 });
  await editor.command('CuteSmith: Focus on Kernels View');
  await editor.page.getByText('its classes are listed here').waitFor();
  await project.picture('vscode-welcome.png');
  await sleep(3000);
  assert.deepEqual(serverProcesses(editor.server.pid), []);
});

await project.step('activation takes under 150 ms', async () => {
  await editor.command('Developer: Show Running Extensions');
  const row = editor.page.locator('.runtime-extensions-editor .monaco-list-row', { hasText: 'CuteSmith' });
  const told = await row.locator('.activation-time, .activationTime').first().innerText();
  const ms = Number(/(\d+)\s*ms/.exec(told)?.[1]);
  console.log(`          activation: ${told.trim()}`);
  assert.ok(ms < 150, told);
  await editor.command('View: Close All Editors');
});

await project.step('the walkthrough has four steps with pictures', async () => {
  await editor.command('Welcome: Open Walkthrough...');
  await editor.pick('Get Started with CuteSmith');
  await editor.page.locator('.getting-started-step').nth(3).waitFor();
  assert.equal(await editor.page.locator('.getting-started-step').count(), 4);
  await sleep(1500);
  await project.picture('vscode-walkthrough.png');
});

await project.step('the setup is told check by check', async () => {
  await editor.command('CuteSmith: Check Setup');
  await editor.quickPick('PyTorch').waitFor();
  await editor.quickPick('CuTe DSL').waitFor();
  await project.picture('vscode-setup.png');
  await editor.page.keyboard.press('Escape');
});

await project.step('the example starts the server, and is listed', async () => {
  await editor.command('CuteSmith: Open an Example Module');
  await editor.lens('Generate CuTe kernel').waitFor();
  assert.equal(serverProcesses(editor.server.pid).length, 1);
  await editor.command('CuteSmith: Focus on Kernels View');
  await editor.row('NewGELU, no kernel yet').waitFor();
});

await project.step('diagnostics for a bug report hold no path of the user', async () => {
  await editor.command('CuteSmith: Copy Diagnostics for a Bug Report');
  await editor.notification(/Copied\. Keys/).waitFor();
  const text = await editor.page.evaluate(() => navigator.clipboard.readText());
  assert.match(text, /## CuteSmith diagnostics/);
  assert.match(text, /server: running/);
  assert.doesNotMatch(text, new RegExp(project.workspace));
});

await project.finish();
