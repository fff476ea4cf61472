import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { join } from 'node:path';
import { type TestContext, test } from 'node:test';
import { CHRONOMETRIC_TOOLS } from '../../../src/wire/chronometric-vocabulary.ts';
import { personOf, serverCommand } from './server-process.ts';

const INSPECTOR = join(import.meta.dirname, '..', '..', '..', 'node_modules', '.bin', 'mcp-inspector');

type Run = { status: number; stdout: string; stderr: string };

/** Runs `mcp-inspector --cli` on the server of a person; every run starts the server anew. */
function inspectorOf(t: TestContext): (...words: string[]) => Promise<Run> {
  const person = personOf(t);
  const { command, args, env } = serverCommand(person);
  const variables = Object.entries(env).flatMap(([name, value]) => ['-e', `${name}=${value}`]);
  return (...words) =>
    new Promise((resolve) => {
      execFile(
        process.execPath,
        [INSPECTOR, '--cli', command, ...args, ...variables, ...words],
        { env: { PATH: env.PATH, HOME: person.home }, timeout: 60_000 },
        (error, stdout, stderr) =>
          resolve({ status: typeof error?.code === 'number' ? error.code : 0, stdout, stderr }),
      );
    });
}

test('the inspector lists the five, and finds nothing in their schemas that some client could not read', async (t) => {
  const { status, stdout, stderr } = await inspectorOf(t)('--method', 'tools/list', '--strict');
  assert.equal(status, 0, stderr);
  const { tools } = JSON.parse(stdout) as { tools: { name: string }[] };
  assert.deepEqual(
    tools.map(({ name }) => name),
    [...CHRONOMETRIC_TOOLS],
  );
  assert.doesNotMatch(stderr, /Warning|Error/);
});

test('the inspector calls the five, and one session goes through all of its runs', async (t) => {
  const inspect = inspectorOf(t);
  const call = async (tool: string, ...args: string[]) => {
    const given = args.flatMap((arg) => ['--tool-arg', arg]);
    const { status, stdout, stderr } = await inspect('--method', 'tools/call', '--tool-name', tool, ...given);
    assert.equal(status, 0, stderr);
    return JSON.parse(stdout).structuredContent;
  };
  const started = await call('mark_session_start', 'intent=inspect all five');
  const { current_session_length } = await call('get_time_context');
  assert.match(current_session_length, /^PT/);
  assert.deepEqual(await call('request_break_if_needed', 'threshold_minutes=45'), { result: null });
  assert.deepEqual(await call('idle_status'), { consent_granted: false, hyperfocus_signal: 'unknown' });
  const ended = await call('mark_session_end', 'summary=all of them answer');
  assert.deepEqual(
    [ended.session_id, ended.intent, ended.summary],
    [started.session_id, 'inspect all five', 'all of them answer'],
  );
});
