import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import fc from 'fast-check';
import { ReveilleError } from '../../wire/errors.ts';
import type { HookPart, ServersPart } from './clients.ts';
import type { Entries } from './entries.ts';
import { connectJson, readJson, removeJson } from './json-edit.ts';

const SERVERS: ServersPart = { kind: 'servers', field: 'mcpServers', extra: {} };
const HOOK: HookPart = { kind: 'hook', event: 'UserPromptSubmit', flags: '', timeout: 5 };
const server = (word: string) => ({ command: '/opt/node', args: ['/opt/reveille/bin/reveille.mjs', word] });
const ENTRIES: Entries = {
  servers: { chronos: server('mcp'), chronometric: server('chronometric') },
  hook: ['/opt/node', '/opt/reveille/bin/reveille.mjs', 'time', 'hook'],
};
const HOOK_LINE = ENTRIES.hook!.join(' ');

describe('servers', () => {
  const connect = (text: string, entries = ENTRIES) => connectJson(text, SERVERS, entries);
  const remove = (text: string) => removeJson(text, SERVERS);

  test('an empty text becomes an object with both', () => {
    assert.deepEqual(JSON.parse(connect('')), { mcpServers: ENTRIES.servers });
  });

  test('comments, trailing commas, tabs, line ends and the order of the rest stay, and it is taken out to the byte', () => {
    for (const text of [
      '{\n\t// mine\n\t"z": 1,\n\t"mcpServers": {\n\t\t"other": { "command": "x", "env": { "TOKEN": "s" } }, // last\n\t},\n}\n',
      '{\r\n    "mcpServers": {\r\n        "other": {"url": "https://example.com"}\r\n    },\r\n    "a": [1,2]\r\n}\r\n',
      '{"a":1}',
      '{\n  "a": 1\n}\n',
    ]) {
      const connected = connect(text);
      const { mcpServers, ...others } = readJson(connected) as { mcpServers: Record<string, unknown> };
      const { mcpServers: before, ...othersBefore } = readJson(text) as { mcpServers?: Record<string, unknown> };
      assert.deepEqual(others, othersBefore);
      assert.deepEqual(mcpServers, { ...before, ...ENTRIES.servers });
      if (text.includes('// mine')) assert.match(connected, /\/\/ mine[\s\S]*\/\/ last/);
      assert.equal(connected.includes('\r\n'), text.includes('\r\n'));
      assert.equal(/(?<!\r)\n/.test(connected) && text.includes('\r\n'), false, 'one kind of line ends');
      assert.equal(connect(connected), connected);
      assert.deepEqual(readJson(remove(connected)), readJson(text));
    }
  });

  test('whatever else a file says, it says afterwards, and again when it is taken out', () => {
    const word = fc.string({ unit: 'grapheme', maxLength: 6 }).filter((name) => name !== '__proto__');
    const others = fc.dictionary(word, fc.jsonValue({ maxDepth: 2 }), { maxKeys: 4 });
    const file = fc.record({
      others,
      servers: fc.option(fc.dictionary(word, fc.jsonValue({ maxDepth: 1 }), { maxKeys: 3 })),
    });
    fc.assert(
      fc.property(file, fc.constantFrom(0, 1, 2, '\t', '     '), fc.boolean(), (parts, indent, isLast) => {
        const { mcpServers: _, ...rest } = parts.others;
        const servers = parts.servers === null ? {} : { mcpServers: { x: 1, ...parts.servers } };
        const value = isLast ? { ...rest, ...servers } : { ...servers, ...rest };
        const text = JSON.stringify(value, null, indent);
        const connected = connect(text);
        const { mcpServers, ...kept } = JSON.parse(connected);
        assert.deepEqual(kept, JSON.parse(JSON.stringify(rest)));
        assert.deepEqual(mcpServers, JSON.parse(JSON.stringify({ ...servers.mcpServers, ...ENTRIES.servers })));
        assert.equal(connect(connected), connected);
        assert.deepEqual(JSON.parse(remove(connected)), JSON.parse(text));
      }),
    );
  });

  test('comments around what is taken out stay, and swallow nothing', () => {
    const ours = '"chronos": {"command": "reveille", "args": ["mcp"]}';
    for (const [text, left] of [
      [`{"mcpServers": {"a": 1, // one\n${ours}}}`, '{"mcpServers": {"a": 1 // one\n}}'],
      [
        `{"mcpServers": {\n  "a": 1, // one\n  ${ours}, // two\n}}`,
        '{"mcpServers": {\n  "a": 1, // one\n   // two\n}}',
      ],
      [`{"mcpServers": {\n  ${ours},\n  "a": 1\n}}`, '{"mcpServers": {\n  "a": 1\n}}'],
      [`{"mcpServers": {"a": 1, ${ours}}}`, '{"mcpServers": {"a": 1 }}'],
    ] as const)
      assert.equal(remove(text), left);
  });

  test('an entry of another place gets the new path; what somebody added to it stays', () => {
    const text = JSON.stringify({
      mcpServers: {
        chronos: {
          ...{ command: 'node', args: ['/old/bin/reveille.mjs', 'mcp'], timeout: 9 },
          env: { MINE: '1', REVEILLE_HOME: '/old' },
        },
      },
    });
    const { mcpServers } = readJson(connect(text)) as { mcpServers: Record<string, unknown> };
    assert.deepEqual(mcpServers.chronos, { ...ENTRIES.servers.chronos, timeout: 9, env: { MINE: '1' } });
  });

  test("a server of our name that is somebody else's is neither written over nor taken out", () => {
    const text = '{"mcpServers":{"chronos":{"command":"npx","args":["-y","chronos-weather","mcp"]}}}';
    assert.throws(() => connect(text), {
      code: 'conflict',
      message: /"mcpServers\.chronos" is a server of another program/,
    });
    assert.equal(remove(text), text);
    const { chronometric } = ENTRIES.servers;
    const onlyTime = connect(text, { servers: { chronometric: chronometric! }, hook: undefined });
    assert.deepEqual(readJson(remove(onlyTime)), readJson(text));
  });

  test('what is not JSON is refused with its place', () => {
    for (const [text, message] of [
      ['{\n  "a": 1,\n  b\n}', /^line 3, column 3: invalid symbol/],
      ['{"a": 1', /^line 1, column 8: close brace expected/],
      ['[]', /must be an object \(it is a list\)/],
      ['{"mcpServers": []}', /"mcpServers" must be an object \(it is a list\)/],
      ['{"mcpServers": "x"}', /"mcpServers" must be an object \(it is a string\)/],
    ] as const)
      assert.throws(
        () => connect(text),
        (error: ReveilleError) => error instanceof ReveilleError && message.test(error.message),
        text,
      );
  });
});

