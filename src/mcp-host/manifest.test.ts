import assert from 'node:assert/strict';
import { createHash } from 'node:crypto';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, describe, test } from 'node:test';
import { ReveilleError } from '../wire/errors.ts';
import { type HttpLink, loadManifest, type StdioLink } from './manifest.ts';

const folder = mkdtempSync(join(tmpdir(), 'reveille-manifest-'));
after(() => rmSync(folder, { recursive: true }));
const path = join(folder, 'agent.json');
const ROOT = join(import.meta.dirname, '..', '..');

/** A reference to a variable, as manifests write it. */
const ref = (variable: string) => `\${${variable}}`;

function load(manifest: unknown, variables: Record<string, string> = {}) {
  writeFileSync(path, typeof manifest === 'string' ? manifest : JSON.stringify(manifest));
  return loadManifest(path, variables);
}

const loadServer = (server: object, variables: Record<string, string> = {}) =>
  load({ servers: [{ alias: 'a', ...server }] }, variables).servers[0]!;

/** The lines of a refusal without the file's name; the positions stay. */
function refusal(manifest: unknown, variables: Record<string, string> = {}): string[] {
  try {
    load(manifest, variables);
  } catch (thrown) {
    assert.ok(thrown instanceof ReveilleError, String(thrown));
    assert.equal(thrown.code, 'invalid_request');
    return thrown.message.split('\n').map((line) => line.replace(`${path}:`, ''));
  }
  return assert.fail('it was accepted');
}

const refusalOf = (server: object, variables: Record<string, string> = {}) =>
  refusal({ servers: [{ alias: 'a', command: 'x', ...server }] }, variables).map((line) =>
    line.replace(/^\d+:\d+: /, ''),
  );

describe('a manifest', () => {
  test("is identified by the digest of its text, and carries the executor's fields", () => {
    const rail = { idempotency_key: 'key', dry_run: { tool: 'try', args: { a: '$args/a' } }, references: ['/id'] };
    const { sha256, servers } = load({ servers: [{ alias: 'a', command: 'x', tools: [{ name: 'pay', rail }] }] });
    assert.equal(sha256, createHash('sha256').update(readFileSync(path)).digest('hex'));
    assert.deepEqual(servers[0]?.tools?.get('pay')?.rail, rail);
    const wrong = refusalOf({
      tools: [{ name: 'pay', rail: { amount: 'amount', dry_run: { tool: 'try' }, undo: 'x' } }],
    });
    assert.match(wrong.join('\n'), /rail\.amount must be a JSON Pointer such as \/amount/);
    assert.match(wrong.join('\n'), /rail\.dry_run\.args is required/);
    assert.match(wrong.join('\n'), /unknown field "servers\.0\.tools\.0\.rail\.undo"/);
  });

  test('that ships is loaded, with its variables', () => {
    const variables = {
      MATRIX_CHRONOS_URL: 'http://127.0.0.1:9096',
      MATRIX_CHRONOS_TOKEN: 'chronos-token',
      MATRIX_USER_ID: 'u',
      MATRIX_EXECUTOR_KEYFILE: '/k',
      ...{ REVEILLE_PROFILE: '/p', NEURODOCK_PROFILE_PATH: '', XDG_CONFIG_HOME: '/c' },
      PATH: '/bin',
      NEO_MODEL_API_KEY: 'not for children',
    };
    for (const name of ['neo', 'default']) {
      const { agent, servers } = loadManifest(join(ROOT, 'agents', `${name}.json`), variables);
      assert.equal(agent, name);
      const [{ alias, link, tools, secrets, missing, version }] = servers as [(typeof servers)[0]];
      assert.deepEqual(
        [alias, version, [...tools!.keys()]],
        ['chronos', '0.1.0', ['alarm_set', 'alarm_list', 'alarm_cancel']],
      );
      const { NEO_MODEL_API_KEY, ...expected } = variables;
      assert.deepEqual(link, { kind: 'stdio', command: ['reveille', 'mcp'], env: expected });
      assert.deepEqual([secrets, missing], [['chronos-token'], []]);
    }
  });

  test('may spell variables either way, with a fallback, inside a text, and in arguments and addresses', () => {
    const variables = { TOKEN: 'secret-value', WORKSPACE: '/w s', HOST: 'example.org', EMPTY: '' };
    const listed = loadServer(
      { command: 'x -a', args: ['--root', ref('WORKSPACE')], env: ['A=$env:TOKEN', `B=${ref('HOST')}`, 'C='] },
      variables,
    );
    assert.deepEqual((listed.link as StdioLink).command, ['x', '-a', '--root', '/w s']);
    assert.deepEqual((listed.link as StdioLink).env, { A: 'secret-value', B: 'example.org', C: '' });
    const env = { A: ref('EMPTY:-none'), B: ref('NOT_SET:-'), C: `x-${ref('HOST')}-y`, D: '$env:TOKEN' };
    const { link } = loadServer({ command: 'x', env }, variables);
    // In an object `$env:` is not special.
    assert.deepEqual((link as StdioLink).env, { A: 'none', B: '', C: 'x-example.org-y', D: '$env:TOKEN' });
    const web = loadServer(
      { url: `https://${ref('HOST')}/mcp`, headers: { Authorization: `Bearer ${ref('TOKEN')}` } },
      variables,
    );
    assert.deepEqual(web.link as HttpLink, {
      kind: 'http',
      url: 'https://example.org/mcp',
      headers: { Authorization: 'Bearer secret-value' },
    });
    assert.deepEqual(web.secrets, ['secret-value', 'Bearer secret-value']);
  });

  test('that lacks a variable names it: at once for a required server, otherwise at the start', () => {
    const server = { command: 'x', env: { A: ref('ONE'), B: ref('TWO'), C: ref('EMPTY') } };
    assert.deepEqual(loadServer(server, { TWO: '2', EMPTY: '' }).missing, ['ONE', 'EMPTY']);
    assert.deepEqual(refusalOf({ ...server, required: true }, { TWO: '2' }), [
      'servers.0 is required and refers to ONE, EMPTY, which are not set',
    ]);
  });

  test('that does not exist or is not text is named', () => {
    assert.throws(
      () => loadManifest(join(folder, 'none.json'), {}),
      /the agent manifest .*none\.json cannot be read: ENOENT/,
    );
    writeFileSync(path, Buffer.from([0x7b, 0xff]));
    assert.throws(() => loadManifest(path, {}), { code: 'invalid_request' });
  });
});

