import assert from 'node:assert/strict';
import { test } from 'node:test';
import {
  chosen,
  collect,
  type Listed,
  mayHaveBegun,
  nothingToAsk,
  type Piece,
  refusal,
  tooLong,
} from '../src/model/chat';

const model = (vendor: string, id: string, maxInputTokens: number) => ({
  vendor,
  id,
  family: `${id}-family`,
  maxInputTokens,
});
const MODELS = [model('copilot', 'small', 8_000), model('copilot', 'large', 128_000), model('other', 'large', 64_000)];

// eslint-disable-next-line @typescript-eslint/require-await -- a stream in memory
async function* stream(...pieces: (Piece | Error)[]): AsyncGenerator<Piece> {
  for (const piece of pieces) {
    if (piece instanceof Error) {
      throw piece;
    }
    yield piece;
  }
}

const told = (error: unknown): string => (error as Error).message;

test('without a name the model that reads most is asked', () => {
  assert.equal(chosen(MODELS, ''), MODELS[1]);
  assert.equal(chosen<Listed>([], ''), undefined);
});

test('a model is named with its vendor, by id or family', () => {
  assert.equal(chosen(MODELS, 'other/large'), MODELS[2]);
  assert.equal(chosen(MODELS, 'copilot/small-family'), MODELS[0]);
  assert.equal(chosen(MODELS, 'large'), undefined);
});

test('an answer is put together of its text and its calls; other parts are passed over', async () => {
  const call = { name: 'submit_kernel', input: { summary: 's', source: 'x' } };
  const arrived = await collect(stream({ text: 'a' }, undefined, { call }, { text: 'b' }), 100, told);
  assert.deepEqual(arrived, { text: 'ab', calls: [call], problem: null });
});

test('an answer that is longer than was asked for is read no further', async () => {
  let read = 0;
  async function* endless(): AsyncGenerator<Piece> {
    for (;;) {
      read += 1;
      await Promise.resolve();
      yield { text: 'x'.repeat(100) };
    }
  }
  const arrived = await collect(endless(), 100, told);
  assert.deepEqual(arrived, { text: '', calls: [], problem: 'was longer than it may be' });
  assert.equal(read, 9); // 8 characters a token
});

test('an answer that breaks off says so, and what came of it is no call', async () => {
  const arrived = await collect(stream({ text: 'a' }, new Error('quota')), 100, told);
  assert.deepEqual(arrived, { text: 'a', calls: [], problem: 'broke off (quota)' });
});

test('an error before anything of the answer came is a refusal', async () => {
  await assert.rejects(collect(stream(new Error('quota')), 100, told), /quota/);
});

test('what a tool was given may be nothing', async () => {
  const arrived = await collect(stream({ call: { name: 'f', input: undefined } }), 100, told);
  assert.equal(arrived.problem, null);
});

test('every refusal is one sentence with the model and what to do', () => {
  for (const code of ['NoPermissions', 'Blocked', 'NotFound', undefined, 'new']) {
    const said = refusal('copilot/large', code, 'Too much.');
    assert.match(said, /^copilot\/large .*[^.]\.$/);
    assert.doesNotMatch(said, /\.\)|\.\./);
  }
  assert.match(refusal('a/b', undefined, ''), /its provider gives no reason/);
});

test('what the editor itself refuses costs nothing', () => {
  assert.deepEqual(['NoPermissions', 'Blocked', 'NotFound', 'Unknown', undefined].map(mayHaveBegun), [
    false,
    false,
    false,
    true,
    true,
  ]);
});

test('where there is nothing to ask, what to do is said', () => {
  assert.match(nothingToAsk('', []), /has no language model: sign in/);
  assert.match(
    nothingToAsk('a/b', MODELS),
    /names a\/b.*choose one of copilot\/small, copilot\/large, other\/large\.$/,
  );
});

test('a question that the model cannot read is not asked', () => {
  assert.equal(tooLong('a/b', 100, 100), undefined);
  assert.match(tooLong('a/b', 101, 100) ?? '', /reads 100 tokens at most, and this question has 101/);
});
