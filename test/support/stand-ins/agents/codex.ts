/** Stand-in for `codex exec … --json`. */
import { randomUUID } from 'node:crypto';
import { appendFileSync, existsSync, readFileSync } from 'node:fs';
import { misbehave, noteCall, readStdin, sessionFile, takeMode } from './executable.ts';

const argv = process.argv.slice(2);
const resumeAt = argv.indexOf('resume');
const thread = resumeAt < 0 ? undefined : argv[resumeAt + 1];
const usage = argv[0] === 'exec' && argv.includes('-') && argv.includes('--json');
const message = usage ? readStdin() : '';
const say = (event: object) => process.stdout.write(`${JSON.stringify(event)}\n`);

function fail(text: string, code = 1): never {
  process.stderr.write(`${text}\n`);
  process.exit(code);
}

if (!usage) fail('error: unexpected arguments', 2);
const mode = takeMode();
noteCall('codex', message);
if (mode.mode === 'writer') {
  fail(
    `ERROR codex_core::session: failed to initialize thread persistence: thread-store conflict: thread ${thread} already has an active writer`,
  );
}
if (mode.mode === 'writer-event') {
  const text = `thread/resume failed: thread ${thread} already has an active writer (code -32600)`;
  say({ type: 'thread.started', thread_id: thread });
  say({ type: 'error', message: text });
  say({ type: 'turn.failed', error: { message: text } });
  process.exit(1);
}
if (!(await misbehave(mode))) {
  if (thread !== undefined && !existsSync(sessionFile('codex', thread)))
    fail(`Error: thread/resume: thread/resume failed: no rollout found for thread id ${thread} (code -32600)`);
  const id = thread ?? randomUUID();
  appendFileSync(sessionFile('codex', id), `${JSON.stringify({ message })}\n`);
  say({ type: 'thread.started', thread_id: id });
  say({ type: 'turn.started' });
  say({ type: 'item.completed', item: { id: 'item_0', type: 'reasoning', text: 'thinking' } });
  if (mode.mode === 'reconnects') say({ type: 'error', message: 'Reconnecting... 1/5' });
  if (mode.mode === 'dies') process.kill(process.pid, 'SIGKILL');
  if (mode.mode === 'turn-fails') {
    say({ type: 'turn.failed', error: { message: 'usage limit reached' } });
    process.exit(0);
  }
  say({ type: 'item.completed', item: { id: 'item_1', type: 'agent_message', text: 'first thoughts' } });
  say({
    type: 'item.completed',
    item: { id: 'item_2', type: 'agent_message', text: `heard ${Buffer.byteLength(message)} bytes` },
  });
  // The count of the whole thread, as codex reports it: 100 and 7 tokens a turn.
  const turns = readFileSync(sessionFile('codex', id), 'utf8').trim().split('\n').length;
  const counted = { input_tokens: 100 * turns, cached_input_tokens: 60 * turns, output_tokens: 7 * turns };
  say({ type: 'turn.completed', usage: counted });
}
