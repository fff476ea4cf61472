import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import * as smol from 'smol-toml';
import type { Entries } from './entries.ts';
import { connectToml, removeToml } from './toml-edit.ts';

/** The value that another reader parses, as plain objects. */
const parse = (text: string) => JSON.parse(JSON.stringify(smol.parse(text)));

const server = (word: string) => ({ command: '/opt/node', args: ['/opt/a "b"/reveille.mjs', word] });
const ENTRIES: Entries = {
  servers: { chronos: server('mcp'), chronometric: { ...server('chronometric'), env: { REVEILLE_HOME: 'C:\\r' } } },
  hook: undefined,
};
const connect = (text: string) => connectToml(text, 'mcp_servers', ENTRIES);
const remove = (text: string) => removeToml(text, 'mcp_servers');

const OTHERS = `# my settings
model = "gpt-5"   # good

[mcp_servers.other]   # keep
command = 'x'
args = [ "a",   # one
  "b" ]

[profiles.a]
text = """
[mcp_servers.chronos]
"""
`;

test('the servers are tables at the end; another reader agrees, and they are removed to the byte', () => {
  for (const text of ['', OTHERS, OTHERS.replaceAll('\n', '\r\n'), 'a = 1\n']) {
    const connected = connect(text);
    assert.ok(connected.startsWith(text));
    const { mcp_servers: servers, ...others } = parse(connected);
    const { mcp_servers: before, ...othersBefore } = parse(text);
    assert.deepEqual(servers, { ...before, ...ENTRIES.servers });
    assert.deepEqual(others, othersBefore);
    assert.equal(connect(connected), connected);
    if (text !== '') assert.equal(remove(connected), text);
  }
});

test('other content of a file has the same value afterwards, and again after the removal', () => {
  const word = fc.string({ unit: 'grapheme', minLength: 1, maxLength: 6 }).filter((name) => name !== '__proto__');
  const leaf = fc.oneof(
    fc.string({ unit: 'grapheme' }),
    fc.integer(),
    fc.boolean(),
    fc.array(fc.integer(), { maxLength: 3 }),
  );
  const table = fc.dictionary(word, leaf, { maxKeys: 3 });
  const file = fc.record({
    top: table,
    tables: fc.dictionary(word, table, { maxKeys: 3 }),
    servers: fc.dictionary(word, table),
  });
  fc.assert(
    fc.property(file, ({ top, tables, servers }) => {
      const value = { ...top, ...tables, mcp_servers: { x: { command: 'x' }, ...servers } };
      const text = smol.stringify(value);
      const connected = connect(text);
      const before = parse(text);
      assert.deepEqual(parse(connected), { ...before, mcp_servers: { ...before.mcp_servers, ...ENTRIES.servers } });
      assert.equal(connect(connected), connected);
      assert.deepEqual(parse(remove(connected)), before);
    }),
  );
});

test('a file without a last line end gets one', () => {
  assert.deepEqual(parse(connect('a = 1')), { a: 1, mcp_servers: ENTRIES.servers });
});

test('servers in an inline table stay in it', () => {
  const text = 'mcp_servers = { other = { command = "y" } }\n';
  assert.deepEqual(parse(connect(text)), { mcp_servers: { other: { command: 'y' }, ...ENTRIES.servers } });
  assert.deepEqual(parse(remove(connect(text))), parse(text));
});

test("an entry of another path gets the new path; its comments and a user's additions stay", () => {
  const text = `[mcp_servers.chronos]
# why I have it
command = "reveille"
args = ["mcp"]
startup_timeout_sec = 20

[mcp_servers.chronos.env]
MINE = "1"

[z]
a = 1
`;
  const connected = connect(text);
  assert.match(connected, /# why I have it/);
  const { mcp_servers: servers, z } = parse(connected);
  assert.deepEqual(servers!.chronos, { ...ENTRIES.servers.chronos, startup_timeout_sec: 20, env: { MINE: '1' } });
  assert.deepEqual(z, { a: 1 });
  assert.deepEqual(parse(remove(connected)), { z: { a: 1 } });
});

test("another program's server with the same name is not changed", () => {
  const text = '[mcp_servers.chronos]\ncommand = "weather"\n';
  assert.throws(() => connect(text), { code: 'conflict', message: /mcp_servers\.chronos/ });
  assert.equal(remove(text), text);
});

test('text that is not TOML is refused with its position', () => {
  for (const [text, message] of [
    ['a = 1\na = 2\n', /^line 2, column 1: Value already defined for a/],
    ['\n[x\n', /^line 2, column \d+: /],
    ['a = "\n', /^line 1, column 6: /],
    ['mcp_servers = 1\n', /^"mcp_servers" must be a table/],
  ] as const)
    assert.throws(() => connect(text), { code: 'invalid_request', message });
});
