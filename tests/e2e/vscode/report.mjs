// The report of a kernel: its figures, its links to lines, accessibility, and how it looks in three themes.
import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { Project, PYTHON } from './project.mjs';

const THEMES = { light: 'Light Modern', 'high-contrast': 'Dark High Contrast', dark: 'Dark Modern' };

const project = new Project('report');
// A store with jobs of a GPU, which there is none of here.
const HELPERS = join(import.meta.dirname, '../../helpers');
const make = 'import sys; from pathlib import Path; from told_job import told_project; told_project(Path(sys.argv[1]))';
execFileSync(PYTHON, ['-c', make, project.workspace], { env: { ...process.env, PYTHONPATH: HELPERS } });
let editor, report;

await project.step('Show Kernel Report shows the figures of the last job', async () => {
  editor = await project.openEditor('a.py', { 'cutesmith.interpreter': PYTHON }, { trusted: true });
  await editor.lens(/out of date/).waitFor();
  await editor.clickLine('class A');
  await editor.command('CuteSmith: Show Kernel Report');
  report = await editor.webview();
  await report.getByRole('heading', { name: 'Roofline' }).waitFor();
  await report.getByText('2.1× vs torch.compile', { exact: true }).first().waitFor();
  assert.equal(await report.locator('svg[role=img]').count(), 4);
});

await project.step('nothing of it is refused by its own policy, and nothing comes from outside', async () => {
  const style = await report
    .locator('h2')
    .first()
    .evaluate((each) => getComputedStyle(each).borderBottomStyle);
  assert.equal(style, 'solid');
  const outside = editor.requests.filter(
    (url) => !/^(https?:\/\/(127\.0\.0\.1|localhost)[:/]|data:|blob:|vscode-)/.test(url),
  );
  assert.deepEqual(outside, []);
});

for (const [name, theme] of Object.entries(THEMES)) {
  await project.step(`${name}: axe finds nothing serious`, async () => {
    await editor.useTheme(theme);
    await report.locator(`body.vscode-${name}`).waitFor();
    await project.picture(`vscode-report-${name}.png`);
    const found = await axe(await editor.webviewFrame());
    assert.deepEqual(found, []);
  });
}

await project.step('a hint leads to its line of the kernel, by key', async () => {
  await report.getByRole('link', { name: 'line 5' }).first().focus();
  await editor.page.keyboard.press('Enter');
  await editor.tab('a_cute.py').waitFor();
  await editor.statusBar('Ln 5, Col 1').waitFor();
});

await project.finish();

async function axe(frame) {
  await frame.evaluate(`${readFileSync(process.env.E2E_AXE, 'utf8')}; undefined`);
  const { violations } = await frame.evaluate(() => globalThis.axe.run(document));
  return violations
    .filter(({ impact }) => impact === 'serious' || impact === 'critical')
    .map(({ id, nodes }) => `${id}: ${nodes.map((node) => node.html.slice(0, 120)).join(' | ')}`);
}
