import assert from 'node:assert/strict';
import {
  chmodSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { dirname, join } from 'node:path';
import { describe, type TestContext, test } from 'node:test';
import { reveille } from '../../../test/support/command-line.ts';
import { temporaryFolder } from '../../../test/support/temporary.ts';
import { VERSION } from '../../wire/version.ts';
import { entriesOf } from '../connect/entries.ts';
import type { CliContext } from '../context.ts';
import { checkClients } from '../doctor/clients.ts';
import { homeAt } from '../home/home.ts';
import { PROGRAM } from '../home/package-root.ts';
import { serviceLocation } from '../service/folders.ts';
import { programIn } from '../service/lasting-copy.ts';
import { programToName } from './connect.ts';

const read = (path: string) => readFileSync(path, 'utf8');

/** A home with these files, and the command in it. */
function homeWith(t: TestContext, files: Record<string, string> = {}) {
  const home = temporaryFolder(t);
  const at = (name: string) => join(home, name);
  for (const [name, text] of Object.entries(files)) {
    mkdirSync(dirname(at(name)), { recursive: true });
    writeFileSync(at(name), text);
  }
  const connect = async (...words: string[]) => {
    const { status, stdout, stderr } = await reveille(home, ['connect', ...words, '--json']);
    return { status, stderr, ...(stdout === '' ? {} : JSON.parse(stdout)) };
  };
  return { home, at, connect };
}

const actionsOf = ({ files }: { files: { action: string }[] }) => files.map(({ action }) => action);

/** The files of each client, with entries of other programs. */
const CLIENTS: Record<string, Record<string, string>> = {
  claude: {
    '.claude.json':
      '{\n  "numStartups": 3,\n  "mcpServers": {\n    "other": { "command": "x" }\n  },\n  "userID": "u"\n}',
    '.claude/settings.json': '{"model":"opus","hooks":{"Stop":[{"hooks":[{"type":"command","command":"bell"}]}]}}\n',
  },
  codex: {
    '.codex/config.toml': 'model = "gpt-5" # good\n\n[mcp_servers.other]\ncommand = "x"\n',
    '.codex/hooks.json': '{\n\t"hooks": {}\n}\n',
  },
  gemini: { '.gemini/settings.json': '{\n  // dark\n  "ui": { "theme": "x" },\n}\n' },
  cursor: { '.cursor/mcp.json': '{"mcpServers":{"other":{"url":"https://example.com/mcp"}}}' },
};

describe('each client', () => {
  for (const [client, files] of Object.entries(CLIENTS)) {
    test(`${client}: shows, writes once, keeps modes, and undoes to the byte`, async (t) => {
      const { at, connect } = homeWith(t, files);
      const names = Object.keys(files);
      for (const name of names) chmodSync(at(name), 0o640);

      const shown = await connect(client, '--print');
      assert.deepEqual([shown.status, shown.written, actionsOf(shown)], [0, false, names.map(() => 'change')]);
      for (const name of names) assert.equal(read(at(name)), files[name]);

      const written = await connect(client, '--yes');
      assert.deepEqual([written.status, written.written], [0, true], written.stderr);
      for (const [place, name] of names.entries()) {
        assert.equal(written.files[place].backup, `${at(name)}.before-reveille`);
        assert.equal(read(`${at(name)}.before-reveille`), files[name]);
        for (const path of [at(name), `${at(name)}.before-reveille`]) assert.equal(statSync(path).mode & 0o777, 0o640);
        assert.ok(read(at(name)).includes(PROGRAM));
      }
      const texts = names.map((name) => read(at(name)));
      const again = await connect(client, '--yes');
      assert.deepEqual([again.written, actionsOf(again)], [false, names.map(() => 'none')]);
      assert.deepEqual(
        names.map((name) => read(at(name))),
        texts,
      );

      const undone = await connect(client, '--undo', '--yes');
      assert.deepEqual(
        actionsOf(undone),
        names.map(() => 'restore'),
        JSON.stringify(undone),
      );
      for (const name of names) {
        assert.equal(read(at(name)), files[name]);
        assert.deepEqual(
          readdirSync(dirname(at(name))).filter((entry) => /before-reveille|tmp$/.test(entry)),
          [],
        );
      }
    });

    test(`${client}: from nothing, and back to nothing`, async (t) => {
      const { at, connect } = homeWith(t);
      const names = Object.keys(files);
      assert.deepEqual(
        actionsOf(await connect(client, '--yes')),
        names.map(() => 'create'),
      );
      for (const name of names) assert.equal(statSync(at(name)).mode & 0o777, 0o600);
      assert.deepEqual(
        actionsOf(await connect(client, '--undo', '--yes')),
        names.map(() => 'delete'),
      );
      assert.deepEqual(
        names.filter((name) => existsSync(at(name))),
        [],
      );
    });
  }
});

test("after another program has changed the file, undo removes only this program's entries", async (t) => {
  const { at, connect } = homeWith(t, CLIENTS.claude);
  await connect('claude', '--yes');
  const { mcpServers, ...state } = JSON.parse(read(at('.claude.json')));
  writeFileSync(at('.claude.json'), JSON.stringify({ ...state, numStartups: 4, mcpServers }, null, 2));
  const { files } = await connect('claude', '--undo', '--yes');
  assert.deepEqual(actionsOf({ files }), ['change', 'restore']);
  const { mcpServers: before, ...others } = JSON.parse(CLIENTS.claude!['.claude.json']!);
  assert.deepEqual(JSON.parse(read(at('.claude.json'))), { ...others, numStartups: 4, mcpServers: before });
});

test('after connecting again from another folder, the first backup stays, and undo restores it', async (t) => {
  const text = CLIENTS.cursor!['.cursor/mcp.json']!;
  const { at, connect } = homeWith(t, CLIENTS.cursor);
  await connect('cursor', '--yes');
  const file = at('.cursor/mcp.json');
  writeFileSync(file, read(file).replaceAll(PROGRAM, '/old/bin/reveille.mjs'));
  assert.deepEqual(actionsOf(await connect('cursor', '--yes')), ['change']);
  assert.ok(!read(file).includes('/old/bin'));
  assert.deepEqual(actionsOf(await connect('cursor', '--undo', '--yes')), ['restore']);
  assert.equal(read(file), text);
});

test('nothing secret is written, and an unusual home is named', async (t) => {
  const { home, at, connect } = homeWith(t, { 'secrets.json': 'no' });
  await connect('gemini', '--yes');
  const { mcpServers, hooks } = JSON.parse(read(at('.gemini/settings.json')));
  assert.deepEqual(mcpServers.chronos.env, { REVEILLE_HOME: home });
  assert.match(
    hooks.BeforeAgent[0].hooks[0].command,
    new RegExp(`^REVEILLE_HOME=${home} .* time hook --format gemini$`),
  );
});

test('--without omits parts', async (t) => {
  const { at, connect } = homeWith(t);
  assert.deepEqual(actionsOf(await connect('claude', '--without', 'hook', 'time', '--yes')), ['create', 'none']);
  assert.deepEqual(Object.keys(JSON.parse(read(at('.claude.json'))).mcpServers), ['chronos']);
});

describe('a refusal changes nothing', () => {
  const REFUSED: [what: string, prepare: (file: string) => void, message: RegExp][] = [
    ['a broken file', (file) => writeFileSync(file, '{"a": '), /mcp\.json: line 1, column 7: value expected/],
    ['a read-only file', (file) => writeFileSync(file, '{}', { mode: 0o444 }), /is read-only \(mode 0444\)/],
    ['a folder', (file) => mkdirSync(file), /is not a regular file/],
    ['a dangling link', (file) => symlinkSync('/nowhere/at/all', file), /is a link to a missing file/],
    ['bytes that are no text', (file) => writeFileSync(file, Buffer.from([0x7b, 0xff, 0x7d])), /is not UTF-8/],
    [
      'a field twice',
      (file) => writeFileSync(file, '{"mcpServers":{},"mcpServers":{"x":{}}}'),
      /line 1, column 18: the field .+mcpServers.+ is a duplicate/,
    ],
  ];
  for (const [what, prepare, message] of REFUSED)
    test(what, async (t) => {
      const { at, connect } = homeWith(t, { '.cursor/other': '' });
      prepare(at('.cursor/mcp.json'));
      const { status, stderr } = await connect('cursor', '--yes');
      assert.equal(status, 1);
      assert.match(stderr, message);
      assert.deepEqual(readdirSync(at('.cursor')), ['mcp.json', 'other']);
    });

  test('when one of two files is broken, the other is not written either', async (t) => {
    const { at, connect } = homeWith(t, { '.claude.json': '{}', '.claude/settings.json': '[' });
    assert.equal((await connect('claude', '--yes')).status, 1);
    assert.equal(read(at('.claude.json')), '{}');
  });

  test('wrong arguments, and no terminal for a question', async (t) => {
    const { home, connect } = homeWith(t);
    for (const [words, message] of [
      [['emacs'], /no client "emacs"; clients are claude, codex/],
      [['toString'], /no client "toString"/],
      [['claude', '--without', 'x'], /--without takes alarms, time, hook/],
      [['claude-desktop', '--project'], /has no configuration for a folder/],
      [['claude', '--yes', '--test'], /--test needs --wake: reveille connect claude --yes --wake --test$/],
      [['claude', '--no-wake', '--test'], /--test needs --wake: reveille connect claude --wake --test$/],
      [['claude'], /no terminal to confirm the change; use --yes to write it, or --print to show it/],
    ] as const) {
      const { status, stderr } = await connect(...words);
      assert.equal(status, 2, stderr);
      assert.match(JSON.parse(stderr).error.message, message);
    }
    assert.deepEqual(readdirSync(home), []);
  });

  test('the path of a program in a cache of npx is not written', () => {
    const program = '/home/a/.npm/_npx/3f2a/node_modules/reveille/bin/reveille.mjs';
    assert.throws(() => entriesOf({ program, execPath: process.execPath, environment: {} }, []), {
      code: 'conflict',
      message: /_npx.* is a cache .*npm install --global reveille/,
    });
  });
});

test('with a service, its program is written instead of a temporary one', (t) => {
  const { home, at } = homeWith(t);
  const context = { environment: { HOME: home, XDG_DATA_HOME: home }, home: homeAt(at('.reveille')) };
  const { versions, current } = serviceLocation(context.environment, context.home.path);
  const cached = '/home/a/.npm/_npx/3f2a/node_modules/reveille/bin/reveille.mjs';
  const ofVersion = join(versions, '0.0.1', 'node_modules', 'reveille', 'bin', 'reveille.mjs');
  assert.equal(programToName(context, cached), cached, 'there is no service');
  mkdirSync(dirname(programIn(current)), { recursive: true });
  writeFileSync(programIn(current), '');
  for (const running of [cached, ofVersion]) assert.equal(programToName(context, running), programIn(current));
  assert.equal(programToName(context, '/usr/lib/node_modules/reveille/bin/reveille.mjs').startsWith('/usr/lib'), true);
});

test('a link is followed and reported; its target is written, and the backup is beside the link', async (t) => {
  const { home, at } = homeWith(t, { 'dotfiles/mcp.json': '{}', '.cursor/x': '' });
  symlinkSync(at('dotfiles/mcp.json'), at('.cursor/mcp.json'));
  const { stdout } = await reveille(home, ['connect', 'cursor', '--yes']);
  assert.match(stdout, /~\/\.cursor\/mcp\.json \(a link to .*dotfiles\/mcp\.json\) changes/);
  assert.ok(read(at('dotfiles/mcp.json')).includes(PROGRAM));
  assert.deepEqual(readdirSync(at('.cursor')), ['mcp.json', 'mcp.json.before-reveille', 'x']);
  await reveille(home, ['connect', 'cursor', '--undo', '--yes']);
  assert.equal(read(at('dotfiles/mcp.json')), '{}');
});

test('in a project a link must not lead out of it', async (t) => {
  const { home, at } = homeWith(t, { '.claude.json': '{}', 'project/x': '' });
  symlinkSync(at('.claude.json'), at('project/.mcp.json'));
  const options = { cwd: at('project') };
  const refused = await reveille(home, ['connect', 'claude', '--project', '--yes'], options);
  assert.match(refused.stderr, /is a link out of the project/);
  assert.equal(read(at('.claude.json')), '{}');
  rmSync(at('project/.mcp.json'));
  mkdirSync(at('.claude'));
  symlinkSync(at('.claude'), at('project/.claude'));
  const byFolder = await reveille(home, ['connect', 'claude', '--project', '--yes'], options);
  assert.match(byFolder.stderr, /project\/\.claude is a link out of the project/);
  assert.deepEqual([readdirSync(at('.claude')), readdirSync(at('project'))], [[], ['.claude', 'x']]);
});

test('without a client it prints the state of each', async (t) => {
  const { home, connect } = homeWith(t, { ...CLIENTS.gemini, '.cursor/mcp.json': '{' });
  await connect('claude', '--yes');
  const { clients } = await connect();
  const states = Object.fromEntries(clients.map(({ client, state }: Record<string, string>) => [client, state]));
  assert.deepEqual(states, {
    ...{ claude: 'connected', codex: 'no', gemini: 'no', cursor: 'unreadable', vscode: 'no', 'claude-desktop': 'no' },
  });
  assert.match((await reveille(home, ['connect'])).stdout, /gemini +Gemini CLI +not connected\n/);
});

test('the doctor reports for each client whether its program exists, in this version', async (t) => {
  const { home, at, connect } = homeWith(t);
  const own = { cwd: () => home } as CliContext['process'];
  const look = () => checkClients({ environment: { HOME: home }, process: own });
  assert.deepEqual(look(), [], 'nothing is connected');
  for (const client of ['claude', 'codex', 'gemini']) await connect(client, '--yes');
  const [well, ...others] = look();
  assert.deepEqual([well?.detail, others], ['connected: Claude Code, Codex, Gemini CLI', []]);

  const swap = (name: string, program: string) => writeFileSync(at(name), read(at(name)).replaceAll(PROGRAM, program));
  const old = join(home, 'old', 'bin', 'reveille.mjs');
  mkdirSync(dirname(old), { recursive: true });
  writeFileSync(old, '');
  writeFileSync(join(home, 'old', 'package.json'), '{"version":"0.0.9"}');
  swap('.claude/settings.json', '/moved/bin/reveille.mjs');
  swap('.codex/config.toml', '/moved/bin/reveille.mjs');
  swap('.gemini/settings.json', old);
  const checks = look().map(({ status, detail, remedy }) => [status, detail, remedy?.split(' (')[0]]);
  assert.deepEqual(checks, [
    ...[
      [
        'claude',
        'Claude Code: ~/.claude/settings.json has the hook start /moved/bin/reveille.mjs, which does not exist',
      ],
      ['codex', 'Codex: ~/.codex/config.toml has chronos start /moved/bin/reveille.mjs, which does not exist'],
      ['gemini', `Gemini CLI: ~/.gemini/settings.json has chronos start version 0.0.9; this is ${VERSION}`],
    ].map(([name, detail]) => ['warning', detail, `write it again: reveille connect ${name}`]),
  ]);
  for (const client of ['claude', 'codex', 'gemini']) await connect(client, '--yes');
  assert.equal(look()[0]?.detail, well?.detail, 'and its remedy repairs it');
});
