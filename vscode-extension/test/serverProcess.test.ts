import assert from 'node:assert/strict';
import { test } from 'node:test';
import { ServerProcess } from '../src/serverProcess';

const node = process.execPath;
const quiet = (): void => undefined;

test('passes on stderr line by line and keeps the last words', async () => {
  const lines: string[] = [];
  const script = 'console.error("Traceback"); console.error("ImportError: no pygls"); process.exitCode = 1';
  const server = await ServerProcess.start([node, '-e', script], undefined, (line) => lines.push(line));
  assert.equal(await server.exited, 'exit code 1');
  assert.deepEqual(lines, ['Traceback', 'ImportError: no pygls']);
  assert.equal(server.lastWords, 'ImportError: no pygls');
});

test('a program that does not exist is an error, not an event nobody hears', async () => {
  await assert.rejects(ServerProcess.start(['/no/such/server'], undefined, quiet), /ENOENT/);
});

test('a server that ignores its end is killed after the grace', async () => {
  const script = 'process.on("SIGTERM", () => {}); setInterval(() => {}, 1000)';
  const server = await ServerProcess.start([node, '-e', script], undefined, quiet);
  await server.end(50);
  assert.equal(await server.exited, 'ended by SIGKILL');
});

test('a server that ends by itself within the grace is left alone', async () => {
  const server = await ServerProcess.start([node, '-e', 'process.stdin.resume()'], undefined, quiet);
  server.child.stdin.end();
  await server.end(10_000);
  assert.equal(await server.exited, 'exit code 0');
});
