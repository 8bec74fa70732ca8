import assert from 'node:assert/strict';
import { existsSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { homedir, tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { after, before, describe, test } from 'node:test';
import { chooseInterpreter, expandPath, probe, serverCommand } from '../src/interpreter';

const nothing = { configured: '', workspaceFolder: '/ws', trusted: true, selected: () => Promise.resolve(undefined) };
const selectsConda = (): Promise<string> => Promise.resolve('/opt/conda/bin/python');

describe('the choice of interpreter', () => {
  test('the setting wins over the Python extension', async () => {
    const chosen = await chooseInterpreter({ ...nothing, configured: '/a/python', selected: selectsConda });
    assert.equal(chosen.path, '/a/python');
    assert.match(chosen.reason, /cutesmith\.interpreter/);
  });

  test('the Python extension wins over PATH', async () => {
    assert.equal((await chooseInterpreter({ ...nothing, selected: selectsConda })).path, '/opt/conda/bin/python');
  });

  test('without a selection it is Python on PATH', async () => {
    assert.match((await chooseInterpreter(nothing)).path, /^python3?$/);
  });

  test('an untrusted workspace does not choose through the Python extension', async () => {
    const asked: string[] = [];
    const selected = (): Promise<string> => {
      asked.push('selected');
      return selectsConda();
    };
    const chosen = await chooseInterpreter({ ...nothing, trusted: false, selected });
    assert.match(chosen.path, /^python3?$/);
    assert.deepEqual(asked, []);
  });
});

describe('paths in settings', () => {
  const cases: [string, string][] = [
    ['~/venv/bin/python', join(homedir(), 'venv/bin/python')],
    ['${workspaceFolder}/.venv/bin/python', '/ws/.venv/bin/python'],
    ['.venv/bin/python', '/ws/.venv/bin/python'],
    ['python3.12', 'python3.12'],
    ['/usr/bin/python3', '/usr/bin/python3'],
    ['/home/a~b/python', '/home/a~b/python'],
  ];
  for (const [written, meant] of cases) {
    test(written, () => {
      assert.equal(expandPath(written, '/ws'), meant);
    });
  }

  test('without a folder only the home is known', () => {
    assert.equal(expandPath('${workspaceFolder}/python', undefined), '${workspaceFolder}/python');
  });
});

test('the server never sees the current folder on sys.path', () => {
  assert.deepEqual(serverCommand('/py'), ['/py', '-P', '-m', 'cutesmith_server', 'serve']);
});

describe('probing a real interpreter', () => {
  const python = existsSync('../.venv/bin/python') ? resolve('../.venv/bin/python') : 'python3';
  const folder = mkdtempSync(join(tmpdir(), 'cutesmith-probe-'));
  const sitePackages = join(folder, 'site');

  before(() => {
    mkdirSync(join(sitePackages, 'cutesmith_server'), { recursive: true });
    writeFileSync(join(sitePackages, 'cutesmith_server/__init__.py'), 'raise SystemExit("imported")\n');
    writeFileSync(join(folder, 'importlib.py'), 'raise SystemExit("the folder was on sys.path")\n');
    process.env.PYTHONNOUSERSITE = '1';
  });
  after(() => {
    rmSync(folder, { recursive: true });
  });

  test('finds the server without importing it, or anything of the current folder', async () => {
    process.env.PYTHONPATH = sitePackages;
    const found = await probe(python, folder);
    delete process.env.PYTHONPATH;
    assert.ok(found.ok, JSON.stringify(found));
    assert.equal(found.origin, join(sitePackages, 'cutesmith_server/__init__.py'));
    assert.match(found.python, /^3\.\d+$/);
  });

  test('says when the interpreter does not exist', async () => {
    const missing = join(folder, 'no-python');
    const found = await probe(missing, folder);
    assert.deepEqual(found, {
      ok: false,
      installable: false,
      problem: `${missing} could not be run: there is no such program.`,
    });
  });

  test('says what a failing interpreter said last', async () => {
    const broken = join(folder, 'broken');
    writeFileSync(broken, '#!/bin/sh\necho first >&2\necho "libpython is missing" >&2\nexit 3\n', { mode: 0o755 });
    const found = await probe(broken, folder);
    assert.ok(!found.ok);
    assert.match(found.problem, /could not be run: libpython is missing\.$/);
  });

  test('says that a Python is too old', async () => {
    const old = join(folder, 'old');
    writeFileSync(old, "#!/bin/sh\nprintf '3.10\\t/x/__init__.py\\n'\n", { mode: 0o755 });
    const found = await probe(old, folder);
    assert.ok(!found.ok);
    assert.match(found.problem, /needs Python 3\.11 or newer, and .*old is Python 3\.10\.$/);
  });

  test('offers to install where the server is absent', async () => {
    const bare = join(folder, 'bare');
    writeFileSync(bare, `#!/bin/sh\nexec ${python} -S -E "$@"\n`, { mode: 0o755 });
    const found = await probe(bare, folder);
    assert.deepEqual(found, { ok: false, installable: true, problem: `CuteSmith is not installed in ${bare}.` });
  });
});