describe('a manifest with mistakes', () => {
  test('is refused with file, line and column, all of them at once', () => {
    const text = `{
  "agnet": "neo",
  "servers": [
    { "alias": "a b", "command": "x" },
    { "alias": "c", "command": "x", "tools": [
      { "name": "t", "surface": "sideways" } ] },
    { "command": "x", "timeout": 3 }
  ]
}`;
    assert.deepEqual(refusal(text), [
      '4:16: servers.0.alias must be 1 to 64 of A-Z a-z 0-9 _ - (got "a b")',
      '6:33: servers.1.tools.0.surface must be one of natural, escalate (got "sideways")',
      '7:5: servers.2.alias is required',
      '7:34: unknown field "servers.2.timeout"; allowed here: alias, transport, command, args, url, env, headers, oauth, version, required, start, per_user, needs, writable, room, tools',
      '2:12: unknown field "agnet"; allowed here: schema_version, agent, description, allowed_side_effects, limits, checks, servers',
    ]);
  });

  test('in its syntax is refused at its position', () => {
    assert.deepEqual(refusal('{\n  "servers": [],\n}'), [
      '3:1: this is not JSON: a trailing comma before } is not allowed',
    ]);
    assert.deepEqual(refusal('{ "servers": [] '), [
      '1:17: this is not JSON: expected a comma or }; the text is incomplete',
    ]);
    assert.deepEqual(refusal('[]'), ['1:1: must be an object']);
  });

  test('about a sign-in is refused, and a secret is not repeated', () => {
    const web = (entry: object) =>
      refusal({ servers: [{ alias: 'a', url: 'https://x.example/mcp', ...entry }] }).map((line) =>
        line.replace(/^\d+:\d+: servers\.0\.?/, ''),
      );
    const given = web({ oauth: { client_id: 'c', client_secret: 'hunter2hunter2' } });
    assert.match(given.join(), /^oauth\.client_secret holds a secret/);
    assert.doesNotMatch(given.join(), /hunter2/);
    assert.match(web({ oauth: {}, headers: { Authorization: ref('TOKEN') } }).join(), /Authorization header/);
    assert.match(web({ oauth: {}, per_user: true }).join(), /a sign-in belongs to one user/);
    assert.match(web({ oauth: { issuer: 'https://login.example' } }).join(), /needs "client_id"/);
    assert.match(web({ oauth: { client_id: 'c', grant: 'client_credentials' } }).join(), /needs "client_secret"/);
    assert.match(web({ oauth: { client_metadata_url: 'http://x.example/c' } }).join(), /client_metadata_url/);
    assert.match(refusalOf({ oauth: {} }).join(), /oauth is not for a server whose transport is stdio/);
  });

  test('between its fields is refused', () => {
    assert.deepEqual(refusalOf({ url: 'http://x' }), ['servers.0.url is not for a server whose transport is stdio']);
    assert.deepEqual(refusalOf({ transport: 'http' }), [
      'servers.0 needs "url", because its transport is http',
      'servers.0.command is not for a server whose transport is http',
    ]);
    assert.deepEqual(refusal({ servers: [{ alias: 'a' }] }), [
      '1:13: servers.0 needs "command", because its transport is stdio',
    ]);
    assert.deepEqual(refusal({ servers: [{ alias: 'a', url: 'ftp://x' }] }), [
      '1:32: servers.0.url must be an http:// or https:// address',
    ]);
    assert.deepEqual(refusalOf({ command: 'x "y' }), ['servers.0.command has a " without its counterpart']);
    const twice = [{ name: 't' }, { name: 't' }];
    assert.deepEqual(refusalOf({ tools: twice }), ['servers.0.tools.1.name is listed twice ("t")']);
    assert.deepEqual(
      refusal({
        servers: [
          { alias: 'a', command: 'x' },
          { alias: 'a', command: 'y' },
        ],
      }),
      ['1:50: servers.1.alias is used twice (a)'],
    );
    assert.deepEqual(refusalOf({ env: ['A=1', 'A=2'] }), ['servers.0.env.1 sets A a second time']);
    assert.deepEqual(refusalOf({ env: ['A'] }), ['servers.0.env.0 must look like NAME=value']);
  });

  test('that allows a tool more than the agent is refused', () => {
    const tools = [{ name: 't', side_effect_class: 'shell' }];
    const manifest = { allowed_side_effects: ['read'], servers: [{ alias: 'a', command: 'x', tools }] };
    assert.match(
      refusal(manifest).join(),
      /tools\.0\.side_effect_class is shell, which allowed_side_effects does not name/,
    );
  });

  test('that contains a secret is refused, and the secret is not repeated', () => {
    const secret = 'ghp_0123456789abcdefghijklmnopqrstuv';
    for (const server of [
      { command: 'x', env: { GITHUB_TOKEN: 'short-one' } },
      { command: 'x', env: { ANYTHING: secret } },
      { command: 'x', env: { ANYTHING: ref(`NOT_SET:-${secret}`) } },
      { command: 'x', env: [`A=${secret}`] },
      { command: 'x', env: ['PASSWORD=short-one'] },
      { command: `x --key ${secret}` },
      { command: 'x', args: ['--key', secret] },
      { url: `http://x/?key=${secret}` },
      { url: 'http://user:short-one@x/' },
      { url: 'http://x/', headers: { 'X-API-Key': 'short-one' } },
      { url: 'http://x/', headers: { Authorization: `Bearer ${secret}` } },
      // Errors near a secret must not show it either.
      { command: 'x', env: secret },
      { command: 'x', args: secret },
      { command: 'x', env: { A: { B: secret } } },
      { command: 7, env: { TOKEN: secret }, extra: secret },
    ]) {
      const lines = refusal({ servers: [{ alias: 'a', ...server }] }).join('\n');
      assert.doesNotMatch(lines, /ghp_|short-one/, lines);
    }
    const [errors] = refusalOf({ env: { GITHUB_TOKEN: 'short-one' } });
    assert.equal(
      errors,
      `servers.0.env.GITHUB_TOKEN holds a secret; write "${ref('GITHUB_TOKEN')}" and set the variable GITHUB_TOKEN instead`,
    );
    assert.match(
      refusalOf({ env: ['API_KEY=short-one'] }).join(),
      /write "API_KEY=\$env:API_KEY" and set the variable API_KEY/,
    );
  });

  test('with a value that only resembles a secret field is accepted', () => {
    const env = {
      LOG_LEVEL: 'debug',
      NODE_OPTIONS: '--max-old-space-size=512',
      ORG_ID: '3f2504e0-4f89-41d3-9a0c-0305e82c3301',
      MONKEY: 'yes',
      API_KEY: '',
    };
    assert.equal(
      loadServer({ command: 'x', args: ['/a/very/long/path/to/some/file/1234567890.json'], env }).missing.length,
      0,
    );
  });
});

