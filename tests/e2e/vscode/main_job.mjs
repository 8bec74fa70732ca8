// The main job as a person does it: see a module, ask for a kernel, watch it being made, accept it, take it out again.
import assert from 'node:assert/strict';
import { existsSync } from 'node:fs';
import { Project, PYTHON } from './project.mjs';

const JOB_DEADLINE = 90_000;
const MODULE = 'new_gelu.py';
const KERNEL = 'new_gelu_cute.py';
const WITNESS = 'witness.py';
// Leaves a file behind when anything runs it.
const WITNESS_SOURCE = `import pathlib

from torch import nn

pathlib.Path(__file__).with_suffix(".ran").touch()


class Witness(nn.Module):
    def forward(self, x):
        return x * 2


def get_inputs():
    return []
`;

const project = new Project('main-job');
project.addExample(MODULE);
project.add(WITNESS, WITNESS_SOURCE);
const original = project.read(MODULE);
let editor;

await project.step('VS Code starts with the extension, in Restricted Mode', async () => {
  editor = await project.openEditor(MODULE, { 'cutesmith.interpreter': PYTHON });
  await editor.statusBar('Restricted Mode').waitFor();
});

await project.step('modules are found', async () => {
  await editor.lens('Generate CuTe kernel').waitFor({ timeout: 60_000 });
});

await project.step('generating is refused until the workspace is trusted, and nothing was run', async () => {
  await editor.open(WITNESS);
  await editor.lens('Generate CuTe kernel').click();
  await editor.notification(/trust/i).waitFor();
  assert.equal(existsSync(project.path('witness.ran')), false, 'the file was run');
  await editor.dismissNotifications();
});

await project.step('trusting the workspace restarts the server', async () => {
  await editor.trustWorkspace();
  await editor.open(MODULE);
  await editor.lens('Generate CuTe kernel').waitFor();
  await project.picture('vscode-lens.png');
});

await project.step('Generate shows its progress', async () => {
  await editor.lens('Generate CuTe kernel').click();
  await editor.lens('Cancel').waitFor();
  await editor.statusBar('CuteSmith: NewGELU').waitFor();
  await project.picture('vscode-progress.png');
});

await project.step('a kernel is offered, with a diagnostic at the class', async () => {
  const verdict = editor.lens(/^Accept$|^No CuTe kernel/);
  await verdict.waitFor({ timeout: JOB_DEADLINE });
  assert.equal(await verdict.innerText(), 'Accept');
  await editor.statusBar('CuteSmith: 1 ready').waitFor();
  await editor.page.locator('.squiggly-info').first().waitFor({ state: 'attached' });
  assert.equal(project.read(MODULE), original, 'the file was changed before anything was accepted');
  assert.equal(existsSync(project.path(KERNEL)), false, 'the kernel was written before it was accepted');
  await project.picture('vscode-ready.png');
});

await project.step('the code action Accept puts the kernel into the class', async () => {
  await editor.clickLine('class NewGELU');
  await (await editor.codeAction('Accept CuTe kernel')).click();
  await editor.answerIfAsked('Accept');
  await editor.lens('Remove').waitFor();
  await editor.save();
  assert.match(project.read(MODULE), /if new_gelu_cute\.supports\(self, x\):/);
  assert.match(project.read(KERNEL), /^def supports\(/m);
  await project.picture('vscode-accepted.png');
});

await project.step('the palette command Remove restores the file byte for byte', async () => {
  await editor.clickLine('class NewGELU');
  await editor.command('CuteSmith: Remove CuTe Kernel');
  await editor.lens('Generate CuTe kernel').waitFor();
  await editor.save();
  assert.equal(project.read(MODULE), original);
});

await project.finish();
