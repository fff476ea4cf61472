import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import type { ManifestServer, ManifestTool } from '../wire/manifest.ts';
import { withoutServer, withServer, withTools } from './manifest-edit.ts';

const WRITTEN = `{
    "agent":   "mine",
    "servers": [
        { "alias": "a", "command": "a", "args": ["x","y"], "tools": [{ "name": "look", "surface": "natural" }] },
        {
            "alias": "b",
            "command": "b",
            "tools": [
                {
                    "name": "send",
                    "timeout_ms": 5,
                    "surface": "escalate"
                },
                {"name": "gone"}
            ]
        }
    ]
}
`;

test('untouched parts stay as they were written, including blanks', () => {
  const added = withServer(WRITTEN, { alias: 'c', command: 'c' });
  const comes = ',\n        {\n            "alias": "c",\n            "command": "c"\n        }';
  assert.equal(added, WRITTEN.replace('\n        }\n    ]\n}', `\n        }${comes}\n    ]\n}`));
  assert.equal(withoutServer(added, 'c'), WRITTEN);
  const flat = withTools(WRITTEN, 'a', [
    { name: 'look', surface: 'natural' },
    { name: 'new', surface: 'escalate' },
  ]);
  assert.equal(
    flat,
    WRITTEN.replace('"surface": "natural" }]', '"surface": "natural" }, {"name":"new","surface":"escalate"}]'),
  );
  const changed = withTools(WRITTEN, 'b', [{ name: 'send', side_effect_class: 'read', surface: 'natural' }]);
  assert.deepEqual(JSON.parse(changed).servers[1].tools, [
    { name: 'send', timeout_ms: 5, side_effect_class: 'read', surface: 'natural' },
  ]);
  assert.ok(changed.startsWith(WRITTEN.slice(0, WRITTEN.indexOf('{\n                    "name"'))));
  assert.equal(
    withTools(WRITTEN, 'b', [
      { name: 'send', surface: 'escalate' },
      { name: 'gone', surface: 'natural' },
    ]).includes('"timeout_ms": 5,\n                    "surface": "escalate"'),
    true,
  );
});

test('for any manifest, the edited text makes the requested change and no other', () => {
  const word = fc.constantFrom<ManifestTool[]>(
    [],
    [{ name: 'x', surface: 'natural' }],
    [
      { name: 'x', surface: 'escalate' },
      { name: 'y', side_effect_class: 'read', surface: 'natural' },
    ],
  );
  const server = (alias: string) =>
    fc.record<ManifestServer>(
      { alias: fc.constant(alias), command: fc.string({ minLength: 1 }), tools: word },
      { requiredKeys: ['alias', 'command'], noNullPrototype: true },
    );
  const indent = fc.constantFrom<string | number>(0, 1, 2, 4, '\t');
  fc.assert(
    fc.property(server('a'), server('b'), word, indent, fc.boolean(), (a, b, words, space, isCrlf) => {
      const text = JSON.stringify({ servers: [a, b], agent: 'z' }, null, space);
      const written = isCrlf ? text.replaceAll('\n', '\r\n') : text;
      const read = (edited: string) => JSON.parse(edited) as { servers: ManifestServer[]; agent: string };
      const c = { alias: 'c', command: '\u2028"' };
      assert.deepEqual(read(withServer(written, c)), { servers: [a, b, c], agent: 'z' });
      assert.deepEqual(read(withoutServer(written, 'a')).servers, [b]);
      assert.deepEqual(read(withoutServer(withoutServer(written, 'a'), 'b')).servers, []);
      assert.deepEqual(read(withServer(withoutServer(withoutServer(written, 'b'), 'a'), c)).servers, [c]);
      const { servers } = read(withTools(written, 'b', words));
      assert.deepEqual(servers[0], a);
      assert.deepEqual(
        servers[1]!.tools?.map(({ name, surface }) => [name, surface]).sort(),
        words.map(({ name, surface }) => [name, surface]).sort(),
      );
    }),
  );
});
