/** Budgets in tokens: chronosd, a router and Neo with a scripted model, under one clock. */

import assert from 'node:assert/strict';
import { join } from 'node:path';
import { type TestContext, test } from 'node:test';
import { openAgentHost } from '../../src/agents/host.ts';
import { startedNeo, TOKEN } from '../../src/agents/neo/testing/workbench.ts';
import { createChronosClient, holdPrincipal } from '../../src/chronos/client.ts';
import { parseChronosConfig } from '../../src/chronos/config.ts';
import { type RunningChronos, startChronos } from '../../src/chronos/daemon.ts';
import { agentIdentity } from '../../src/kit/identity/agent.ts';
import { generateKey } from '../../src/kit/identity/keys.ts';
import { silentLogger } from '../../src/kit/log/log.ts';
import { pricesSetting } from '../../src/kit/model/prices.ts';
import { calling, modelEndpoint, type Script, saying } from '../../src/kit/model/testing/model-endpoint.ts';
import { parseRouterConfig } from '../../src/router/config.ts';
import { type RunningRouter, startRouter } from '../../src/router/daemon.ts';
import { ADMIN_TOKEN, clientOf, WAKE_TOKEN } from '../../src/router/testing/bench.ts';
import { ShiftingClock } from '../../src/router/testing/shifting-clock.ts';
import type { AlarmView } from '../../src/wire/alarm.ts';
import type { Budget } from '../../src/wire/budget.ts';
import { ReveilleError } from '../../src/wire/errors.ts';
import { eventually } from '../support/eventually.ts';
import { reservePort } from '../support/ports.ts';
import { atEnd, temporaryFolder } from '../support/temporary.ts';

const SECOND = 1000;
const HOUR = 3_600_000;
const DAY = 24 * HOUR;
const USER = 'alice';
/** Of each answer of the scripted model: 11 tokens of input and 7 of output. */
const A_CALL = 18;

async function openInstallation(t: TestContext, budget: Budget | undefined, ...scripts: Script[]) {
  const clock = new ShiftingClock();
  const folder = temporaryFolder(t);
  const endpoint = await modelEndpoint(t, ...scripts);
  let router: RunningRouter | undefined;
  let chronosd: RunningChronos | undefined;
  const [routerPort, chronosPort] = [String(await reservePort()), String(await reservePort())];
  const openRouter = async () => {
    router = await startRouter({
      openAgents: openAgentHost,
      config: parseRouterConfig({
        ROUTER_PORT: routerPort,
        ROUTER_DATA_DIR: join(folder, 'router'),
        ...{ ROUTER_WAKE_TOKEN: WAKE_TOKEN, ROUTER_ADMIN_TOKEN: ADMIN_TOKEN, ROUTER_PUBLIC_PORT: '0' },
      }),
      chronosUrl: () => chronosd?.url,
      ...{ clock, log: silentLogger, version: '0.0.0', environment: process.env },
    });
  };
  const openChronos = async () => {
    chronosd = await startChronos({
      config: parseChronosConfig({
        CHRONOS_PORT: chronosPort,
        CHRONOS_DATA_DIR: join(folder, 'chronos'),
        ...{ CHRONOS_DEV: '1', CHRONOS_WAKE_TOKEN: WAKE_TOKEN },
        CHRONOS_AGENT_AUTH_SECRET: 'a secret for principals, kept over restarts',
        CHRONOS_ROUTER_WAKE_URL: `${router!.url}/internal/wake`,
      }),
      ...{ clock, log: silentLogger },
    });
  };
  await openRouter();
  await openChronos();
  atEnd(t, async () => {
    await chronosd!.close();
    await router!.close();
  });
  const neo = await startedNeo(t, {
    clock,
    config: {
      chronosUrl: chronosd!.url,
      model: { kind: 'endpoint', baseUrl: endpoint.baseUrl, model: 'm', apiKey: undefined },
      cheapModel: null,
      prices: pricesSetting.parse('m=1000/10000'),
    },
  });
  const routerClient = clientOf(router!.url);
  await routerClient.put(USER, { provider: 'http', spec: { url: neo.url }, token: TOKEN, ...(budget && { budget }) });
  const identity = agentIdentity(USER, generateKey());
  let principal = holdPrincipal();
  const client = () =>
    createChronosClient({ url: chronosd!.url, token: 'none-is-asked-for', identity, principal, clock });

  const read = async (id: string): Promise<AlarmView | undefined> =>
    client()
      .getAlarm(id)
      .catch((thrown: unknown) => {
        // A connection that was kept to the chronosd before a restart.
        if (thrown instanceof ReveilleError && thrown.retryable) return undefined;
        throw thrown;
      });
  return {
    ...{ clock, endpoint },
    async set(wake_message: string, more: object = {}): Promise<string> {
      return (await client().createAlarm({ kind: 'once', delay_seconds: 30, wake_message, ...more })).id;
    },
    fires: async (id: string) => (await client().listFires(id)).fires,
    /** The fire of an alarm when its turn has ended. */
    finished: (id: string) =>
      eventually('the turn is reported finished', async () => {
        const { fires } = await client().listFires(id);
        return fires[0]?.reached === 'turn_finished' && fires[0];
      }),
    deferred: (id: string, why: RegExp) =>
      eventually(`it is deferred: ${why}`, async () => {
        const alarm = await read(id);
        return alarm?.held_back && why.test(alarm.held_back.reason) && alarm;
      }),
    read,
    spending: async () => (await routerClient.admin('GET', `/${USER}`)).json.data.spending,
    async restart() {
      await chronosd!.close();
      await router!.close();
      await openRouter();
      await openChronos();
      principal = holdPrincipal();
    },
  };
}

