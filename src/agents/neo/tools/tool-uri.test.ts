import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { readSkillTools, readToolUri, writeToolUri } from '../../../wire/tool-uri.ts';
import { resolveToolUri } from './file-check.ts';

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

test('text that is not a tool URI is rejected', () => {
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
    ['matrix://tool/mcp/chronos/alarm_list@0.2.0', /wrong version; the tool is .*@0\.1\.0/],
  ] as const) {
    assert.throws(() => resolveToolUri(uri, CHRONOS), { code: 'not_found', message });
  }
});

test('the blocks of a skill count together, comments do not, and only the word limits', () => {
  const [one, two] = CHRONOS;
  const skill = `§TOOLS\n  # first\n  ${one!.uri}\nend\n§GUIDE\n  ${CHRONOS[2]!.uri}\nend\r\n§TOOLS\r\n  // second\r\n\r\n  ${two!.uri}\r\nend`;
  const entries = [
    { line: 3, text: one!.uri },
    { line: 11, text: two!.uri },
  ];
  assert.deepEqual(readSkillTools(skill), { entries, limits: false });
  assert.deepEqual(readSkillTools(skill.replace('§TOOLS\r', '§TOOLS  only\r')), { entries, limits: true });
  assert.deepEqual(readSkillTools('§TOOLS only\nend\n'), { entries: [], limits: true });
  assert.deepEqual(readSkillTools('§GUIDE\n  Be kind.\nend'), { entries: [], limits: false });
  assert.throws(() => readSkillTools('§TOOLS\n  matrix://'), /the §TOOLS block of line 1 has no end/);
  assert.throws(() => readSkillTools('§TOOLS\n§GUIDE\nend'), /has no end before line 2/);
});
