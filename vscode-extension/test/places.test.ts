import assert from 'node:assert/strict';
import { test } from 'node:test';
import { placeIn, queryOf } from '../src/review/places';

test('a review document knows what it is of', () => {
  const target = { uri: 'file:///a%20b/ü.py', class: 'Outer.Inner' };
  assert.deepEqual(placeIn(queryOf({ target, part: 'kernel' })), { target, part: 'kernel' });
});

test('any other query is of nothing', () => {
  for (const query of ['', '{', 'null', '3', '[]', '{"uri":"a"}', '{"uri":"a","class":"B","part":"x"}']) {
    assert.equal(placeIn(query), undefined, query);
  }
});
