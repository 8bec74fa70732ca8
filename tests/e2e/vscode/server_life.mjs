// The server's life under the extension: an interpreter that cannot run it, a change of interpreter, crashes.
import assert from 'node:assert/strict';
import { setTimeout as sleep } from 'node:timers/promises';
import { serverProcesses } from './processes.mjs';
import { Project, PYTHON } from './project.mjs';
import { until } from './steps.mjs';

const MODULE = 'rms_norm.py';
const LENS = 'Generate CuTe kernel';

const project = new Project('server-life');
project.addExample(MODULE);
const bare = project.addPython('bare-python', '-S -E');
let editor;

const servers = () => serverProcesses(editor.server.pid);

/** Waits for a server other than `before` that is the only one and stays so: restarts that follow one another are over. */
async function oneServer(before, what) {
  let last, since;
  await until(() => {
    const [server, ...others] = servers();
    if (server === undefined || others.length > 0 || server === before || server !== last) {
      last = others.length > 0 ? undefined : server;
      since = Date.now();
      return false;
    }
    return Date.now() - since > 1500;
  }, what);
  return last;
}

await project.step('an interpreter without cutesmith is said once, with what to do', async () => {
  editor = await project.openEditor(MODULE, { 'cutesmith.interpreter': bare }, { trusted: true });
  const notice = editor.notification(`CuteSmith is not installed in ${bare}`);
  await notice.waitFor();
  await notice.locator('.monaco-button', { hasText: 'Install…' }).waitFor();
  await notice.locator('.monaco-button', { hasText: 'Show Log' }).waitFor();
  await sleep(3000);
  assert.equal(await editor.page.locator('.notification-toast').count(), 1);
  assert.deepEqual(servers(), []);
});

await project.step('Install shows exactly what it will run, and runs nothing before the answer', async () => {
  await editor.notification('CuteSmith is not installed').locator('.monaco-button', { hasText: 'Install…' }).click();
  await editor.pick(`Install into ${bare}`);
  const dialog = editor.dialog('Run this?');
  await dialog.getByText(`${bare} -m pip install cutesmith`).waitFor();
  await dialog.locator('.monaco-button', { hasText: /^Run$/ }).click();
  await editor.notification('The installation did not come to its end: ').waitFor(); // this interpreter has no pip
  await editor.dismissNotifications();
});

await project.step('without a server the palette offers what restarts it, and nothing that needs it', async () => {
  assert.equal(await editor.offers('CuteSmith: Restart Server'), true);
  assert.equal(await editor.offers('CuteSmith: Generate CuTe Kernel'), false);
});

await project.step('Choose Interpreter leads to the setting, and a good one starts the server', async () => {
  await editor.command('CuteSmith: Check Setup');
  await editor.quickPick('PyTorch').getByText('not installed').waitFor();
  await editor.pick('Choose another interpreter');
  await editor.fillSetting('cutesmith.interpreter', PYTHON);
  await oneServer(undefined, 'a server');
  await editor.open(MODULE);
  await editor.lens(LENS).waitFor();
});

await project.step('restarts asked for at once end in one server', async () => {
  const [before] = servers();
  await editor.command('CuteSmith: Restart Server');
  await editor.command('CuteSmith: Restart Server');
  await editor.command('CuteSmith: Restart Server');
  await oneServer(before, 'one new server');
  await editor.lens(LENS).waitFor();
});

await project.step('a server that was killed is started again, twice', async () => {
  for (let crash = 0; crash < 2; crash += 1) {
    const before = await oneServer(undefined, 'a server');
    process.kill(before, 'SIGKILL');
    await oneServer(before, 'the server started again');
    await editor.lens(LENS).waitFor();
  }
});

await project.step('the third time it is left stopped, and said', async () => {
  process.kill(await oneServer(undefined, 'a server'), 'SIGKILL');
  await editor.notification(/keeps stopping/).waitFor();
  await sleep(3000);
  assert.deepEqual(servers(), []);
});

await project.step('Restart Server brings it back', async () => {
  await editor.command('CuteSmith: Restart Server');
  await editor.lens(LENS).waitFor();
});

await project.step('no server outlives the editor', async () => {
  const running = servers();
  await editor.page.close();
  await editor.close();
  await until(() => running.every((pid) => !exists(pid)), 'the server ended');
});

await project.finish();

function exists(pid) {
  try {
    process.kill(pid, 0);
    return true;
  } catch {
    return false;
  }
}
