// Opening a file runs nothing of it, and nothing runs until the workspace is trusted.
import assert from 'node:assert/strict';
import { existsSync } from 'node:fs';
import { Project, PYTHON } from './project.mjs';
import { until } from './steps.mjs';

const MODULE = 'witness.py';
// Leaves a file behind when anything runs it.
const SOURCE = `import pathlib

import torch
from torch import nn

pathlib.Path(__file__).with_suffix(".ran").touch()


class Witness(nn.Module):
    def forward(self, x):
        return x * 2


def get_inputs():
    return [torch.ones(8)]
`;

process.env.CUTESMITH_SANDBOX = '0'; // in it, the witnesses below could not leave their traces
const project = new Project('trust');
project.add(MODULE, SOURCE);
const interpreter = project.addScript('interpreter', `touch "$0.ran"\nexec ${PYTHON} "$@"`);
const command = project.addScript('own-server', `touch "$0.ran"\nexec ${PYTHON} -m cutesmith_server serve`);
const workspaceSettings = { 'cutesmith.interpreter': interpreter, 'cutesmith.serverCommand': [command] };
project.add('.vscode/settings.json', JSON.stringify(workspaceSettings));
const witnesses = { module: project.path('witness.ran'), interpreter: `${interpreter}.ran`, server: `${command}.ran` };
const whatRan = () => Object.keys(witnesses).filter((name) => existsSync(witnesses[name]));
let editor;

await project.step('modules are found in Restricted Mode, with nothing that the workspace names', async () => {
  editor = await project.openEditor(MODULE, { 'cutesmith.interpreter': PYTHON });
  await editor.statusBar('Restricted Mode').waitFor();
  await editor.lens('Generate CuTe kernel').waitFor();
  assert.deepEqual(whatRan(), []);
});

await project.step('generating is refused, with the way to trust the workspace', async () => {
  await editor.lens('Generate CuTe kernel').click();
  const notice = editor.notification('this workspace is not trusted');
  await notice.waitFor();
  assert.deepEqual(whatRan(), []);
  await notice.locator('.monaco-button', { hasText: 'Manage Workspace Trust' }).click();
});

await project.step('a trusted workspace’s own server is started, which runs nothing of the project', async () => {
  await editor.trustWorkspace();
  await until(() => whatRan().includes('server'), 'the server command was run');
  await editor.lens('Generate CuTe kernel').waitFor();
  assert.deepEqual(whatRan(), ['server']);
});

await project.step('the same lens now runs the module, in the workspace’s interpreter', async () => {
  await editor.lens('Generate CuTe kernel').click();
  await until(() => whatRan().length === 3, 'the module was run');
});

await project.finish();
