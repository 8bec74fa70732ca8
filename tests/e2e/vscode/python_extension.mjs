// The interpreter that is selected in the Python extension (a stand-in for it) decides, and its change restarts the server.
import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { join } from 'node:path';
import { serverProcesses } from './processes.mjs';
import { Project, PYTHON } from './project.mjs';
import { until } from './steps.mjs';

const MODULE = 'swiglu.py';
const project = new Project('python-extension');
project.addExample(MODULE);
const bare = project.addPython('bare-python', '-S -E');
const standIn = join(project.folder, 'python.vsix');
let editor;

await project.step('in a trusted workspace the selected interpreter is taken', async () => {
  const options = ['--no-dependencies', '--allow-missing-repository', '--skip-license', '--out', standIn];
  execFileSync(process.env.E2E_VSCE, ['package', ...options], { cwd: 'python-extension', stdio: 'pipe' });
  const settings = { 'standIn.interpreters': [bare, PYTHON] };
  editor = await project.openEditor(MODULE, settings, { trusted: true, more: [standIn] });
  await editor.notification(`CuteSmith is not installed in ${bare}`).waitFor();
});

await project.step('selecting another one starts the server there', async () => {
  await editor.command('Python: Select Interpreter');
  await editor.lens('Generate CuTe kernel').waitFor();
  assert.equal(serverProcesses(editor.server.pid).length, 1);
});

await project.step('selecting the first again ends it, and says why', async () => {
  await editor.dismissNotifications();
  await editor.command('Python: Select Interpreter');
  await editor.notification(`CuteSmith is not installed in ${bare}`).waitFor();
  await until(() => serverProcesses(editor.server.pid).length === 0, 'no server');
});

await project.finish();
