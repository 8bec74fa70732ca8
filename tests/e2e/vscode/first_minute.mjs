// The first minute: nothing runs without a module; the walkthrough, the setup, the example, and how long it takes to be there.
import assert from 'node:assert/strict';
import { setTimeout as sleep } from 'node:timers/promises';
import { statSync } from 'node:fs';
import { serverProcesses } from './processes.mjs';
import { Project, PYTHON } from './project.mjs';
import { until } from './steps.mjs';

const project = new Project('first-minute');
project.add('plain.py', 'import torch\n\nprint(torch.ones(3))\n');
let editor;

await project.step('the package is under 1 MB', () => {
  assert.ok(statSync(process.env.E2E_VSIX).size < 1_000_000);
});

await project.step('a Python file without a module starts no server; the view says what to do', async () => {
  editor = await project.openEditor('plain.py', { 'cutesmith.interpreter': PYTHON }, { trusted: true });
  await editor.statusBar(/^\s*CuteSmith\s*$/).waitFor();
  await editor.command('CuteSmith: Focus on Kernels View');
  await editor.page.getByText('its classes are listed here').waitFor();
  await project.picture('vscode-welcome.png');
  await sleep(3000);
  assert.deepEqual(serverProcesses(editor.server.pid), []);
});

await project.step('activation takes under 150 ms, in the best of five windows', async () => {
  const taken = [];
  while (taken.length < 5 && !taken.some((ms) => ms < 150)) {
    await editor.page.reload();
    await editor.statusBar(/^\s*CuteSmith\s*$/).waitFor();
    await editor.clickLine('import torch');
    taken.push(await activationMs());
  }
  console.log(`           activated in ${taken.join(', ')} ms`);
  assert.ok(Math.min(...taken) < 150);
});

await project.step('the walkthrough has four steps, with pictures', async () => {
  await editor.command('Welcome: Open Walkthrough...');
  await editor.pick('Get Started with CuteSmith');
  await editor.page.locator('.getting-started-step').nth(3).waitFor();
  assert.equal(await editor.page.locator('.getting-started-step').count(), 4);
  await editor.command('View: Close Primary Side Bar'); // there is no room for the pictures beside it
  await (await editor.webview()).locator('svg').first().waitFor();
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

/** As VS Code itself tells it. Other work of the machine counts. */
async function activationMs() {
  await editor.command('Developer: Show Running Extensions');
  const list = editor.page.locator('.runtime-extensions-editor');
  const row = list.locator('.monaco-list-row', { hasText: 'CuteSmith' });
  await list.hover();
  await until(async () => {
    await editor.page.mouse.wheel(0, 200); // the slowest to come up stand first
    return (await row.count()) > 0;
  }, 'the extension is listed');
  const ms = Number(/(\d+)\s*ms/.exec(await row.innerText())?.[1]);
  await editor.page.keyboard.press('Escape');
  return ms;
}
