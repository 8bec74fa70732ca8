import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { candidatesOf, filtered, FILTERS, idOf, lookOf, waitingForReview } from '../src/kernels/rows';
import type { CandidateRow, ModuleRow, State } from '../src/protocol';

function candidate(changes: Partial<CandidateRow> = {}): CandidateRow {
  return {
    id: '0123456789ab',
    origin: 'recipe',
    stage: 'time',
    ok: true,
    precision: 'kept',
    headline: '2.1× vs torch.compile',
    path: '/p/a_cute.py',
    line: null,
    isBest: true,
    isAccepted: false,
    ...changes,
  };
}

function module(state: State, changes: Partial<ModuleRow> = {}): ModuleRow {
  const bare = { uri: 'file:///p/a.py', class: 'A', stage: '', message: '', line: 3, kernelLines: [], candidates: [] };
  return { ...bare, state, ...changes };
}

const shown = (row: ModuleRow, severalFiles = false): string =>
  lookOf({ kind: 'module', module: row }, severalFiles).description;

describe('a module', () => {
  test('says its state, then what is new', () => {
    assert.equal(shown(module('idle')), 'no kernel yet');
    assert.equal(shown(module('running', { stage: 'compile', message: 'draft 1' })), 'running · compile: draft 1');
    assert.equal(shown(module('ready', { message: '2.1× vs torch.compile' })), 'on offer · 2.1× vs torch.compile');
  });

  test('names its file where there are several', () => {
    assert.equal(shown(module('accepted'), true), 'in use · a.py');
  });

  test('has the actions of its state', () => {
    assert.equal(lookOf({ kind: 'module', module: module('stale') }, false).context, 'module:stale');
  });
});

describe('a candidate', () => {
  const look = (changes: Partial<CandidateRow>): ReturnType<typeof lookOf> =>
    lookOf({ kind: 'candidate', module: module('ready'), candidate: candidate(changes) }, false);

  test('has its speed, its precision and where it is from', () => {
    assert.equal(look({}).description, 'best · 2.1× vs torch.compile · precision kept · recipe');
    assert.equal(look({ isAccepted: true, origin: 'llm' }).description.startsWith('in use · '), true);
  });

  test('that failed says why, and where to a screen reader', () => {
    const failed = look({ ok: false, stage: 'compile', headline: 'line 3: no such name', isBest: false });
    assert.equal(failed.description, 'line 3: no such name · recipe');
    assert.match(failed.spoken, /failed at compile/);
    assert.equal(failed.icon, 'error');
  });

  test('that was never run is not shown as right', () => {
    assert.notEqual(look({ ok: null }).icon, look({ ok: true, isBest: false }).icon);
    assert.match(look({ ok: null, precision: null }).spoken, /compiled, not run/);
  });
});

test('the best candidate comes first, and every row has an id of its own', () => {
  const rows = candidatesOf(
    module('ready', { candidates: [candidate({ id: 'b', isBest: false }), candidate({ id: 'a' })] }),
  );
  assert.deepEqual(
    rows.map((row) => row.kind === 'candidate' && row.candidate.id),
    ['a', 'b'],
  );
  assert.equal(new Set(rows.map(idOf)).size, 2);
});

describe('the filter', () => {
  const all: State[] = Object.values(FILTERS).flat();

  test('has every state in exactly one of its groups', () => {
    assert.equal(new Set(all).size, all.length);
    assert.equal(all.length, 10);
  });

  test('shows everything without a choice, and what was chosen with one', () => {
    const modules = all.map((state) => module(state));
    assert.equal(filtered(modules, undefined).length, 10);
    assert.deepEqual(
      filtered(modules, 'At work').map((each) => each.state),
      ['running', 'paused'],
    );
    assert.equal(waitingForReview(modules), 3);
  });
});
