// A real VS Code: code-server with the packaged extension, shown in headless Chromium.
import { execFileSync, spawn } from 'node:child_process';
import { existsSync, mkdirSync, openSync, readFileSync, writeFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { createServer } from 'node:net';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { until } from './steps.mjs';

const cache = process.env.E2E_CACHE;
const { chromium } = createRequire(`${cache}/`)('playwright-core');
const CODE_SERVER = `${cache}/node_modules/code-server/out/node/entry.js`;
// Far more than a quiet machine takes: what is waited for is a state, and one that is busy comes to it late.
const WAIT = 180_000;
const QUIET_SETTINGS = {
  'workbench.startupEditor': 'none',
  'workbench.editor.enablePreview': false,
  'workbench.reduceMotion': 'on',
  'workbench.colorTheme': 'Default Dark Modern',
  'workbench.secondarySideBar.defaultVisibility': 'hidden',
  'telemetry.telemetryLevel': 'off',
  'extensions.autoUpdate': false,
  'extensions.autoCheckUpdates': false,
  'extensions.ignoreRecommendations': true,
  'editor.minimap.enabled': false,
  'explorer.autoReveal': false,
  'git.enabled': false,
  'security.workspace.trust.startupPrompt': 'never',
  'security.workspace.trust.banner': 'never',
};
const CHROMIUM_FLAGS = [
  '--no-sandbox',
  '--disable-gpu',
  '--disable-quic',
  '--no-first-run',
  '--disable-background-networking',
  '--disable-component-update',
  '--disable-sync',
];

export class Editor {
  /** Its own files go into `folder`. `settings` are those of the machine. */
  constructor({ folder, log, settings, trusted, ai }) {
    this.data = join(folder, 'data');
    this.extensions = join(folder, 'extensions');
    this.log = log;
    this.config = join(folder, 'config.yaml');
    this.env = serverEnvironment(folder);
    writeFileSync(this.config, 'auth: none\n');
    const own = { 'security.workspace.trust.enabled': !trusted, 'chat.disableAIFeatures': !ai };
    this.#writeSettings('User', { ...QUIET_SETTINGS, ...own });
    this.#writeSettings('Machine', settings);
  }

  #writeSettings(scope, settings) {
    mkdirSync(join(this.data, scope), { recursive: true });
    writeFileSync(join(this.data, scope, 'settings.json'), JSON.stringify(settings));
  }

  /** Starts the VS Code server on a folder, with these extensions. */
  async start(workspace, packages) {
    this.workspace = workspace;
    const common = ['--config', this.config, '--user-data-dir', this.data, '--extensions-dir', this.extensions];
    const install = packages.flatMap((file) => ['--install-extension', file]);
    execFileSync(process.execPath, [CODE_SERVER, ...common, ...install], { env: this.env, stdio: 'pipe' });
    this.port = await freePort();
    const options = ['--bind-addr', `127.0.0.1:${this.port}`, '--disable-telemetry', '--disable-update-check'];
    const out = openSync(this.log, 'a');
    this.server = spawn(
      process.execPath,
      [CODE_SERVER, ...common, ...options, '--disable-getting-started-override', workspace],
      { env: this.env, detached: true, stdio: ['ignore', out, out] },
    );
    await answers(`http://127.0.0.1:${this.port}/healthz`);
  }

  /** Opens the browser on a file of the folder. */
  async browse(file) {
    this.browser = await chromium.launch({ executablePath: '/usr/bin/chromium', headless: true, args: CHROMIUM_FLAGS });
    const context = await this.browser.newContext({
      viewport: { width: 1120, height: 640 },
      permissions: ['clipboard-read', 'clipboard-write'],
    });
    this.page = await context.newPage();
    this.page.setDefaultTimeout(WAIT);
    this.requests = [];
    this.page.on('request', (request) => this.requests.push(request.url()));
    const host = `127.0.0.1:${this.port}`;
    const payload = [['openFile', `vscode-remote://${host}${this.workspace}/${file}`]];
    const query = new URLSearchParams({ folder: this.workspace, payload: JSON.stringify(payload) });
    await this.page.goto(`http://${host}/?${query}`);
    await this.page.waitForSelector('.monaco-workbench');
    await this.#activeTab(file).waitFor();
  }

  /** A tab by the end of its file's name. */
  tab(ending) {
    return this.page.locator(`.tab[data-resource-name$="${ending}"]`);
  }

  #activeTab(file) {
    return this.page.locator(`.tab.active[data-resource-name="${file}"]`);
  }

  /** Shows a file of the workspace's top folder. */
  async open(file) {
    await this.command('View: Show Explorer');
    await this.page.locator('.explorer-folders-view .monaco-list-row', { hasText: file }).first().dblclick();
    await this.#activeTab(file).waitFor();
  }

  /** A code lens by its text or pattern. */
  lens(text) {
    return this.page.locator('.codelens-decoration a', { hasText: text }).first();
  }

  /** A row of the Kernels view by what a screen reader says of it. */
  row(text) {
    return this.page.locator('[aria-label="Kernels"] .monaco-list-row').and(this.page.getByLabel(text)).first();
  }

  /** What the webview that is shown holds. */
  async webview() {
    return this.page.frameLocator('iframe.webview').frameLocator('iframe#active-frame');
  }

  /** The same, to run scripts in. */
  async webviewFrame() {
    const outer = await (await this.page.locator('iframe.webview').elementHandle()).contentFrame();
    return (await outer.locator('iframe#active-frame').elementHandle()).contentFrame();
  }

  /** A theme by its name, shown. */
  async useTheme(name) {
    const kind = { 'Light Modern': 'vs', 'Dark Modern': 'vs-dark', 'Dark High Contrast': 'hc-black' }[name];
    await this.command('Preferences: Color Theme');
    await this.page.locator('.quick-input-widget input').first().fill(name);
    await this.quickPick(name).click();
    await this.page.locator(`.monaco-workbench.${kind}`).waitFor();
  }

  /** A dialog that wants an answer. */
  dialog(text) {
    return this.page.locator('.monaco-dialog-box', { hasText: text });
  }

  /** A row of the list that is asked with. */
  quickPick(text) {
    return this.page.locator('.quick-input-list .monaco-list-row', { hasText: text }).first();
  }

  /** Waits until the keyboard is in the part of the window with this name. */
  async focusedIn(name) {
    await this.page.waitForFunction((label) => document.activeElement?.closest(`[aria-label="${label}"]`), name);
  }

  notification(text) {
    return this.page.locator('.notification-toast', { hasText: text }).first();
  }

  statusBar(text) {
    return this.page.locator('.statusbar-item', { hasText: text }).first();
  }

  async dismissNotifications() {
    await this.command('Notifications: Clear All Notifications');
    await this.page.locator('.notification-toast').first().waitFor({ state: 'detached' });
  }

  /** Runs a command from the palette by its whole title. */
  async command(title) {
    await this.page.keyboard.press('F1');
    const input = this.page.locator('.quick-input-widget input').first();
    await input.waitFor({ state: 'visible' });
    await input.fill(`>${title}`);
    await this.pick(title);
  }

  /** Picks an entry of the list that is asked with. */
  async pick(title) {
    await this.page.locator('.quick-input-list .monaco-list-row', { hasText: title }).first().click();
  }

  /** Whether the palette offers a command. */
  async offers(title) {
    await this.page.keyboard.press('F1');
    const input = this.page.locator('.quick-input-widget input').first();
    await input.fill(`>${title}`);
    const found = this.quickPick(title);
    await found.or(this.quickPick(/similar commands|No matching/)).waitFor();
    const isOffered = await found.isVisible();
    await this.page.keyboard.press('Escape');
    return isOffered;
  }

  /** In the workspace trust editor, which is open. */
  async trustWorkspace() {
    await this.page
      .locator('.workspace-trust-editor .monaco-button', { hasText: /^Trust$/ })
      .first()
      .click();
    await this.statusBar('Restricted Mode').waitFor({ state: 'detached' });
    await this.page.locator('.monaco-modal-editor-block .codicon-close').click();
  }

  /** Fills in a text setting that the settings editor shows, and leaves it. */
  async fillSetting(name, value) {
    const input = this.page.locator(`.settings-editor input[aria-label="${name}"]`);
    await input.fill(value);
    await until(() => this.#settingsFiles().some((text) => text.includes(value)), 'the setting is written');
    await this.page.keyboard.press('Escape');
    await input.waitFor({ state: 'detached' });
  }

  #settingsFiles() {
    const files = [join(this.data, 'User'), join(this.data, 'Machine'), join(this.workspace, '.vscode')]
      .map((folder) => join(folder, 'settings.json'))
      .filter(existsSync);
    return files.map((file) => readFileSync(file, 'utf8'));
  }

  /** Puts the cursor into a line that is on screen. */
  async clickLine(text) {
    await this.page.locator('.view-line', { hasText: text }).first().click();
  }

  async codeAction(title) {
    await this.page.keyboard.press('Control+.');
    const row = this.page.locator('.action-widget .monaco-list-row', { hasText: title }).first();
    await row.waitFor();
    return row;
  }

  async save() {
    await this.page.keyboard.press('Control+s');
    await this.page.locator('.tab.active.dirty').waitFor({ state: 'detached' });
  }

  /** What is said on screen, for a run that failed. VS Code writes extensions' logs with a native module that is not
   * built here. */
  async describe() {
    return (await this.page.locator('.notification-toast, .codelens-decoration a').allInnerTexts()).join('\n');
  }

  async close() {
    await this.browser?.close();
    if (this.server?.exitCode === null) {
      const ended = new Promise((resolve) => this.server.once('exit', resolve));
      process.kill(-this.server.pid, 'SIGTERM');
      await Promise.race([ended, sleep(5000)]);
    }
  }
}

/** The environment of code-server: nothing of an editor or npm around us, and no extension gallery. */
function serverEnvironment(folder) {
  const kept = Object.entries(process.env).filter(([name]) => !/^(VSCODE_|npm_|E2E_)/.test(name));
  return {
    ...Object.fromEntries(kept),
    XDG_DATA_HOME: join(folder, 'xdg'),
    XDG_STATE_HOME: join(folder, 'state'), // no waiting in line behind another project's jobs

    EXTENSIONS_GALLERY: JSON.stringify({ serviceUrl: 'http://127.0.0.1:9/none', itemUrl: '', resourceUrlTemplate: '' }),
  };
}

async function freePort() {
  const server = createServer();
  await new Promise((resolve) => server.listen(0, '127.0.0.1', resolve));
  const { port } = server.address();
  await new Promise((resolve) => server.close(resolve));
  return port;
}

async function answers(url) {
  for (let tries = 0; tries < 150; tries += 1) {
    const answer = await fetch(url).catch(() => undefined);
    if (answer?.ok) {
      return;
    }
    await sleep(200);
  }
  throw new Error(`nothing answers at ${url}`);
}
