import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { text } from 'node:stream/consumers';
import { type TestContext, test } from 'node:test';
import { setTimeout as delay } from 'node:timers/promises';
import { type Dice, diceOf, rounds } from '../../../test/support/random/random.ts';
import { temporaryFolder } from '../../../test/support/temporary.ts';
import { systemClock } from '../../kit/clock/clock.ts';
import { turnReportKey, verifyWebhook } from '../../kit/identity/webhook-signature.ts';
import { modelEndpoint, saying } from '../../kit/model/testing/model-endpoint.ts';
import { wakeBody } from '../../turns/testing/wakes.ts';
import { WAKE_HEADERS } from '../../wire/wake.ts';
import { type NeoChild, neoChild } from './testing/neo-child.ts';
import { postChat, TOKEN } from './testing/workbench.ts';

const DUE = Date.UTC(2026, 5, 15, 8, 10);
const KILLS = rounds(3, 8);

type Taken = { turnId: string; ok: boolean | undefined };

/**
 * A simulated chronosd. It checks the signature, and now and then refuses, closes the connection, or answers after
 * processing.
 */
async function startReceiver(t: TestContext, dice: Dice) {
  const finished = new Map<string, Taken[]>();
  let misbehaves = true;
  const server = createServer(async (request, response) => {
    const body = await text(request);
    const headers = request.headers as Record<string, string>;
    const verdict = verifyWebhook({ headers, body, secrets: [turnReportKey(TOKEN)], nowMs: systemClock.now() });
    const behaviour = misbehaves ? dice(6) : 5;
    if (behaviour === 0) return void request.socket.destroy();
    if (behaviour === 1) return void response.writeHead(503).end('{}');
    const { receipts } = JSON.parse(body) as { receipts: { stage: string; turn_id: string; ok?: boolean }[] };
    assert.ok(verdict.ok);
    for (const { stage, turn_id: turnId, ok } of receipts) {
      if (stage !== 'turn_finished') continue;
      const fireId = headers['webhook-id']!;
      finished.set(fireId, [...(finished.get(fireId) ?? []), { turnId, ok }]);
    }
    if (behaviour === 2) return void request.socket.destroy();
    response.end('{}');
  }).listen(0, '127.0.0.1');
  await once(server, 'listening');
  t.after(() => {
    server.closeAllConnections();
    server.close();
  });
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  const behaveWell = () => {
    misbehaves = false;
  };
  return { finished, url, behaveWell };
}

/** Sends wakes until the daemon has ended; stores the acknowledged fires with their turns, and reports the first. */
async function sendUntilGone(
  neo: NeoChild,
  dice: Dice,
  acknowledged: Map<string, string>,
  onFirst: () => void,
): Promise<void> {
  for (;;) {
    const wake = wakeBody(DUE, { conversation_id: `c${dice(12)}` }, randomUUID());
    try {
      const answer = await postChat(neo, wake, { [WAKE_HEADERS.user]: 'alice' });
      acknowledged.set(wake.fire_id as string, JSON.parse(answer.text).data.turn_id);
      onFirst();
    } catch {
      return;
    }
  }
}

test(`${KILLS} kills at random moments with an unreliable chronosd: the end of every turn is reported`, async (t) => {
  const dice = diceOf(t);
  const { finished, url, behaveWell } = await startReceiver(t, dice);
  const endpoint = await modelEndpoint(t, saying('answered'));
  const env = { NEO_MODEL: 'm', NEO_MODEL_BASE_URL: endpoint.baseUrl, NEO_CHRONOS_URL: url };
  const dataDir = temporaryFolder(t);
  const acknowledged = new Map<string, string>();
  for (let kill = 0; kill < KILLS; kill++) {
    const neo = await neoChild(dataDir, env);
    const isAtWork = Promise.withResolvers<void>();
    const sending = sendUntilGone(neo, dice, acknowledged, isAtWork.resolve);
    await Promise.race([isAtWork.promise, sending]);
    await delay(dice(250));
    await neo.end('SIGKILL');
    await sending;
  }
  behaveWell();
  const last = await neoChild(dataDir, env);
  t.after(() => last.end('SIGKILL'));
  const until = performance.now() + 60_000;
  const missing = () => [...acknowledged.keys()].filter((fireId) => !finished.has(fireId));
  while (missing().length > 0) {
    assert.ok(performance.now() < until, `${missing().length} of ${acknowledged.size} are not reported`);
    await delay(20);
  }
  assert.ok(acknowledged.size > 0);
  for (const [fireId, turnId] of acknowledged)
    for (const taken of finished.get(fireId)!) assert.equal(taken.turnId, turnId);
});
