import assert from 'node:assert/strict';
import { test } from 'node:test';
import { lastWords } from './last-words.ts';

test('a cut through the middle of a character leaves text that can be stored', () => {
  for (const tail of ['', 'x']) {
    const said = lastWords(`${'🔔'.repeat(300)}${tail}`, []);
    assert.ok(said.isWellFormed());
    assert.equal(said.length, 401);
  }
  assert.equal(lastWords('half \ud83d of one', []), 'half \ufffd of one');
});

test('of a crash the error is quoted, not the frames below it', () => {
  const crash = [
    'node:internal/modules/cjs/loader:1478',
    '  throw err;',
    '  ^',
    '',
    "Error: Cannot find module '/srv/my-agent.js'",
    '    at Module._resolveFilename (node:internal/modules/cjs/loader:1475:15)',
    ...Array.from({ length: 8 }, (_, n) => `    at frame (node:internal/modules/run_main:${n}:5)`),
    '    at node:internal/main/run_main_module:33:47 {',
    "  code: 'MODULE_NOT_FOUND',",
    '  requireStack: []',
    '}',
    '',
    'Node.js v24.21.0',
  ];
  const said = lastWords(crash.join('\n'), []);
  assert.match(said, /Error: Cannot find module '\/srv\/my-agent\.js' \| code: 'MODULE_NOT_FOUND', \|/);
});

test('only the last six lines are quoted, without colours and secrets', () => {
  const lines = Array.from({ length: 9 }, (_, n) => `\x1b[31mline ${n}\x1b[0m of hunter2hunter2`);
  assert.equal(
    lastWords(lines.join('\n'), ['hunter2', 'hunter2hunter2', 'of']),
    [3, 4, 5, 6, 7, 8].map((n) => `line ${n} of [redacted]`).join(' | '),
  );
});
