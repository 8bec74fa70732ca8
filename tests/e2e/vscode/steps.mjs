// Runs the steps of a scenario in order, says how long each took, and stops at the first that fails.

import { setTimeout as sleep } from 'node:timers/promises';

export class Steps {
  #passed = 0;
  #started = Date.now();

  /** `onFailure` is called with the failing step's name before its error is thrown on. */
  constructor(onFailure) {
    this.onFailure = onFailure;
  }

  async step(name, action) {
    const began = Date.now();
    try {
      await action();
    } catch (error) {
      console.log(`FAILED after ${seconds(began)}: ${name}\n${error.stack ?? error}`);
      await this.onFailure(name);
      console.log(`${this.#passed} passed, 1 failed`);
      process.exit(1);
    }
    this.#passed += 1;
    console.log(`ok ${seconds(began).padStart(6)}  ${name}`);
  }

  finish() {
    console.log(`in ${seconds(this.#started)}`);
    console.log(`${this.#passed} passed, 0 failed`);
  }
}

/** Waits until the condition holds; throws after three minutes. */
export async function until(condition, what) {
  for (let tries = 0; tries < 1800; tries += 1) {
    if (await condition()) {
      return;
    }
    await sleep(100);
  }
  throw new Error(`not so within three minutes: ${what}`);
}

function seconds(since) {
  return `${((Date.now() - since) / 1000).toFixed(1)} s`;
}
