// The main job as a person does it: see a module, ask for a kernel, watch it being made, accept it, take it out again.
import assert from 'node:assert/strict';
import { existsSync } from 'node:fs';
import { Project, PYTHON } from './project.mjs';
import { until } from './steps.mjs';

const MODULE = 'new_gelu.py';
const KERNEL = 'new_gelu_cute.py';

const project = new Project('main-job');
project.addExample(MODULE);
const original = project.read(MODULE);
const hasKernel = () => existsSync(project.path(KERNEL));
const isOriginal = () => project.read(MODULE) === original;
let editor;

/** Waits until the class in the file, once saved, asks the kernel beside it. */
async function hasAccepted() {
  await editor.lens(/^CuTe kernel$/).waitFor();
  await editor.lens(/^Remove$/).waitFor();
  await editor.save();
  await until(() => /if new_gelu_cute\.supports\(self, x\):/.test(project.read(MODULE)), 'the class asks the kernel');
  assert.match(project.read(KERNEL), /^def supports\(/m);
}

await project.step('the module has a lens', async () => {
  editor = await project.openEditor(MODULE, { 'cutesmith.interpreter': PYTHON }, { trusted: true });
  await editor.lens('Generate CuTe kernel').waitFor();
  await project.picture('vscode-lens.png');
});

await project.step('Generate shows its progress in the lens and the status bar', async () => {
  await editor.lens('Generate CuTe kernel').click();
  await editor.statusBar('CuteSmith: NewGELU').waitFor();
  await editor.lens(/^compile: /).waitFor();
  await project.picture('vscode-progress.png');
});

await project.step('Cancel ends the job', async () => {
  await editor.lens('Cancel').click();
  await editor.lens('Generate CuTe kernel').waitFor();
  await editor.statusBar(/^\s*CuteSmith\s*$/).waitFor();
});

await project.step(
  'from the palette, a kernel is made and offered with a diagnostic; no file has changed',
  async () => {
    await editor.clickLine('class NewGELU');
    await editor.command('CuteSmith: Generate CuTe Kernel');
    const verdict = editor.lens(/^Accept$|^No CuTe kernel/);
    await verdict.waitFor();
    assert.equal(await verdict.innerText(), 'Accept');
    await editor.statusBar('CuteSmith: 1 to review').waitFor();
    await editor.page.locator('.squiggly-info').first().waitFor({ state: 'attached' });
    assert.equal(project.read(MODULE), original);
    assert.equal(hasKernel(), false);
  },
);

await project.step('the Kernels view has the candidate', async () => {
  await editor.command('CuteSmith: Focus on Kernels View');
  await editor.row(/NewGELU, on offer, right on the emulated device/).waitFor();
  await editor.row(/candidate [0-9a-f]{7}, right, best/).waitFor();
});

await project.step('Review opens the file side by side with itself, and the kernel', async () => {
  await editor.lens('right on the emulated device, not timed').click();
  await editor.page
    .locator('.monaco-diff-editor .modified .view-line', { hasText: 'new_gelu_cute.supports' })
    .waitFor();
  await editor.tab(KERNEL).waitFor();
  assert.equal(project.read(MODULE), original);
  await editor.command('View: Close All Editors');
  await editor.tab(KERNEL).waitFor({ state: 'detached' });
  await editor.open(MODULE);
});

await project.step('the code action Accept puts the kernel into the class', async () => {
  await editor.clickLine('class NewGELU');
  const accept = await editor.codeAction('Accept CuTe kernel');
  await project.picture('vscode-actions.png');
  await accept.click();
  await hasAccepted();
  await project.picture('vscode-accepted.png');
});

await project.step('undo takes it back, and it is on offer again', async () => {
  await editor.clickLine('class NewGELU');
  await editor.page.keyboard.press('Control+z');
  await editor.lens(/^Accept$/).waitFor();
  await editor.save();
  await until(isOriginal, 'the file is as it was');
});

await project.step('the lens accepts it, too', async () => {
  await editor.lens(/^Accept$/).click();
  await hasAccepted();
});

await project.step('Validate gives a verdict on the kernel that lies beside the module', async () => {
  await editor.clickLine('class NewGELU');
  await editor.command('CuteSmith: Validate a Kernel Against Its Module');
  await editor.pick(`Validate ${KERNEL} against NewGELU`);
  await editor.lens(/^(compile|validate): /).waitFor();
  await editor.lens(/^CuTe kernel$/).waitFor();
});

await project.step('the palette command Remove restores the file byte for byte', async () => {
  await editor.clickLine('class NewGELU');
  await editor.command('CuteSmith: Remove CuTe Kernel');
  await editor.lens(/^Remove$/).waitFor({ state: 'detached' });
  await editor.save();
  await until(isOriginal, 'the file is as it was');
  assert.equal(hasKernel(), false);
});

await project.step('Reject leaves nothing on offer', async () => {
  await editor.lens(/^Reject$/).click();
  await editor.lens('Generate CuTe kernel').waitFor();
  await editor.command('CuteSmith: Focus on Kernels View');
  await editor.row('NewGELU, no kernel yet').waitFor();
  assert.equal(isOriginal(), true);
});

await project.finish();
