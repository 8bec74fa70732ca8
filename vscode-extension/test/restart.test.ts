import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { Coalesced, CrashBudget } from '../src/restart';

/** An action whose runs end when the test says so. */
class Runs {
  readonly finish: ((error?: Error) => void)[] = [];
  readonly coalesced = new Coalesced(
    () =>
      new Promise<void>((resolve, reject) => {
        this.finish.push((error) => {
          if (error) {
            reject(error);
          } else {
            resolve();
          }
        });
      }),
  );
}

const turn = (): Promise<void> => new Promise((resolve) => setImmediate(resolve));

describe('coalesced restarts', () => {
  test('many requests during a run make one further run', async () => {
    const runs = new Runs();
    const requests = [1, 2, 3, 4].map(() => runs.coalesced.request());
    assert.equal(runs.finish.length, 1);
    runs.finish[0]?.();
    await turn();
    assert.equal(runs.finish.length, 2);
    runs.finish[1]?.();
    await Promise.all(requests);
    assert.equal(runs.finish.length, 2);
  });

  test('a request during a run is not answered by that run', async () => {
    const runs = new Runs();
    void runs.coalesced.request();
    let answered = false;
    const later = runs.coalesced.request().then(() => (answered = true));
    runs.finish[0]?.();
    await turn();
    assert.equal(answered, false);
    runs.finish[1]?.();
    await later;
  });

  test('a failed run does not swallow the request that came during it', async () => {
    const runs = new Runs();
    const requests = [runs.coalesced.request(), runs.coalesced.request()];
    runs.finish[0]?.(new Error('first'));
    await turn();
    assert.equal(runs.finish.length, 2);
    runs.finish[1]?.();
    await Promise.all(requests);
  });

  test('the last run’s failure is reported, and a later request runs again', async () => {
    const runs = new Runs();
    const failed = runs.coalesced.request();
    runs.finish[0]?.(new Error('broken'));
    await assert.rejects(failed, /broken/);
    const second = runs.coalesced.request();
    runs.finish[1]?.();
    await second;
  });
});

describe('the crash budget', () => {
  test('is spent by crashes within the window and regained after it', () => {
    let now = 0;
    const budget = new CrashBudget(2, 100, () => now);
    assert.deepEqual([budget.spend(), budget.spend(), budget.spend()], [true, true, false]);
    now = 101;
    assert.equal(budget.spend(), true);
  });

  test('never allows a loop, however slow, inside the window', () => {
    let now = 0;
    const budget = new CrashBudget(2, 100, () => now);
    const answers = Array.from({ length: 10 }, () => {
      now += 10;
      return budget.spend();
    });
    assert.deepEqual(answers.slice(2), Array<boolean>(8).fill(false));
  });
});
