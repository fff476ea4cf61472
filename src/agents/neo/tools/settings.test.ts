import assert from 'node:assert/strict';
import { test } from 'node:test';
import { parseToolConfig } from './settings.ts';

const EXECUTOR = {
  NEO_EXECUTOR_URL: 'http://127.0.0.1:8081/',
  NEO_EXECUTOR_TOKEN: 'a-token-of-the-executor',
  MATRIX_USER_ID: 'alice',
};

test('without settings Neo has the shipped manifest, a workspace below its data, and no executor', () => {
  assert.deepEqual(parseToolConfig({}, '/data/neo'), {
    manifest: 'bundled',
    workspace: '/data/neo/workspace',
    skill: undefined,
    patterns: [],
    executor: undefined,
    limits: {},
  });
});

test('given settings are used', () => {
  const settings = {
    ...EXECUTOR,
    NEO_MANIFEST: 'mine.json',
    NEO_WORKSPACE: '/w',
    NEO_SKILL: 's.mtx',
    NEO_ESCALATE_PATTERNS: 'pay',
    NEO_SPAWN_TIMEOUT_MS: '2000',
    NEO_OUTPUT_TOKENS: '500',
  };
  assert.deepEqual(parseToolConfig(settings, '/data/neo'), {
    manifest: { path: 'mine.json' },
    workspace: '/w',
    skill: 's.mtx',
    patterns: ['pay'],
    limits: { startTimeoutMs: 2000, outputTokens: 500 },
    executor: { url: 'http://127.0.0.1:8081', token: EXECUTOR.NEO_EXECUTOR_TOKEN, userId: 'alice' },
  });
  assert.equal(parseToolConfig({ NEO_MANIFEST: 'none' }, '/data/neo').manifest, undefined);
  assert.equal(parseToolConfig({ NEO_MANIFEST: 'neo' }, '/d').manifest, 'bundled');
  assert.equal(parseToolConfig({ NEO_MANIFEST: 'default' }, '/d').manifest, 'default');
});

test('an incomplete executor setting stops the start, naming the missing one and no secret', () => {
  for (const name of Object.keys(EXECUTOR)) {
    assert.throws(
      () => parseToolConfig({ ...EXECUTOR, [name]: undefined }, '/d'),
      (thrown: Error) => thrown.message.startsWith(name) && !thrown.message.includes(EXECUTOR.NEO_EXECUTOR_TOKEN),
    );
  }
});

test('invalid values are refused', () => {
  const wrong: Record<string, string>[] = [
    { ...EXECUTOR, NEO_EXECUTOR_URL: 'ftp://x' },
    { ...EXECUTOR, NEO_EXECUTOR_URL: 'http://u:p@x' },
    { ...EXECUTOR, NEO_EXECUTOR_URL: 'http://x?token=1' },
    { ...EXECUTOR, NEO_EXECUTOR_TOKEN: 'short' },
    { ...EXECUTOR, NEO_EXECUTOR_TOKEN: 'a token with blanks in it' },
    { ...EXECUTOR, MATRIX_USER_ID: 'a/b' },
    { NEO_ESCALATE_PATTERNS: ',' },
    { NEO_SPAWN_TIMEOUT_MS: '99' },
    { NEO_CALL_TIMEOUT_MS: 'soon' },
  ];
  for (const settings of wrong) assert.throws(() => parseToolConfig(settings, '/d'), { code: 'invalid_request' });
});
