import assert from 'node:assert/strict';
import { test } from 'node:test';
import { classesIn } from '../src/target';

const uri = 'file:///m.py';

test('classes come once each, in the order of the file', () => {
  const placed = [
    { line: 20, arguments: [{ uri, class: 'B' }] },
    { line: 3, arguments: [{ uri, class: 'A' }] },
    { line: 3, arguments: [{ uri, class: 'A', candidate: '/k.py' }] },
    { line: 8, arguments: [{ uri, class: 'A.Inner' }] },
  ];
  assert.deepEqual(classesIn(placed), [
    { line: 3, target: { uri, class: 'A' } },
    { line: 8, target: { uri, class: 'A.Inner' } },
    { line: 20, target: { uri, class: 'B' } },
  ]);
});

test('commands of other extensions are passed over', () => {
  const placed = [[], ['text'], [null], [{ uri }], undefined].map((args) => ({ line: 1, arguments: args }));
  assert.deepEqual(classesIn(placed), []);
});
