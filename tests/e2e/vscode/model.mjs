// Keys and consent: the key is kept as a secret, nothing is sent without a yes to a dialog, and models can be turned off.
import assert from 'node:assert/strict';
import { createServer } from 'node:http';
import { Project, PYTHON } from './project.mjs';

const MODULE = 'new_gelu.py';
const asked = [];
const endpoint = createServer((request, response) => {
  asked.push(request.url);
  response.writeHead(500).end();
});
await new Promise((resolve) => endpoint.listen(0, '127.0.0.1', resolve));
process.env.CUTESMITH_BASE_URL = `http://127.0.0.1:${endpoint.address().port}`;
process.env.CUTESMITH_MODEL = 'claude-sonnet-5';
delete process.env.ANTHROPIC_API_KEY;

const project = new Project('model');
project.addExample(MODULE);
let editor;

await project.step('without a key, what to do is said', async () => {
  editor = await project.openEditor(
    MODULE,
    { 'cutesmith.interpreter': PYTHON, 'cutesmith.device': 'none' },
    { trusted: true },
  );
  await editor.lens('Generate CuTe kernel').waitFor();
  await editor.clickLine('class NewGELU');
  await editor.command('CuteSmith: Ask a Language Model for a CuTe Kernel');
  await editor.lens(/No CuTe kernel: No model can be asked/).waitFor();
});

await project.step('a key is asked for as a password, and taken up', async () => {
  await editor.command('CuteSmith: Set Anthropic API Key…');
  const input = editor.page.locator('.quick-input-widget input[type=password]');
  await input.fill('sk-ant-not-a-real-key');
  await editor.page.keyboard.press('Enter');
  await editor.lens('Generate CuTe kernel').waitFor();
});

await project.step(
  'consent is a dialog that says what is sent where, and what it may cost; a no sends nothing',
  async () => {
    await editor.clickLine('class NewGELU');
    await editor.command('CuteSmith: Ask a Language Model for a CuTe Kernel');
    const dialog = editor.dialog(/Ask claude-\S+ at 127\.0\.0\.1:\d+/);
    await dialog.waitFor();
    await dialog.getByText(/Sent are the module's class.*at most \$\d/).waitFor();
    await project.picture('vscode-consent.png');
    await editor.page.keyboard.press('Escape');
    await editor.lens(/No CuTe kernel: Nothing was sent/).waitFor();
    assert.deepEqual(asked, []);
  },
);

await project.step('models are turned off for the workspace by a command', async () => {
  await editor.command('CuteSmith: Turn Language Models Off or On for This Workspace');
  await editor.notification('No language model is asked in this workspace.').waitFor();
  await editor.dismissNotifications();
  await editor.clickLine('class NewGELU');
  await editor.command('CuteSmith: Ask a Language Model for a CuTe Kernel');
  await editor.notification('cutesmith.askModel is off here').waitFor();
  assert.match(project.read('.vscode/settings.json'), /"cutesmith.askModel": false/);
});

await project.finish();
endpoint.close();
