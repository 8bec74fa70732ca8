// A project in a temporary folder, the editor on it, and the steps done there.
import { copyFileSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { Editor } from './editor.mjs';
import { Steps } from './steps.mjs';

const { CUTESMITH_PYTHON, E2E_EXAMPLES, E2E_OUTPUT, E2E_PICTURES, E2E_VSIX } = process.env;

/** The interpreter that has cutesmith. */
export const PYTHON = CUTESMITH_PYTHON;

export class Project {
  constructor(name) {
    this.name = name;
    this.folder = mkdtempSync(join(tmpdir(), 'cutesmith-e2e-'));
    this.workspace = join(this.folder, 'project');
    mkdirSync(this.workspace);
    this.steps = new Steps(() => this.#tellWhy());
  }

  path(file) {
    return join(this.workspace, file);
  }

  addExample(file) {
    copyFileSync(join(E2E_EXAMPLES, file), this.path(file));
  }

  add(file, text) {
    mkdirSync(dirname(this.path(file)), { recursive: true });
    writeFileSync(this.path(file), text);
  }

  /** A shell script beside the project; its path. */
  addScript(name, text) {
    const path = join(this.folder, name);
    writeFileSync(path, `#!/bin/sh\n${text}\n`, { mode: 0o755 });
    return path;
  }

  /** An interpreter that runs ours with these options; its path. */
  addPython(name, options) {
    return this.addScript(name, `exec ${PYTHON} ${options} "$@"`);
  }

  read(file) {
    return readFileSync(this.path(file), 'utf8');
  }

  /** VS Code with the packaged extension and `more` packages, on a file of the project; `ai`: with its language models. */
  async openEditor(file, settings, { trusted = false, more = [], ai = false } = {}) {
    const log = join(E2E_OUTPUT, `${this.name}-code-server.log`);
    this.editor = new Editor({ folder: this.folder, log, settings, trusted, ai });
    await this.editor.start(this.workspace, [E2E_VSIX, ...more]);
    await this.editor.browse(file);
    return this.editor;
  }

  step(name, action) {
    return this.steps.step(name, action);
  }

  /** A picture for the documentation. */
  async picture(name) {
    const file = join(E2E_OUTPUT, name);
    await this.editor.page.screenshot({ path: file });
    if (E2E_PICTURES) {
      copyFileSync(file, join(E2E_PICTURES, name));
    }
  }

  async finish() {
    await this.#end();
    this.steps.finish();
  }

  async #end() {
    await this.editor?.close();
    rmSync(this.folder, { recursive: true, force: true });
  }

  async #tellWhy() {
    const picture = join(E2E_OUTPUT, `${this.name}-failure.png`);
    await this.editor?.page.screenshot({ path: picture }).catch(() => undefined);
    console.log(`--- on screen\n${await this.editor?.describe()}\n--- the last picture: ${picture}`);
    await this.#end();
  }
}
