import assert from 'node:assert/strict';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, test } from 'node:test';
import { readSkill } from './skill.ts';

const folder = mkdtempSync(join(tmpdir(), 'reveille-skill-'));
after(() => rmSync(folder, { recursive: true }));

function fileOf(text: string): string {
  const path = join(folder, 'SKILL.mtx');
  writeFileSync(path, text);
  return path;
}

test('a skill has its text and the tools of its blocks, and limits nothing unless it says so', () => {
  const uri = 'matrix://tool/mcp/chronos/alarm_set@0.1.0';
  const text = `§GUIDE\n  Be brief.\nend\n§TOOLS\n  # one\n  ${uri}\nend\n`;
  const path = fileOf(text);
  const entries = [{ line: 6, uri }];
  assert.deepEqual(readSkill(path), { path, text, entries });
  const only = text.replace('§TOOLS', '§TOOLS only');
  assert.deepEqual(readSkill(fileOf(only)), { path, text: only, entries, limit: new Set([uri]) });
  const bare = '§GUIDE\n  Be brief.\nend\n';
  assert.deepEqual(readSkill(fileOf(bare)), { path, text: bare, entries: [] });
});

test('an error in a skill is reported with its file and line', () => {
  const path = fileOf('§TOOLS\n  alarm_set\nend');
  assert.throws(() => readSkill(path), {
    code: 'invalid_request',
    message: `NEO_SKILL: ${path} line 2: "alarm_set" is not a tool URI; expected matrix://tool/mcp/<alias>/<tool>@<version>`,
  });
  assert.throws(
    () => readSkill(fileOf('§TOOLS\n')),
    /SKILL\.mtx cannot be parsed: the §TOOLS block of line 1 has no end/,
  );
  assert.throws(
    () => readSkill(fileOf('§TOOLS onyl\nend\n')),
    /SKILL\.mtx cannot be parsed: line 1 must be "§TOOLS", .* or "§TOOLS only", .* \(got "§TOOLS onyl"\)/,
  );
  assert.throws(() => readSkill(join(folder, 'none')), /NEO_SKILL: .*none cannot be read: ENOENT/);
  assert.throws(() => readSkill(fileOf('a'.repeat(33_000))), /is longer than 32768 characters/);
});