test('a manifest that names a variable reserved for the daemons is refused, in every spelling', () => {
  const reason = 'which is reserved for the daemons of Reveille and is never passed to an MCP server; remove it';
  const refused = (server: object) => refusalOf(server).join('\n');
  assert.match(
    refused({ command: 'x', env: { HOME_OF: ref('REVEILLE_HOME') } }),
    new RegExp(`REVEILLE_HOME, ${reason}`),
  );
  assert.match(
    refused({ command: 'x', env: { REVEILLE_HOME: '/srv/reveille' } }),
    new RegExp(`REVEILLE_HOME, ${reason}`),
  );
  assert.match(refused({ command: 'x', args: [ref('EXECUTOR_TOKEN')] }), new RegExp(`EXECUTOR_TOKEN, ${reason}`));
  assert.match(refused({ command: 'x', env: ['T=$env:NEO_DAEMON_TOKEN'] }), new RegExp(`NEO_DAEMON_TOKEN, ${reason}`));
  const headers = { Authorization: `Bearer ${ref('ROUTER_ADMIN_TOKEN')}` };
  assert.match(refused({ url: 'http://127.0.0.1/', headers }), new RegExp(`ROUTER_ADMIN_TOKEN, ${reason}`));
  const own = { command: 'x', env: { MATRIX_CHRONOS_TOKEN: ref('MATRIX_CHRONOS_TOKEN') } };
  assert.equal(loadServer(own, { MATRIX_CHRONOS_TOKEN: 't' }).missing.length, 0);
});
