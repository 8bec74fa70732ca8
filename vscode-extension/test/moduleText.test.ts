import assert from 'node:assert/strict';
import { readdirSync, readFileSync } from 'node:fs';
import { test } from 'node:test';
import { mayHoldModule } from '../src/moduleText';

test('every way to an nn.Module is seen', () => {
  const texts = [
    'from torch import nn\n\nclass A(nn.Module): pass\n',
    'import torch\nclass A(torch.nn.Module):\n    pass\n',
    'import torch.nn as net\nif True:\n\tclass A(net.Module): pass\n',
    'from torch.nn import *\nclass A[T](\n    Module\n): pass\n',
    'from torch import nn\nclass Stack(nn.Sequential): pass\nclass B(Stack): pass\n',
  ];
  for (const text of texts) {
    assert.ok(mayHoldModule(text), text);
  }
});

test('every example is seen', () => {
  for (const name of readdirSync('../examples').filter((each) => each.endsWith('.py'))) {
    assert.ok(mayHoldModule(readFileSync(`../examples/${name}`, 'utf8')), name);
  }
});

test('a file without modules starts nothing', () => {
  for (const text of [
    '',
    'import torch\nx = torch.ones(3)\n',
    'class A(Base): pass\n',
    '# torch nn\nclass A:\n  pass',
  ]) {
    assert.equal(mayHoldModule(text), false, text);
  }
});

test('a long text is read in no time', () => {
  const text = `torch nn\n${'class '.repeat(200_000)}\n${'class A\n'.repeat(200_000)}`;
  const began = performance.now();
  assert.equal(mayHoldModule(text), false);
  assert.ok(performance.now() - began < 200);
});
