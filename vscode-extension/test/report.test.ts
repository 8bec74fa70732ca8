import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { lineIn, withScript } from '../src/report/html';

const PAGE =
  '<!doctype html><html><head><meta http-equiv="Content-Security-Policy" content="default-src \'none\'">' +
  '</head><body><p>&lt;/body&gt; $&amp; $1</p></body></html>';

describe('the report in a webview', () => {
  const shown = withScript(PAGE, 'abc');

  test('may run its one script, and nothing else is allowed', () => {
    assert.match(shown, /content="default-src 'none'; script-src 'nonce-abc'"/);
    assert.equal(shown.match(/<script/g)?.length, 1);
    assert.match(shown, /<script nonce="abc">/);
  });

  test('is otherwise the page that the command line writes', () => {
    const bare = shown.replace(/<script[^]*<\/script>/, '').replace("; script-src 'nonce-abc'", '');
    assert.equal(bare, PAGE);
  });

  test('is not shown without a policy of its own', () => {
    assert.throws(() => withScript('<body></body>', 'abc'), /policy/);
  });
});

test('a message of the page names a line, or is ignored', () => {
  assert.equal(lineIn({ line: 12 }), 12);
  for (const message of [null, 3, {}, { line: '12' }, { line: 0 }, { line: 1.5 }, { line: NaN }, { line: -1 }]) {
    assert.equal(lineIn(message), undefined);
  }
});
