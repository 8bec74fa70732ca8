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

const project = new Project('trust');
project.add(MODULE, SOURCE);
const wasRun = () => existsSync(project.path('witness.ran'));
let editor;

await project.step('modules are found in Restricted Mode', async () => {
  editor = await project.openEditor(MODULE, { 'cutesmith.interpreter': PYTHON });
  await editor.statusBar('Restricted Mode').waitFor();
  await editor.lens('Generate CuTe kernel').waitFor({ timeout: 60_000 });
});

await project.step('generating is refused, with the way to trust the workspace, and nothing was run', async () => {
  await editor.lens('Generate CuTe kernel').click();
  const notice = editor.notification('this workspace is not trusted');
  await notice.waitFor();
  assert.equal(wasRun(), false);
  await notice.locator('.monaco-button', { hasText: 'Manage Workspace Trust' }).click();
});

await project.step('once the workspace is trusted the same lens runs the module', async () => {
  await editor.trustWorkspace();
  await editor.lens('Generate CuTe kernel').click();
  await editor.lens('Cancel').waitFor();
  await until(wasRun, 'the module was run');
});

await project.finish();
