import assert from 'node:assert/strict';
import { existsSync, readFileSync } from 'node:fs';
import { test } from 'node:test';
import { FILTERS } from '../src/kernels/rows';
import { CLASS_COMMANDS, PaletteCommand, REVIEW_COMMANDS, ROW_COMMANDS, ViewCommand } from '../src/paletteCommands';
import {
  CHAT_REQUEST,
  JOB_CHANGED,
  JOBS_REQUEST,
  LANGUAGE_MODEL_REQUEST,
  MODULES_REQUEST,
  PROPOSAL_REQUEST,
  REPORT_REQUEST,
  ServerCommand,
  type ServerOptions,
} from '../src/protocol';

interface Manifest {
  main: string;
  icon: string;
  capabilities: { untrustedWorkspaces: { restrictedConfigurations: string[] } };
  contributes: {
    commands: { command: string }[];
    menus: Record<string, { command: string; when: string }[]>;
    keybindings: { command: string; args?: { commands: string[] } }[];
    viewsWelcome: { contents: string }[];
    configuration: { properties: Record<string, unknown> };
  };
}

const manifest = JSON.parse(readFileSync('package.json', 'utf8')) as Manifest;
const METHODS = [
  JOBS_REQUEST,
  JOB_CHANGED,
  MODULES_REQUEST,
  PROPOSAL_REQUEST,
  REPORT_REQUEST,
  LANGUAGE_MODEL_REQUEST,
  CHAT_REQUEST,
];
const contributed = manifest.contributes.commands.map((each) => each.command);
const serverProtocol = readFileSync('../server/cutesmith_server/protocol.py', 'utf8');

test('every contributed command has a handler, and every handler a title', () => {
  const handled = [CLASS_COMMANDS, ROW_COMMANDS, REVIEW_COMMANDS]
    .flatMap(Object.keys)
    .concat(Object.values(PaletteCommand), Object.values(ViewCommand));
  assert.deepEqual([...contributed].sort(), handled.sort());
});

test('no contributed command has the id of a server command, which the client registers', () => {
  const serverCommands = new Set<string>(Object.values(ServerCommand));
  assert.deepEqual(
    contributed.filter((id) => serverCommands.has(id)),
    [],
  );
});

test('menus, keys and welcome texts name commands that exist', () => {
  const own = /command:(cutesmith\.[\w.]+)/g;
  const welcomed = manifest.contributes.viewsWelcome.flatMap(({ contents }) =>
    [...contents.matchAll(own)].map((match) => match[1] ?? ''),
  );
  const listed = Object.values(manifest.contributes.menus)
    .flat()
    .map((each) => each.command);
  const keyed = manifest.contributes.keybindings.flatMap((each) => each.args?.commands ?? [each.command]);
  for (const command of [...listed, ...keyed, ...welcomed].filter((each) => !each.startsWith('list.'))) {
    assert.ok(contributed.includes(command), command);
  }
});

test('every state of a module has an action in the Kernels view', () => {
  const entries = manifest.contributes.menus['view/item/context']?.filter(({ when }) => when.includes('module:')) ?? [];
  const patterns = entries.map(({ when }) => new RegExp(/=~ \/(.*)\/$/.exec(when)?.[1] ?? '$^'));
  for (const state of Object.values(FILTERS).flat()) {
    assert.ok(
      patterns.some((pattern) => pattern.test(`module:${state}`)),
      state,
    );
  }
});

test('commands on a class are in the palette only for Python files of a running server', () => {
  const entries = new Map(manifest.contributes.menus['commandPalette']?.map((each) => [each.command, each.when]));
  for (const id of [...Object.keys(CLASS_COMMANDS), PaletteCommand.checkHere]) {
    assert.match(entries.get(id) ?? '', /^cutesmith\.running && editorLangId == python/, id);
  }
});

test('what decides which program runs, and whether models are asked, is restricted in an untrusted workspace', () => {
  assert.deepEqual(manifest.capabilities.untrustedWorkspaces.restrictedConfigurations, [
    'cutesmith.interpreter',
    'cutesmith.serverCommand',
    'cutesmith.askModel',
    'cutesmith.modelProvider',
    'cutesmith.editorModel',
  ]);
});

test('the settings the server reads are contributed', () => {
  const sent: Required<ServerOptions> = {
    interpreter: '',
    device: 'auto',
    archs: [],
    watch: 'off',
    watchRegenerates: false,
    watchMinutes: 10,
    confirmEdits: false,
    askModel: true,
    modelProvider: 'anthropic',
    trusted: false,
  };
  for (const name of Object.keys(sent).filter((each) => each !== 'trusted')) {
    assert.ok(`cutesmith.${name}` in manifest.contributes.configuration.properties, name);
  }
});

test('the icon exists', () => {
  assert.ok(existsSync(manifest.icon));
});

test('protocol.ts has the names of the server’s protocol.py, and no others', () => {
  const names = [...serverProtocol.matchAll(/^[A-Z_]+ = "(cutesmith[./]\w+)"$/gm)].map((match) => match[1]);
  assert.deepEqual(names.sort(), [...Object.values(ServerCommand), ...METHODS].sort());
});

test('the states of a job are the server’s', () => {
  const states = /^State = Literal\[([^\]]*)\]$/m.exec(serverProtocol)?.[1];
  const mirrored = /^export type State =([^;]*);$/m.exec(readFileSync('src/protocol.ts', 'utf8'))?.[1];
  assert.deepEqual(mirrored?.match(/\w+/g), states?.match(/\w+/g));
});
