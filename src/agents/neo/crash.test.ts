import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { setTimeout as delay } from 'node:timers/promises';
import { type Dice, diceOf, rounds } from '../../../test/support/random/random.ts';
import { temporaryFolder } from '../../../test/support/temporary.ts';
import { modelEndpoint, saying } from '../../kit/model/testing/model-endpoint.ts';
import { wakeBody } from '../../turns/testing/wakes.ts';
import type { ChatAccepted } from '../../wire/wake.ts';
import { MAX_ATTEMPTS } from './runner.ts';
import { type NeoChild, neoChild } from './testing/neo-child.ts';
import { ask, postChat, settledTurns } from './testing/workbench.ts';

const DUE = Date.UTC(2026, 5, 15, 8, 10);
const KILLS = rounds(4, 20);
const SENDERS = 6;

type Wake = ReturnType<typeof wakeBody>;

/** Sends wakes, new and repeated ones, until the daemon has ended. Records the acknowledged ones. */
async function sendUntilGone(
  neo: NeoChild,
  dice: Dice,
  sent: Wake[],
  note: (wake: Wake, answer: ChatAccepted) => void,
) {
  for (;;) {
    const repeat = sent.length > 0 && dice(3) === 0;
    const conversation = dice(4) === 0 ? {} : { conversation_id: `c${dice(12)}` };
    const wake = repeat ? sent[dice(sent.length)]! : wakeBody(DUE, conversation, randomUUID());
    if (!repeat) sent.push(wake);
    try {
      const answer = await postChat(neo, wake);
      assert.ok(answer.status === 202 || answer.status === 200, answer.text);
      note(wake, JSON.parse(answer.text).data);
    } catch (error) {
      if (error instanceof assert.AssertionError) throw error;
      return;
    }
  }
}

test(`${KILLS} kills at random moments: each acknowledged wake has one turn, which ends`, async (t) => {
  const dice = diceOf(t);
  const dataDir = temporaryFolder(t);
  const endpoint = await modelEndpoint(t, async (response, request) => {
    await delay(dice(15));
    await saying('answered')(response, request);
  });
  const env = { NEO_MODEL: 'm', NEO_MODEL_BASE_URL: endpoint.baseUrl };
  const sent: Wake[] = [];
  const acknowledged = new Map<string, ChatAccepted>();
  let fresh = 0;
  let repeated = 0;
  const note = (wake: Wake, answer: ChatAccepted) => {
    if (answer.deduped) repeated++;
    else fresh++;
    const fireId = wake.fire_id as string;
    const before = acknowledged.get(fireId) ?? answer;
    assert.deepEqual(
      [answer.conversation_id, answer.turn_id],
      [before.conversation_id, before.turn_id],
      'a repeated wake returns the same turn',
    );
    acknowledged.set(fireId, before);
  };
  for (let kill = 0; kill < KILLS; kill++) {
    const neo = await neoChild(dataDir, env);
    const busyEnough = Promise.withResolvers<void>();
    let remaining = dice(80);
    const senders = Array.from({ length: SENDERS }, () =>
      sendUntilGone(neo, dice, sent, (wake, answer) => {
        note(wake, answer);
        if (remaining-- === 0) busyEnough.resolve();
      }),
    );
    await Promise.race([busyEnough.promise, Promise.all(senders)]);
    await delay(dice(20));
    await neo.end('SIGKILL');
    await Promise.all(senders);
  }

  const neo = await neoChild(dataDir, env);
  t.after(() => neo.end('SIGKILL'));
  const listed = JSON.parse((await ask(neo, '/conversations?limit=500')).text).data.conversations as { id: string }[];
  const byFire = new Map<string, string>();
  const counts = { done: 0, interrupted: 0, runAgain: 0 };
  for (const { id } of listed) {
    for (const turn of await settledTurns(neo, id)) {
      assert.ok(!byFire.has(turn.fire_id!), 'an occurrence has one turn');
      byFire.set(turn.fire_id!, turn.id);
      if (turn.status === 'interrupted') {
        assert.equal(turn.attempts, MAX_ATTEMPTS);
        counts.interrupted++;
      } else {
        assert.deepEqual([turn.status, turn.reply], ['done', 'answered']);
        counts.done++;
      }
      if (turn.attempts > 1) counts.runAgain++;
    }
  }
  for (const [fireId, { turn_id }] of acknowledged) assert.equal(byFire.get(fireId), turn_id);
  const sentIds = new Set(sent.map(({ fire_id }) => fire_id));
  for (const fireId of byFire.keys()) assert.ok(sentIds.has(fireId));
  assert.ok(fresh > 0);
  const [fireId, first] = [...acknowledged][0]!;
  const repeat = await postChat(neo, sent.find(({ fire_id }) => fire_id === fireId)!);
  const { turn_id, deduped } = JSON.parse(repeat.text).data as ChatAccepted;
  assert.deepEqual([turn_id, deduped], [first.turn_id, true], 'after all kills, a repeated wake is still recognised');
  t.diagnostic(
    `${KILLS} kills, ${sent.length} wakes, ${acknowledged.size} acknowledged, ${repeated} repeats recognised; turns: ${JSON.stringify(counts)}`,
  );
});

