import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { JobList, summarise } from '../src/jobs';
import type { State, JobState } from '../src/protocol';

function job(name: string, state: State, message = ''): JobState {
  return { uri: 'file:///m.py', class: name, state, stage: '', message, best: null };
}

describe('the status bar', () => {
  test('names the running job and counts the others', () => {
    const summary = summarise([job('A', 'ready'), job('B', 'running', 'compiling'), job('C', 'running')]);
    assert.equal(summary.text, '$(sync~spin) CuteSmith: B +1');
    assert.equal(summary.tooltip, 'B: compiling\nC: running\nA: ready');
  });

  test('counts what waits for a decision, measured or only compiled', () => {
    assert.equal(summarise([job('A', 'ready'), job('B', 'compiled')]).text, '$(check) CuteSmith: 2 to review');
  });

  test('says nothing of jobs that are over', () => {
    const over: State[] = ['idle', 'failed', 'accepted', 'stale', 'cancelled'];
    const summary = summarise(over.map((state) => job(state, state)));
    assert.deepEqual(summary, { text: '$(chip) CuteSmith', tooltip: 'No kernel is being made.' });
  });
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
