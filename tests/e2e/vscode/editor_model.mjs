// A language model of the editor's own (a stand-in for Copilot): asked after consent, without a key, and its kernel is offered.
import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { Project, PYTHON } from './project.mjs';
import { until } from './steps.mjs';

const MODULE = 'flip.py';
const HELPERS = join(import.meta.dirname, '../../helpers');
delete process.env.ANTHROPIC_API_KEY;

const project = new Project('editor-model');
const kernels = (what) =>
  execFileSync(PYTHON, ['-c', `import model_kernels as kernels; print(${what}, end="")`], {
    env: { ...process.env, PYTHONPATH: HELPERS },
  });
project.add(MODULE, kernels('kernels.MODULE'));
const standIn = join(project.folder, 'language-model.vsix');
const asked = join(project.folder, 'asked.jsonl');
const heard = () => (existsSync(asked) ? readFileSync(asked, 'utf8').trim().split('\n').map(JSON.parse) : []);
let editor;

async function askForKernel() {
  await editor.clickLine('class Flip');
  await editor.command('CuteSmith: Ask a Language Model for a CuTe Kernel');
}

await project.step('the question names the editor’s model; a no sends nothing', async () => {
  const options = ['--no-dependencies', '--allow-missing-repository', '--skip-license', '--out', standIn];
  execFileSync(process.env.E2E_VSCE, ['package', ...options], { cwd: 'language-model', stdio: 'pipe' });
  const settings = {
    'cutesmith.interpreter': PYTHON,
    'cutesmith.device': 'none',
    'cutesmith.modelProvider': 'editor',
    'cutesmith.editorModel': 'stand-in/scripted-1',
    'standIn.answer': project.path('../answer'),
    'standIn.asked': asked,
  };
  editor = await project.openEditor(MODULE, settings, { trusted: true, more: [standIn], ai: true });
  await editor.lens('Generate CuTe kernel').waitFor();
  await askForKernel();
  const dialog = editor.dialog("Ask stand-in/scripted-1 at the editor's provider stand-in for kernels");
  await dialog.getByText('Its price is not known here').waitFor();
  await project.picture('vscode-editor-model.png');
  await editor.page.keyboard.press('Escape');
  await editor.lens(/No CuTe kernel: Nothing was sent/).waitFor();
  assert.deepEqual(heard(), []);
});

await project.step('after a yes it is asked; why its provider refuses is said in a sentence', async () => {
  project.add('../answer', 'refuse');
  await askForKernel();
  await editor.dialog('Ask stand-in/scripted-1').locator('.monaco-button', { hasText: 'Allow' }).click();
  await editor.lens(/No CuTe kernel: stand-in\/scripted-1 cannot be asked now \(the quota is used up\)/).waitFor();
  assert.deepEqual(heard(), [{ messages: 2, tools: ['submit_kernel', 'submit_patch', 'name_bottleneck'] }]);
});

await project.step('Cancel cancels what it was asked, too', async () => {
  project.add('../answer', 'wait');
  await askForKernel();
  await until(() => heard().length === 2, 'it was asked again');
  await editor.lens('Cancel').click();
  await until(() => heard()[2] === 'cancelled', 'its provider was told');
  await editor.lens('Generate CuTe kernel').waitFor();
});

await project.step('its kernel is offered', async () => {
  project.add('../answer', kernels('kernels.flip()'));
  await askForKernel();
  await editor.lens(/^Accept$/).waitFor();
  await editor.lens('compiled, not validated').waitFor();
  await editor.command('CuteSmith: Focus on Kernels View');
  await editor.row(/candidate [0-9a-f]{7}, compiled, not run/).waitFor();
});

await project.finish();
