import assert from 'node:assert/strict';
import { test } from 'node:test';
import { answersOf, questionIn } from '../src/model/questions';
import { scrub } from '../src/scrubbing';

const KNOWN = { home: '/home/jane', user: 'jane', folders: ['/home/jane/secret-project', '/mnt/b'] };

test('no key leaves, however it is written', () => {
  const keys = [
    'sk-ant-api03-AbCdEf_123456-xyz',
    'ANTHROPIC_API_KEY=abcdef123456',
    '"apiKey": "abcdef123456"',
    'Authorization: Bearer abcdef123456',
    'x-api-key: abcdef123456',
    'https://jane:abcdef123456@host/simple',
    'hf_abcdef123456',
    'password = "abcdef123456"',
  ];
  for (const text of keys) {
    assert.doesNotMatch(scrub(text, KNOWN), /abcdef123456|AbCdEf/, text);
  }
});

test('folders, the user and addresses are taken out, the rest stays', () => {
  const text = 'jane (jane@corp.example) ran /home/jane/secret-project/a.py with /home/jane/venv, janet and /mnt/b/c';
  assert.equal(scrub(text, KNOWN), '<user> (<address>) ran <workspace 1>/a.py with ~/venv, janet and <workspace 2>/c');
  const line = 'torch 2.11.0+cu130, compile: 0.32 s, tokens: 85';
  assert.equal(scrub(line, KNOWN), line);
});

test('a question of the server is split at its question mark', () => {
  assert.deepEqual(questionIn('Ask M at h for kernels? Sent are a and b. It costs $1.'), {
    message: 'Ask M at h for kernels?',
    detail: 'Sent are a and b. It costs $1.',
  });
  assert.deepEqual(questionIn('No question.'), { message: 'No question.', detail: '' });
  assert.deepEqual(answersOf(['Allow', 'Not now']), ['Allow']);
});
