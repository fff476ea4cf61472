import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { readSkill } from '../../../src/agents/neo/tools/skill.ts';
import { CHRONOMETRIC_VERSION } from '../../../src/chronometric/server.ts';
import { toolDefinitions } from '../../../src/chronometric/tools/definitions.ts';
import {
  BREAK_LEVELS,
  CHRONOMETRIC_ERRORS,
  CHRONOMETRIC_TOOL_VERSIONS,
  CHRONOMETRIC_TOOLS,
  HYPERFOCUS_SIGNALS,
} from '../../../src/wire/chronometric-vocabulary.ts';

const SKILL = join(import.meta.dirname, '..', '..', '..', 'skills', 'hyperfocus-nudge', 'SKILL.mtx');

test('the bundled hyperfocus-nudge skill names the five tools, each level and each signal', () => {
  const { text, entries, limit } = readSkill(SKILL);
  const wanted = CHRONOMETRIC_TOOLS.map((tool) => `matrix://tool/mcp/chronometric/${tool}@${CHRONOMETRIC_VERSION}`);
  assert.deepEqual([limit, entries.map(({ uri }) => uri)], [undefined, wanted]);
  const guide = text.slice(text.indexOf('§GUIDE'));
  for (const term of [...BREAK_LEVELS, ...HYPERFOCUS_SIGNALS, 'prior_intent', 'suggested_action', 'null'])
    assert.match(guide, new RegExp(`\\b${term}\\b`), term);
});

test('docs/reference/chronometric.md names every code, and marks the additions to those of the sources', () => {
  const page = readFileSync(
    join(import.meta.dirname, '..', '..', '..', 'docs', 'reference', 'chronometric.md'),
    'utf8',
  );
  const section = page.split('\n## ').find((part) => part.startsWith('Errors')) ?? '';
  const rows = section.split('\n').filter((line) => line.startsWith('| `'));
  const codes = rows.map((row) => /^\| `(\w+)` \| (sources|addition) \| /.exec(row)?.slice(1) ?? []);
  assert.deepEqual(
    codes.map(([code]) => code),
    [...CHRONOMETRIC_ERRORS],
  );
  const additions = codes.filter(([, from]) => from === 'addition').map(([code]) => code);
  assert.deepEqual(additions, ['INTENT_REQUIRED', 'INTENT_TOO_LONG', 'SUMMARY_TOO_LONG']);
});

test('docs/reference/chronometric.md gives each tool its version', () => {
  const page = readFileSync(
    join(import.meta.dirname, '..', '..', '..', 'docs', 'reference', 'chronometric.md'),
    'utf8',
  );
  const found = [...page.matchAll(/^\| `(\w+)` \| (\d+\.\d+\.\d+) \| /gm)].map(([, tool, version]) => [tool, version]);
  assert.deepEqual(Object.fromEntries(found), CHRONOMETRIC_TOOL_VERSIONS);
  for (const { name, _meta } of toolDefinitions())
    assert.equal(_meta['reveille/version'], CHRONOMETRIC_TOOL_VERSIONS[name]);
});
