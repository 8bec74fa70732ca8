import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { describe, test } from 'node:test';
import type { Probe } from '../src/interpreter';
import { checksOf, missingIn } from '../src/setup/checks';
import { EXAMPLE } from '../src/setup/exampleText';
import { plansFor, typed } from '../src/setup/plans';
import { run } from '../src/setup/running';

const FULL: Probe = {
  ok: true,
  python: '3.12',
  origin: '/s/cutesmith_server',
  packages: { torch: '2.11', dsl: '4.8.1' },
};
const BARE: Probe = { ok: false, problem: 'CuteSmith is not installed in p.', installable: true };
const OLD: Probe = { ok: false, problem: 'p is Python 3.9.', installable: false };

describe('what is missing', () => {
  test('is nothing where all is there, and what one cannot install is not offered', () => {
    assert.deepEqual(missingIn(FULL, false), []);
    assert.deepEqual(missingIn(OLD, false), []);
  });

  test('is the server first, unless there is one in an environment of its own', () => {
    assert.deepEqual(missingIn(BARE, false), ['cutesmith']);
    assert.deepEqual(missingIn(BARE, true), []);
  });

  test('is what modules need, beside a server that runs', () => {
    assert.deepEqual(missingIn({ ...FULL, packages: { torch: '', dsl: '' } }, false), ['torch', 'CuTe DSL']);
  });

  test('is told check by check', () => {
    const told = (probe: Probe, own?: string): string =>
      checksOf('p', 'why', probe, own)
        .map(({ ok, name }) => `${ok ? '+' : '-'}${name}`)
        .join(' ');
    assert.equal(told(FULL), '+Interpreter +CuteSmith +PyTorch +CuTe DSL');
    assert.equal(told(BARE), '+Interpreter -CuteSmith -PyTorch -CuTe DSL');
    assert.equal(told(BARE, '/own/python'), '+Interpreter +CuteSmith -PyTorch -CuTe DSL');
    assert.equal(told(OLD), '-Interpreter');
  });
});

describe('the ways to install', () => {
  test('are shown as they will be run', () => {
    const [there, apart, ...others] = plansFor(['cutesmith'], '/my venv/python', '/store/env');
    assert.equal(there && typed(there), '"/my venv/python" -m pip install cutesmith');
    assert.equal(
      apart && typed(apart),
      '"/my venv/python" -m venv /store/env\n/store/env/bin/python -m pip install cutesmith',
    );
    assert.deepEqual(others, []);
  });

  test('leave no choice for what only the project’s environment can have', () => {
    const plans = plansFor(['torch', 'CuTe DSL'], 'python3', '/store/env').map(typed);
    assert.deepEqual(plans, ['python3 -m pip install torch nvidia-cutlass-dsl apache-tvm-ffi']);
  });
});

describe('running a command', () => {
  const never = new AbortController().signal;

  test('tells its lines, and its last one when it failed', async () => {
    const lines: string[] = [];
    const tell = (line: string): void => void lines.push(line);
    assert.deepEqual(await run(['sh', '-c', 'echo one; echo two >&2'], tell, never), { failure: undefined });
    assert.deepEqual(lines.sort(), ['one', 'two']);
    assert.deepEqual(await run(['sh', '-c', 'echo why; exit 3'], tell, never), { failure: 'why' });
    assert.match((await run(['/no/such/program'], tell, never)).failure ?? '', /ENOENT/);
  });

  test('ends it, and what it started, when it is cancelled', async () => {
    const abort = new AbortController();
    const began = Date.now();
    const ending = run(
      ['sh', '-c', 'sleep 60 & echo up; wait'],
      () => {
        abort.abort();
      },
      abort.signal,
    );
    assert.deepEqual(await ending, { failure: 'cancelled' });
    assert.ok(Date.now() - began < 10_000);
  });
});

test('the example is the repository’s', () => {
  assert.equal(EXAMPLE, readFileSync('../examples/new_gelu.py', 'utf8'));
});