test('a full disk is answered with unavailable, and no acknowledged turn is lost', async (t) => {
  const dataDir = temporaryFolder(t);
  // The shell's file size limit simulates a full disk: every file ends at 512 KiB.
  const small = ['/bin/sh', '-c', 'ulimit -f 1024; exec "$0" "$@"'];
  const neo = await neoChild(dataDir, {}, small);
  t.after(() => neo.end('SIGKILL'));
  const acknowledged: string[] = [];
  let refused = 0;
  for (let n = 0; refused < 5; n++) {
    assert.ok(n < 1000, 'the limit was never reached');
    const wake = wakeBody(DUE, { message: 'x'.repeat(20_000), conversation_id: `c${n}` }, randomUUID());
    const answer = await postChat(neo, wake);
    if (answer.status === 202) {
      acknowledged.push(`c${n}`);
      continue;
    }
    const { error } = JSON.parse(answer.text);
    assert.deepEqual([answer.status, error.code, error.retryable], [503, 'unavailable', true], answer.text);
    refused++;
  }
  assert.equal((await ask(neo, '/healthz')).status, 200, 'it stays alive');
  await neo.end('SIGKILL');

  const roomy = await neoChild(dataDir);
  t.after(() => roomy.end('SIGKILL'));
  for (const id of acknowledged) {
    const [turn] = await settledTurns(roomy, id);
    assert.deepEqual([turn?.status, turn?.message.length], ['done', 20_000]);
  }
});

test('a second Neo over the same folder names the owner and ends', async (t) => {
  const dataDir = temporaryFolder(t);
  const neo = await neoChild(dataDir);
  t.after(() => neo.end('SIGKILL'));
  await assert.rejects(neoChild(dataDir), {
    message: new RegExp(`neo\\.db is in use by process ${neo.process.pid}; stop it first`),
  });
  assert.equal((await ask(neo, '/healthz')).status, 200);
});

test('a damaged file stops the start and is left unchanged', async (t) => {
  const dataDir = temporaryFolder(t);
  writeFileSync(join(dataDir, 'neo.db'), 'this is no database'.repeat(1000));
  await assert.rejects(neoChild(dataDir), { message: /neo\.db is damaged .*left untouched/ });
});

test('wrong settings stop the start with their name', async (t) => {
  const dataDir = temporaryFolder(t);
  await assert.rejects(neoChild(dataDir, { NEO_MODEL: 'm' }), { message: /^NEO_MODEL_BASE_URL is not set/ });
  await assert.rejects(neoChild(dataDir, { NEO_DAEMON_TOKEN: '' }), { message: /^NEO_DAEMON_TOKEN is not set/ });
});

test('SIGTERM lets the running turn finish and ends with status 0', async (t) => {
  const dataDir = temporaryFolder(t);
  const asked = Promise.withResolvers<void>();
  const answer = Promise.withResolvers<void>();
  const endpoint = await modelEndpoint(t, async (response, request) => {
    asked.resolve();
    await answer.promise;
    await saying('in time')(response, request);
  });
  const neo = await neoChild(dataDir, { NEO_MODEL: 'm', NEO_MODEL_BASE_URL: endpoint.baseUrl });
  t.after(() => neo.end('SIGKILL'));
  await postChat(neo, { message: 'x', conversation_id: 'c' });
  await asked.promise;
  const ended = neo.end('SIGTERM');
  // The listening socket is closed when the drain has begun.
  while (
    await fetch(`${neo.url}/healthz`, { headers: { connection: 'close' } }).then(
      () => true,
      () => false,
    )
  );
  answer.resolve();
  assert.equal(await ended, 0);
  const again = await neoChild(dataDir);
  t.after(() => again.end('SIGKILL'));
  const [turn] = await settledTurns(again, 'c');
  assert.deepEqual([turn?.reply, turn?.attempts], ['in time', 1]);
});
