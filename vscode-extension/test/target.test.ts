import assert from 'node:assert/strict';
import { test } from 'node:test';
import { checksIn, classesIn } from '../src/target';

const uri = 'file:///m.py';

test('classes come once each, in the order of the file', () => {
  const placed = [
    { title: '', line: 20, arguments: [{ uri, class: 'B' }] },
    { title: '', line: 3, arguments: [{ uri, class: 'A' }] },
    { title: '', line: 3, arguments: [{ uri, class: 'A', candidate: '/k.py' }] },
    { title: '', line: 8, arguments: [{ uri, class: 'A.Inner' }] },
  ];
  assert.deepEqual(classesIn(placed), [
    { line: 3, target: { uri, class: 'A' } },
    { line: 8, target: { uri, class: 'A.Inner' } },
    { line: 20, target: { uri, class: 'B' } },
  ]);
});

test('commands of other extensions are passed over', () => {
  const placed = [[], ['text'], [null], [{ uri }], undefined].map((args) => ({ title: '', line: 1, arguments: args }));
  assert.deepEqual(classesIn(placed), []);
  assert.deepEqual(checksIn(placed), []);
});

test('validations are the offers that name a kernel file', () => {
  const check = { uri, class: 'A', candidate: '/k.py' };
  const offers = [
    { title: 'Generate', line: 1, arguments: [{ uri, class: 'A' }] },
    { title: 'Validate k.py', line: 1, arguments: [check] },
  ];
  assert.deepEqual(checksIn(offers), [{ title: 'Validate k.py', target: check }]);
});
