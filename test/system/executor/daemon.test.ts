import assert from 'node:assert/strict';
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { chmodSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:http';
import { join } from 'node:path';
import { type TestContext, test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { generateKey, loadOrCreateKey } from '../../../src/kit/identity/keys.ts';
import { intentReceiptSchema } from '../../../src/wire/intent-receipt.ts';
import { firstLine } from '../../support/cluster/processes.ts';
import { eventually } from '../../support/eventually.ts';
import { COMPILED, LEAN } from '../../support/quick-start.ts';
import { closeServer, listening, temporaryFolder } from '../../support/temporary.ts';
import { chronosd } from './chronosd.ts';
import { callerOf, executorSettings, readOnlyPlan, startedExecutor, transfer } from './executor-bench.ts';

const PROCESS = fileURLToPath(new URL('./executor-process.fixture.ts', import.meta.url));

type Running = { child: ChildProcess; url: string; publicKey: string; kill(): Promise<void> };

/** The executor as a process that can be killed. */
async function spawned(t: TestContext, folder: string, more: Record<string, string> = {}): Promise<Running> {
  const child = spawn(process.execPath, [...LEAN, PROCESS], {
    env: { ...executorSettings(folder, more), ...COMPILED },
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  const exited = once(child, 'exit');
  t.after(() => child.kill('SIGKILL'));
  const line = await firstLine(child);
  return {
    child,
    ...JSON.parse(line),
    async kill() {
      child.kill('SIGKILL');
      await exited;
    },
  };
}

test('its key is created once, for its owner alone, and a key that others can read stops the start', async (t) => {
  const folder = temporaryFolder(t);
  const first = await startedExecutor(t, folder);
  await first.close();
  const file = join(folder, 'executor', 'executor.key');
  assert.equal(statSync(file).mode & 0o777, 0o600);
  assert.equal(first.publicKey, loadOrCreateKey(file).publicKeyHex);
  const again = await startedExecutor(t, folder);
  assert.equal(again.publicKey, first.publicKey);
  await again.close();
  chmodSync(file, 0o644);
  await assert.rejects(startedExecutor(t, folder), { code: 'forbidden', message: /chmod 600/ });
});

test('a journal that another key has signed is not continued', async (t) => {
  const folder = temporaryFolder(t);
  const first = await startedExecutor(t, folder);
  await first.close();
  const file = join(folder, 'executor', 'executor.key');
  rmSync(file);
  writeFileSync(file, generateKey().seedHex(), { mode: 0o600 });
  await assert.rejects(startedExecutor(t, folder), { code: 'conflict' });
});

test('a failed start names its cause, and leaves nothing behind that hinders the next', async (t) => {
  const folder = temporaryFolder(t);
  const policy = join(folder, 'policy.yaml');
  writeFileSync(policy, 'version: 1\nrules:\n  - name: x\n    efect: allow\n');
  await assert.rejects(startedExecutor(t, folder, { EXECUTOR_POLICY: policy }), {
    code: 'invalid_request',
    message: /policy\.yaml:4:\d+: .*efect/,
  });
  await assert.rejects(startedExecutor(t, folder, { EXECUTOR_POLICY: join(folder, 'nothing.yaml') }), {
    code: 'invalid_request',
    message: /nothing\.yaml/,
  });
  await assert.rejects(startedExecutor(t, folder, { EXECUTOR_MANIFEST: join(folder, 'nothing.json') }), {
    code: 'invalid_request',
    message: /EXECUTOR_MANIFEST .*nothing\.json cannot be read/,
  });
  const other = createServer().listen(0, '127.0.0.1');
  await once(other, 'listening');
  t.after(() => closeServer(other));
  const { port } = other.address() as { port: number };
  await assert.rejects(startedExecutor(t, folder, { EXECUTOR_PORT: String(port) }), {
    code: 'unavailable',
    message: new RegExp(`executor cannot listen on 127\\.0\\.0\\.1:${port}: another program listens there`),
  });
  await startedExecutor(t, folder);
  await assert.rejects(startedExecutor(t, folder), { code: 'unavailable' }, 'the folder is in use');
});

test('a manifest that disagrees with its server stops the start with every difference, and fails no waiting intent', async (t) => {
  const folder = temporaryFolder(t);
  const whole = await startedExecutor(t, folder);
  const id = await callerOf(whole, 'ada').submit({ intent: transfer() });
  await callerOf(whole, 'ada').waiting(id);
  await whole.close();
  const drifted = join(folder, 'drifted.json');
  const text = readFileSync(executorSettings(folder).EXECUTOR_MANIFEST!, 'utf8');
  const start = (from: string, to: string) => {
    writeFileSync(drifted, text.replaceAll(from, to));
    return startedExecutor(t, folder, { EXECUTOR_MANIFEST: drifted });
  };
  await assert.rejects(start('"name":"simulate"', '"name":"pretend"'), {
    code: 'invalid_request',
    message: /rail\.dry_run names "simulate", which the manifest does not declare/,
  });
  await assert.rejects(start('simulate', 'pretend'), {
    code: 'conflict',
    message:
      'server "ledger": "simulate" is not declared in the manifest\n' +
      'server "ledger": "pretend" is declared in the manifest, but the server does not have it',
  });
  const repaired = await startedExecutor(t, folder);
  const gate = await callerOf(repaired, 'ada').waiting(id);
  await callerOf(repaired, 'ada').answer(id, 'pay', { approved: true, call_sha256: gate.call.call_sha256 });
  await callerOf(repaired, 'ada').until(id, 'completed');
});

test('a question survives kill -9, and the next process accepts its answer', async (t) => {
  const folder = temporaryFolder(t);
  const first = await spawned(t, folder);
  const id = await callerOf(first, 'ada').submit({ intent: transfer(), idempotency_key: 'k' });
  const before = await callerOf(first, 'ada').waiting(id);
  await first.kill();
  const second = await spawned(t, folder);
  assert.equal(second.publicKey, first.publicKey);
  const ada = callerOf(second, 'ada');
  assert.equal(await ada.submit({ intent: transfer(), idempotency_key: 'k' }), id);
  const after = await ada.waiting(id);
  assert.deepEqual(after.call, before.call);
  await ada.answer(id, 'pay', { approved: true, call_sha256: before.call.call_sha256 });
  await ada.until(id, 'completed');
  const ended = once(second.child, 'exit');
  second.child.kill('SIGTERM');
  assert.deepEqual(await ended, [0, null]);
});

test('an alarm that could not be set before kill -9 is set once by the next process', async (t) => {
  const chronosDaemon = await chronosd(t, 'ada');
  const folder = temporaryFolder(t);
  const addressed = (url: string) => ({
    EXECUTOR_CHRONOS_URL: url,
    EXECUTOR_CHRONOS_TOKEN: chronosDaemon.chronos.token,
  });
  let attempts = 0;
  const away = createServer((_, response) => {
    attempts++;
    response.destroy();
  });
  const first = await spawned(t, folder, addressed(await listening(t, away)));
  const ada = callerOf(first, 'ada');
  const id = await ada.submit({ intent: transfer(), origin: 'chronos', conversation_id: 'c-7' });
  const gate = await ada.waiting(id);
  await ada.data('POST', `/intents/${id}/park`, { conversation_id: 'c-7' });
  await ada.answer(id, 'pay', { approved: true, call_sha256: gate.call.call_sha256, answer: 'go on' });
  await ada.until(id, 'completed');
  await eventually('it was tried', () => attempts > 0);
  await first.kill();
  await chronosDaemon.enrol(first.publicKey);
  const second = await spawned(t, folder, addressed(chronosDaemon.chronos.url));
  const [alarm] = await eventually('the alarm is set', async () => {
    const alarms = await chronosDaemon.alarms();
    return alarms.length > 0 && alarms;
  });
  await second.kill();
  const third = await spawned(t, folder, addressed(chronosDaemon.chronos.url));
  await third.kill();
  assert.equal((await chronosDaemon.alarms()).length, 1);
  assert.match(alarm!.wake_message, /was approved by ada at .*, with the answer "go on"/);
  assert.match(alarm!.payload!.text, /transfer_id/);
  assert.deepEqual([alarm!.conversation_id, alarm!.idempotency_key], ['c-7', `intent-${id}`]);
});

test('kill -9 during a transfer moves the money once or not at all, and the outcome is reported', async (t) => {
  const folder = temporaryFolder(t);
  let moved = 0;
  for (let round = 0; round < 3; round++) {
    const first = await spawned(t, folder);
    const ada = callerOf(first, 'ada');
    const id = await ada.submit({ intent: transfer('1.00') });
    const gate = await ada.waiting(id);
    const answer = ada.answer(id, 'pay', { approved: true, call_sha256: gate.call.call_sha256 }).catch(() => undefined);
    await new Promise((resolve) => setTimeout(resolve, round * 4));
    await first.kill();
    await answer;
    const second = await spawned(t, folder);
    const again = callerOf(second, 'ada');
    const state = await eventually('it has ended or still asks', async () => {
      const now = await again.state(id);
      return !['executing', 'drafting', 'planned'].includes(now.status!) && now;
    });
    if (state.status === 'awaiting_approval') {
      await again.answer(id, 'pay', { approved: true, call_sha256: (await again.waiting(id)).call.call_sha256 });
      await again.until(id, 'completed');
    } else assert.match(state.status!, /^(completed|failed)$/);
    const { status, error } = (await again.state(id)) as { status?: string; error?: { code: string } };
    if (status === 'completed') moved++;
    // The call was put down as begun and never left; the ledger has closed its key, so that it cannot arrive any more.
    else assert.equal(error?.code, 'not_run');
    const { envelopes } = intentReceiptSchema.parse(await again.data('GET', `/intents/${id}/receipt`));
    assert.equal(envelopes.filter(({ kind }) => kind === 'call.started').length, 1);
    const seen = await again.submit({ intent: readOnlyPlan() });
    const { result } = await again.until(seen, 'completed');
    assert.match(JSON.stringify(result), new RegExp(`${(5000 - moved).toFixed(2)}`), `round ${round}: ${status}`);
    await second.kill();
  }
});
