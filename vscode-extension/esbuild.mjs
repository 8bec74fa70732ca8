// Bundles the extension into dist/, or with --tests its unit tests into out/test/.
import { readdirSync, rmSync } from 'node:fs';
import { build, context } from 'esbuild';
import { writeThirdPartyLicenses } from './licenses.mjs';

const flags = new Set(process.argv.slice(2));
const production = flags.has('--production');
const common = { bundle: true, platform: 'node', target: 'node20', logLevel: 'warning' };
const extension = {
  ...common,
  // The client is most of the code, and is read when a server starts: activating reads the rest alone.
  entryPoints: ['src/extension.ts', 'src/client.ts'],
  outdir: 'dist',
  format: 'cjs',
  external: ['vscode', './client'],
  supported: { 'dynamic-import': false },
  minify: production,
  sourcemap: !production,
  metafile: true,
};
const tests = {
  ...common,
  entryPoints: readdirSync('test', { recursive: true })
    .filter((name) => name.endsWith('.test.ts'))
    .map((name) => `test/${name}`),
  outdir: 'out/test',
  format: 'cjs',
  sourcemap: 'inline',
};

if (flags.has('--tests')) {
  rmSync('out', { recursive: true, force: true });
  await build(tests);
} else if (flags.has('--watch')) {
  await (await context(extension)).watch();
} else {
  rmSync('dist', { recursive: true, force: true });
  const { metafile } = await build(extension);
  writeThirdPartyLicenses(metafile, 'dist/THIRD_PARTY_LICENSES.txt');
}
