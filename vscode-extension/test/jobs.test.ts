import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { JobList, summarise } from '../src/jobs';
import type { State, JobState } from '../src/protocol';

function job(name: string, state: State, message = ''): JobState {
  return { uri: 'file:///m.py', class: name, state, stage: '', message, best: null };
}

const NOTHING = { device: null, dollars: 0 };
const FACTS = 'Device: not known before the first job\nSpent on models since the start: $0.00';

describe('the status bar', () => {
  test('names the running job and counts the others', () => {
    const summary = summarise([job('A', 'ready'), job('B', 'running', 'compiling'), job('C', 'running')], NOTHING);
    assert.equal(summary.text, '$(sync~spin) CuteSmith: B +1');
    assert.equal(summary.tooltip, `B: compiling\nC: running\nA: ready\n${FACTS}`);
  });

  test('counts what waits for a decision, measured or only compiled', () => {
    assert.equal(summarise([job('A', 'ready'), job('B', 'compiled')], NOTHING).text, '$(check) CuteSmith: 2 to review');
  });

  test('says nothing of jobs that are over', () => {
    const over: State[] = ['idle', 'failed', 'accepted', 'stale', 'cancelled'];
    const summary = summarise(
      over.map((state) => job(state, state)),
      NOTHING,
    );
    assert.deepEqual(summary, { text: '$(chip) CuteSmith', tooltip: `No kernel is being made.\n${FACTS}` });
  });
});

test('the status bar tells the device and what models cost', () => {
  const shown = summarise([], { device: 'NVIDIA H200', dollars: 1.234 });
  assert.equal(shown.text, '$(chip) CuteSmith · $1.23');
  assert.match(shown.tooltip, /^Device: NVIDIA H200\nSpent on models since the start: \$1\.23$/m);
  assert.match(summarise([], { device: 'none', dollars: null }).tooltip, /compiled only\n.*not known/);
});

describe('the job list', () => {
  test('holds one state a class, the last one told', () => {
    const jobs = new JobList();
    jobs.update(job('A', 'running'));
    jobs.update({ ...job('A', 'running'), uri: 'file:///other.py' });
    jobs.update(job('A', 'ready'));
    assert.deepEqual(
      jobs.all.map(({ uri, state }) => [uri, state]),
      [
        ['file:///m.py', 'ready'],
        ['file:///other.py', 'running'],
      ],
    );
  });

  test('forgets everything when replaced', () => {
    const jobs = new JobList();
    jobs.update(job('A', 'running'));
    jobs.replace([job('B', 'ready')]);
    assert.deepEqual(
      jobs.all.map((each) => each.class),
      ['B'],
    );
  });
});
