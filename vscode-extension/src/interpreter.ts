import { execFile } from 'node:child_process';
import { homedir } from 'node:os';
import { isAbsolute, join } from 'node:path';

/** Where a Python interpreter came from; the reason goes to the log. */
export interface Interpreter {
  readonly path: string;
  readonly reason: string;
}

export interface InterpreterSources {
  /** `cutesmith.interpreter`, as written by the user. */
  readonly configured: string;
  readonly workspaceFolder: string | undefined;
  readonly trusted: boolean;
  /** The interpreter selected in the Python extension, if it is there and has one. */
  readonly selected: () => Promise<string | undefined>;
}

/** What asking an interpreter for the server showed. `problem` is one sentence for the user. */
export type Probe =
  | { readonly ok: true; readonly python: string; readonly origin: string; readonly packages: Packages }
  | { readonly ok: false; readonly problem: string; readonly installable: boolean };

/** Versions of what a module's own interpreter needs for kernels to be made; "" where one is not installed. */
export interface Packages {
  readonly torch: string;
  readonly dsl: string;
}

const SERVER_PACKAGE = 'cutesmith_server';
const PROBE_DEADLINE_MS = 20_000;

// Looks the package up without importing it. The first entry of sys.path is the current folder for `-c`: nothing there
// may be imported, since opening a folder must not run its code.
const PROBE = [
  'import sys',
  'del sys.path[0]',
  'from importlib.util import find_spec',
  'from importlib.metadata import PackageNotFoundError, version',
  'def known(name):',
  '    try: return version(name)',
  "    except PackageNotFoundError: return ''",
  `spec = find_spec('${SERVER_PACKAGE}')`,
  "print('%d.%d' % sys.version_info[:2], spec.origin if spec else '', known('torch'), known('nvidia-cutlass-dsl'), sep='\\t')",
].join('\n');

/** The setting wins; then, in a trusted workspace, the Python extension's choice; then Python on PATH. */
export async function chooseInterpreter(sources: InterpreterSources): Promise<Interpreter> {
  if (sources.configured.trim() !== '') {
    const path = expandPath(sources.configured.trim(), sources.workspaceFolder);
    return { path, reason: 'the setting cutesmith.interpreter' };
  }
  if (!sources.trusted) {
    return { path: pythonOnPath(), reason: 'Python on PATH (the workspace is not trusted)' };
  }
  const selected = await sources.selected();
  if (selected) {
    return { path: selected, reason: 'the interpreter selected in the Python extension' };
  }
  return { path: pythonOnPath(), reason: 'Python on PATH (no setting, none selected in the Python extension)' };
}

/** Replaces a leading `~` and `${workspaceFolder}`; a relative path is one from the workspace folder. */
export function expandPath(path: string, workspaceFolder: string | undefined): string {
  const expanded = path.replace(/^~(?=$|[/\\])/, homedir());
  if (workspaceFolder === undefined) {
    return expanded;
  }
  const inFolder = expanded.replaceAll('${workspaceFolder}', workspaceFolder);
  const isName = !/[/\\]/.test(inFolder);
  return isName || isAbsolute(inFolder) ? inFolder : join(workspaceFolder, inFolder);
}

/** The server's command line. `-P` keeps the current folder, which is the user's, off sys.path. */
export function serverCommand(interpreter: string): readonly string[] {
  return [interpreter, '-P', '-m', SERVER_PACKAGE, 'serve'];
}

export async function probe(interpreter: string, cwd: string): Promise<Probe> {
  const answer = await run(interpreter, ['-c', PROBE], cwd);
  if (answer.failure !== undefined) {
    return { ok: false, installable: false, problem: `${interpreter} could not be run: ${answer.failure}.` };
  }
  const [python = '', origin = '', torch = '', dsl = ''] = answer.stdout.trimEnd().split('\t');
  if (isTooOld(python)) {
    const problem = `CuteSmith needs Python 3.11 or newer, and ${interpreter} is Python ${python}.`;
    return { ok: false, installable: false, problem };
  }
  if (origin === '') {
    return { ok: false, installable: true, problem: `CuteSmith is not installed in ${interpreter}.` };
  }
  return { ok: true, python, origin, packages: { torch, dsl } };
}

function pythonOnPath(): string {
  return process.platform === 'win32' ? 'python' : 'python3';
}

function isTooOld(version: string): boolean {
  const [major = 0, minor = 0] = version.split('.').map(Number);
  return major < 3 || (major === 3 && minor < 11);
}

interface Answer {
  readonly stdout: string;
  readonly failure?: string;
}

function run(file: string, args: readonly string[], cwd: string): Promise<Answer> {
  return new Promise((resolve) => {
    execFile(file, args, { cwd, timeout: PROBE_DEADLINE_MS }, (error, stdout, stderr) => {
      resolve(error ? { stdout, failure: failureOf(error, stderr) } : { stdout });
    });
  });
}

function failureOf(error: { code?: unknown; killed?: boolean; message: string }, stderr: string): string {
  if (error.code === 'ENOENT') {
    return 'there is no such program';
  }
  if (error.killed) {
    return `no answer within ${PROBE_DEADLINE_MS / 1000} seconds`;
  }
  return stderr.trim().split('\n').at(-1) || error.message;
}