const messagesIn = ({ endpoint }: Awaited<ReturnType<typeof openInstallation>>) =>
  endpoint.requests.map(({ body }) => body.messages.at(-1)!.content);

test('the turn that exceeds a budget finishes, later wakes are deferred over restarts, and each is one turn in the end', async (t) => {
  const all = await openInstallation(t, { tokens_per_day: 2 * A_CALL - 1 }, saying('done'));
  const { clock, set, finished, deferred, spending } = all;
  const first = await set('first');
  clock.advance(31 * SECOND);
  const done = await finished(first);
  const usage = { input_tokens: 11, output_tokens: 7, cost_usd: 0.081 };
  assert.deepEqual([done.turn!.ok, done.turn!.usage], [true, usage]);
  const firstAt = Date.parse(done.accepted_at!);

  clock.advance(HOUR);
  const second = await set('second');
  clock.advance(31 * SECOND);
  assert.equal((await finished(second)).turn!.ok, true, 'it exceeds the budget by itself');
  const secondAt = Date.parse((await finished(second)).accepted_at!);

  clock.advance(HOUR);
  const [third, urgent] = [await set('third'), await set('urgent', { urgent: true })];
  clock.advance(31 * SECOND);
  const why = /^deferred: this user's turns of the last 24 hours used 36 tokens, and the budget is 35 tokens; this one/;
  for (const id of [third, urgent]) {
    const { status, failure_count, last_error, held_back } = await deferred(id, why);
    assert.deepEqual([status, failure_count, last_error], ['active', 0, undefined]);
    // The wake is admitted just before its turn is accepted.
    const early = firstAt + DAY - Date.parse(held_back!.until);
    assert.ok(early >= 0 && early < 30 * SECOND, `${early}`);
    assert.deepEqual(await all.fires(id), []);
  }
  assert.deepEqual(await spending(), { turns: 2, tokens: 36, cost_usd: 0.162, unknown: 0, under_way: 0 });

  await all.restart();
  assert.deepEqual(await spending(), { turns: 2, tokens: 36, cost_usd: 0.162, unknown: 0, under_way: 0 });
  clock.advance(firstAt + DAY - clock.now() - 5 * 60 * SECOND);
  for (const id of [third, urgent]) await deferred(id, why);
  assert.equal(messagesIn(all).length, 2, 'not before the first turn has left the window');

  clock.advance(5 * 60 * SECOND + SECOND);
  // One of the two goes at once, and the other one waits for what it uses.
  const [next, last] = await eventually('one of them has fired', async () => {
    const ids = [third, urgent];
    const fired = await Promise.all(ids.map(async (id) => (await all.read(id))?.status === 'fired'));
    return fired.includes(true) && (fired[0] ? ids : ids.toReversed());
  });
  assert.equal((await finished(next!)).turn!.ok, true);
  await deferred(last!, /used (18|36) tokens/);
  clock.advance(31 * SECOND);
  const { held_back } = await deferred(last!, /used 36 tokens, and the budget is 35 tokens; this one/);
  const early = secondAt + DAY - Date.parse(held_back!.until);
  assert.ok(early >= 0 && early < 30 * SECOND, `${early}`);
  clock.advance(secondAt + DAY - clock.now() + SECOND);
  assert.equal((await finished(last!)).turn!.ok, true);

  const alarms = await Promise.all([first, second, third, urgent].map((id) => all.read(id)));
  for (const alarm of alarms)
    assert.deepEqual([alarm!.status, alarm!.failure_count, alarm!.fire_count], ['fired', 0, 1]);
  assert.equal(messagesIn(all).length, 4);
});

test('a budget for each alarm in dollars defers only the alarm that used it up', async (t) => {
  const all = await openInstallation(t, { usd_per_alarm_per_day: 0.08 }, saying('done'));
  const { clock, set, finished, deferred } = all;
  const series = await set('series', { kind: 'cron', cron_expr: '@every 10m', delay_seconds: undefined });
  clock.advance(601 * SECOND);
  assert.equal((await finished(series)).turn!.ok, true);
  clock.advance(600 * SECOND);
  await deferred(
    series,
    /^deferred: the turns of this alarm of the last 24 hours used \$0\.081, and the budget is \$0\.08;/,
  );
  const other = await set('other');
  clock.advance(31 * SECOND);
  assert.equal((await finished(other)).turn!.ok, true);
});

test('Neo ends a turn at its limit between two calls of the model, with a clear error, and what it did stays', async (t) => {
  const script = calling('I look for it.', { name: 'nothing', args: {} });
  const all = await openInstallation(t, { tokens_per_turn: 2 * A_CALL }, script);
  const { clock, set, finished, endpoint } = all;
  const id = await set('go on');
  clock.advance(31 * SECOND);
  const { turn, attempt } = await finished(id);
  assert.deepEqual([attempt, turn!.ok, turn!.reply], [1, false, 'I look for it.']);
  assert.match(
    turn!.error!,
    /^the turn was stopped: it has used 36 tokens, and its user's budget is 36 per turn \(tokens_per_turn\); what it did/,
  );
  assert.deepEqual(turn!.usage, { input_tokens: 22, output_tokens: 14, cost_usd: 0.162 });
  assert.equal(endpoint.requests.length, 2);
});
