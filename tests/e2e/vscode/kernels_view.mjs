// The Kernels view and the review, by keyboard alone: from the list of modules to an accepted kernel and back.
import assert from 'node:assert/strict';
import { existsSync } from 'node:fs';
import { Project, PYTHON } from './project.mjs';
import { until } from './steps.mjs';

const JOB_DEADLINE = 90_000;
const MODULE = 'new_gelu.py';
const KERNEL = 'new_gelu_cute.py';

const project = new Project('kernels-view');
project.addExample(MODULE);
const original = project.read(MODULE);
let editor;

await project.step('the view lists the module of the open file', async () => {
  editor = await project.openEditor(MODULE, { 'cutesmith.interpreter': PYTHON }, { trusted: true });
  await editor.lens('Generate CuTe kernel').waitFor({ timeout: 60_000 });
  await editor.command('CuteSmith: Focus on Kernels View');
  await editor.row('NewGELU, no kernel yet').waitFor();
  await editor.focusedIn('Kernels');
  await project.picture('kernels-idle.png');
});

await project.step('a key starts a job there, which the view follows', async () => {
  await editor.page.keyboard.press('ArrowDown');
  await editor.page.keyboard.press('Control+Alt+g');
  await editor.row(/NewGELU, running/).waitFor();
  await editor.row(/candidate [0-9a-f]{7}, compiled, not run/).waitFor({ timeout: JOB_DEADLINE });
  await project.picture('kernels-running.png');
  await editor.row(/NewGELU, on offer, right on the emulated device/).waitFor({ timeout: JOB_DEADLINE });
  await editor.row(/candidate [0-9a-f]{7}, right, best/).waitFor();
  await project.picture('kernels-offer.png');
});

await project.finish();
