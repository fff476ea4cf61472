import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import fc from 'fast-check';
import { readSkillTools } from '../wire/skill-tools.ts';
import { readToolUri, writeToolUri } from '../wire/tool-uri.ts';
import { limitToSkill, resolveToolUri } from './tool-uri.ts';

const part = fc.string({ unit: 'grapheme', minLength: 1, maxLength: 40 });
const toolOf = (alias: string, tool: string, version = '0.1.0') => ({
  alias,
  tool,
  uri: writeToolUri({ alias, tool, version }),
});
const CHRONOS = ['alarm_set', 'alarm_list', 'alarm_cancel'].map((tool) => toolOf('chronos', tool));

test('a URI is read as it was written, whatever characters its parts have', () => {
  fc.assert(
    fc.property(part, part, part, (alias, tool, version) => {
      assert.deepEqual(readToolUri(writeToolUri({ alias, tool, version })), { alias, tool, version });
    }),
  );
  assert.equal(CHRONOS[0]!.uri, 'matrix://tool/mcp/chronos/alarm_set@0.1.0');
});

test('what is no tool URI is not taken for one', () => {
  for (const text of [
    '',
    'alarm_set',
    'matrix://tool/mcp/chronos/alarm_set',
    'matrix://tool/mcp/a/b@%',
    'matrix://tool/mcp/a/b/c@1',
  ]) {
    assert.equal(readToolUri(text), undefined, text);
    assert.throws(() => resolveToolUri(text, CHRONOS), { code: 'invalid_request' });
  }
});

test('a URI resolves to its tool, or says which part is wrong', () => {
  assert.equal(resolveToolUri('matrix://tool/mcp/chronos/alarm_list@0.1.0', CHRONOS), CHRONOS[1]);
  for (const [uri, message] of [
    ['matrix://tool/mcp/kronos/alarm_list@0.1.0', /no server "kronos" has tools now/],
    [
      'matrix://tool/mcp/chronos/alarm_lost@0.1.0',
      /has no tool "alarm_lost"; it has alarm_set, alarm_list, alarm_cancel/,
    ],
    ['matrix://tool/mcp/chronos/alarm_list@0.2.0', /the version there is is .*@0\.1\.0/],
  ] as const) {
    assert.throws(() => resolveToolUri(uri, CHRONOS), { code: 'not_found', message });
  }
});

test('the §TOOLS block of a skill limits a run to its tools', () => {
  const files = toolOf('files', 'read_file');
  const skill = readFileSync(join(import.meta.dirname, '..', '..', 'skills', 'assistant', 'SKILL.mtx'), 'utf8');
  assert.deepEqual(limitToSkill([files, ...CHRONOS], skill), CHRONOS);
});

test('several blocks count together, comments do not, and an empty block allows nothing', () => {
  const [one, two] = CHRONOS;
  const skill = `§TOOLS\n  # first\n  ${one!.uri}\nend\n§GUIDE\n  ${CHRONOS[2]!.uri}\nend\r\n§TOOLS\r\n  // second\r\n\r\n  ${two!.uri}\r\nend`;
  assert.deepEqual(readSkillTools(skill), [
    { line: 3, text: one!.uri },
    { line: 11, text: two!.uri },
  ]);
  assert.deepEqual(limitToSkill(CHRONOS, '§TOOLS\nend\n'), []);
});

test('a skill without a block limits nothing; one that asks for what is not there is refused', () => {
  assert.equal(limitToSkill(CHRONOS, '§GUIDE\n  Be kind.\nend'), CHRONOS);
  assert.throws(() => limitToSkill(CHRONOS, '§TOOLS\n  matrix://tool/mcp/files/read_file@1\nend'), {
    code: 'not_found',
  });
  assert.throws(() => limitToSkill(CHRONOS, '§TOOLS\n  matrix://'), /the §TOOLS block of line 1 has no end/);
  assert.throws(() => limitToSkill(CHRONOS, '§TOOLS\n§GUIDE\nend'), /has no end before line 2/);
});
