// The Kernels view and the review, by keyboard alone: from the list of modules to an accepted kernel and back.
import assert from 'node:assert/strict';
import { existsSync } from 'node:fs';
import { Project, PYTHON } from './project.mjs';
import { until } from './steps.mjs';

const MODULE = 'new_gelu.py';
const KERNEL = 'new_gelu_cute.py';

const project = new Project('kernels-view');
project.addExample(MODULE);
const original = project.read(MODULE);
let editor;

const press = (key) => editor.page.keyboard.press(key);
const accepted = () => /if new_gelu_cute\.supports\(self, x\):/.test(project.read(MODULE));

/** The keyboard into the view, on its first module. */
async function enterView() {
  await editor.command('CuteSmith: Focus on Kernels View');
  await editor.focusedIn('Kernels');
  await press('Home');
}

await project.step('the view lists the module of the open file', async () => {
  editor = await project.openEditor(MODULE, { 'cutesmith.interpreter': PYTHON }, { trusted: true });
  await editor.lens('Generate CuTe kernel').waitFor();
  await editor.command('CuteSmith: Focus on Kernels View');
  await editor.row('NewGELU, no kernel yet').waitFor();
});

await project.step('a key starts a job there, which the view follows', async () => {
  await enterView();
  await press('Control+Alt+g');
  await editor.row(/NewGELU, running/).waitFor();
  await editor.row(/candidate [0-9a-f]{7}/).waitFor();
  await project.picture('vscode-kernels-running.png');
  await editor.row(/NewGELU, on offer, right on the emulated device/).waitFor();
  await editor.row(/candidate [0-9a-f]{7}, right, best/).waitFor();
});

await project.step('the filter hides it, and shows it again', async () => {
  await editor.command('CuteSmith: Filter Kernels…');
  await editor.pick('In use');
  await editor.page.getByText('No module matches the filter.').waitFor();
  await editor.command('CuteSmith: Clear Filter');
  await editor.row(/NewGELU, on offer/).waitFor();
});

await project.step('review shows the file before and after, and the kernel beside', async () => {
  await enterView();
  await press('Control+Enter');
  await editor.page
    .locator('.monaco-diff-editor .modified .view-line', { hasText: 'new_gelu_cute.supports' })
    .waitFor();
  await editor.tab(KERNEL).waitFor();
  await editor.page.locator('.editor-actions a[aria-label^="Accept CuTe Kernel"]').first().waitFor();
  await editor.page.locator('.editor-actions a[aria-label^="Reject CuTe Kernel"]').first().waitFor();
  await project.picture('vscode-review.png');
  assert.equal(project.read(MODULE), original);
});

await project.step('the same in a light theme and in high contrast', async () => {
  await editor.useTheme('Light Modern');
  await project.picture('vscode-review-light.png');
  await editor.useTheme('Dark High Contrast');
  await project.picture('vscode-review-high-contrast.png');
  await editor.useTheme('Dark Modern');
});

await project.step('a key accepts it there; the review closes, and the gutter marks its lines', async () => {
  await press('Control+Shift+Enter');
  await editor.tab(KERNEL).waitFor({ state: 'detached' });
  await editor.row(/NewGELU, in use/).waitFor();
  await press('Control+1');
  await editor.page.locator('.tab.active', { hasText: MODULE }).waitFor();
  await editor.save();
  await until(accepted, 'the class asks the kernel');
  assert.ok(existsSync(project.path(KERNEL)));
  await until(
    async () => (await editor.page.locator('.cgmr.codicon, .margin-view-overlays .cgmr').count()) >= 3,
    'marks',
  );
  await project.picture('vscode-accepted-marks.png');
});

await project.step('undo takes it back, and it is on offer again', async () => {
  await press('Control+z');
  await editor.row(/NewGELU, on offer/).waitFor();
  await editor.save();
  await until(() => project.read(MODULE) === original, 'the file is as it was');
});

await project.step('the Delete key rejects it; nothing is on offer any more', async () => {
  await enterView();
  await press('Delete');
  await editor.row('NewGELU, no kernel yet').waitFor();
  assert.equal(project.read(MODULE), original);
});

await project.finish();