describe('the hook', () => {
  const connect = (text: string) => connectJson(text, HOOK, ENTRIES);
  const others = {
    hooks: {
      UserPromptSubmit: [{ hooks: [{ type: 'command', command: 'other' }] }],
      Stop: [{ hooks: [{ type: 'command', command: 'bell' }] }],
    },
    model: 'opus',
  };

  test('stands behind those of others, once, and goes without them', () => {
    const text = `${JSON.stringify(others, null, 4)}\n`;
    const connected = connect(text);
    const { hooks } = readJson(connected) as typeof others;
    assert.deepEqual(hooks.Stop, others.hooks.Stop);
    assert.deepEqual(
      hooks.UserPromptSubmit.flatMap((group) => group.hooks.map(({ command }) => command)),
      ['other', HOOK_LINE],
    );
    assert.equal(connect(connected), connected);
    assert.equal(removeJson(connected, HOOK), text);
  });

  test('an older one is renewed in its place, also in the group of another', () => {
    const ours = { type: 'command', command: 'reveille time hook --intent', timeout: 1 };
    const text = JSON.stringify({
      hooks: { UserPromptSubmit: [{ hooks: [{ type: 'command', command: 'x' }, ours] }] },
    });
    const { hooks } = readJson(connect(text)) as typeof others;
    assert.deepEqual(hooks.UserPromptSubmit[0]!.hooks[1], { ...ours, command: HOOK_LINE });
    assert.deepEqual(readJson(removeJson(text, HOOK)), {
      hooks: { UserPromptSubmit: [{ hooks: [{ type: 'command', command: 'x' }] }] },
    });
  });

  test('nothing is left of it where nothing else was', () => {
    assert.deepEqual(readJson(removeJson(connect('{"a":1}'), HOOK)), { a: 1 });
    assert.equal(removeJson('{"hooks":{}}', HOOK), '{"hooks":{}}');
  });

  test('hooks of another form are refused', () => {
    assert.throws(() => connect('{"hooks":{"UserPromptSubmit":{}}}'), /"hooks\.UserPromptSubmit" must be a list/);
    assert.throws(() => connect('{"hooks":[]}'), /"hooks" must be an object \(it is a list\)/);
  });
});
