import assert from 'node:assert/strict';
import { test } from 'node:test';
import { CHRONOMETRIC_TOOLS, type ChronometricTool } from '../../../src/wire/chronometric-vocabulary.ts';
import { personOf, startServer, type ToolResult } from './server-process.ts';

const NAMES = ['intent', 'summary', 'threshold_minutes'];
/** The spellings by clients and models of arguments that are not given. */
const SPELLINGS: Readonly<Record<string, object | null | undefined>> = {
  'no arguments': undefined,
  'null for arguments': null,
  'no argument': {},
  null: Object.fromEntries(NAMES.map((name) => [name, null])),
  'empty text': Object.fromEntries(NAMES.map((name) => [name, ''])),
};
const UNKNOWN = { random_string: 'x', session_id: null, force: '' };

/** The outcome of a call in which no argument is given. */
const OUTCOMES: Readonly<Record<ChronometricTool, [read: (result: ToolResult) => unknown, outcome: unknown]>> = {
  get_time_context: [({ isError }) => isError, false],
  mark_session_start: [({ parsed }) => parsed.code, 'INTENT_REQUIRED'],
  mark_session_end: [({ structured }) => structured.summary, null],
  request_break_if_needed: [({ parsed }) => parsed.code, 'INVALID_THRESHOLD'],
  idle_status: [({ isError }) => isError, false],
};

test('an argument that is null or empty is not given, in each tool, also beside unknown ones', async (t) => {
  const server = await startServer(t, personOf(t));
  for (const [spelling, args] of Object.entries(SPELLINGS))
    for (const given of [args, { ...args, ...UNKNOWN }])
      for (const tool of CHRONOMETRIC_TOOLS) {
        if (tool === 'mark_session_end') await server.call('mark_session_start', { intent: 'write' });
        const [read, outcome] = OUTCOMES[tool];
        assert.equal(read(await server.call(tool, given)), outcome, `${tool} with ${spelling}`);
      }
});

test('a threshold may be text in digits', async (t) => {
  const server = await startServer(t, personOf(t));
  const ask = (threshold: unknown) => server.call('request_break_if_needed', { threshold_minutes: threshold });
  for (const threshold of [50, '50', '50.0']) assert.deepEqual((await ask(threshold)).structured, { result: null });
  for (const threshold of ['0', '-50', '0.5', '50 minutes', 'fifty'])
    assert.equal((await ask(threshold)).parsed.code, 'INVALID_THRESHOLD', threshold);
});
