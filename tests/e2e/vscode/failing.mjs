// A candidate that fails: where and why is in the editor, with fixes; and a crash of the server loses nothing.
import { serverProcesses } from './processes.mjs';
import { Project, PYTHON } from './project.mjs';
import { until } from './steps.mjs';

const MODULE = 'new_gelu.py';
const KERNEL = 'new_gelu_cute.py';
// A kernel that a person wrote, with a name that does not exist.
const SOURCE = `import torch


def supports(module, *inputs):
    return True


def explain(module, *inputs):
    return None


def warm_up(module, *inputs):
    return None


def forward(module, x):
    return no_such_kernel(x)
`;

const project = new Project('failing');
project.addExample(MODULE);
project.add(KERNEL, SOURCE);
let editor;

await project.step('a kernel that fails is told with a squiggle, its place, and fixes', async () => {
  editor = await project.openEditor(MODULE, { 'cutesmith.interpreter': PYTHON }, { trusted: true });
  await editor.lens('Generate CuTe kernel').waitFor();
  await editor.clickLine('class NewGELU');
  await editor.command('CuteSmith: Validate a Kernel Against Its Module');
  await editor.pick(`Validate ${KERNEL} against NewGELU`);
  await editor.lens(/No CuTe kernel/).waitFor();
  await editor.page.locator('.squiggly-warning').first().waitFor({ state: 'attached' });
  await editor.command('CuteSmith: Focus on Kernels View');
  await editor.row(/NewGELU, no kernel/).waitFor();
  await editor.row(/candidate [0-9a-f]{7}, failed at/).waitFor();
  await project.picture('vscode-failed.png');
});

await project.step('the quick fix opens the candidate, where it failed', async () => {
  await editor.clickLine('class NewGELU');
  const fix = await editor.codeAction('Open the candidate that failed');
  await fix.click();
  await editor.tab(KERNEL).waitFor();
});

await project.step('a server that is killed is started again; what was typed and what was found stay', async () => {
  await editor.tab(MODULE).click();
  await editor.clickLine('class NewGELU');
  await editor.command('CuteSmith: Generate CuTe Kernel');
  await editor.lens(/^Accept$/).waitFor();
  await editor.clickLine('def get_inputs');
  await editor.page.keyboard.press('Home');
  await editor.page.keyboard.type('# typed\n');
  const [before] = serverProcesses(editor.server.pid);
  process.kill(before, 'SIGKILL');
  await until(() => serverProcesses(editor.server.pid).some((pid) => pid !== before), 'another server');
  await editor.lens(/^Accept$/).waitFor();
  await editor.row(/NewGELU, on offer/).waitFor();
  await editor.page.locator('.view-line', { hasText: '# typed' }).waitFor();
});

await project.step('a job that a crash interrupts goes on when it is resumed', async () => {
  await editor.clickLine('class NewGELU');
  await editor.command('CuteSmith: Generate CuTe Kernel');
  await editor.lens(/^(compile|validate): /).waitFor();
  process.kill(serverProcesses(editor.server.pid)[0], 'SIGKILL');
  await editor.lens('CuTe kernel paused: resume').click();
  await editor.lens(/^Accept$/).waitFor();
});

await project.finish();
