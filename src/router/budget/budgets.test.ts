import assert from 'node:assert/strict';
import type { ServerResponse } from 'node:http';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { describe, type TestContext, test } from 'node:test';
import { pino } from 'pino';
import { eventually } from '../../../test/support/eventually.ts';
import { atEnd, temporaryFolder } from '../../../test/support/temporary.ts';
import { systemClock } from '../../kit/clock/clock.ts';
import { GroupCommit } from '../../kit/sqlite/group-commit.ts';
import { openDatabase } from '../../kit/sqlite/open.ts';
import type { Budget } from '../../wire/budget.ts';
import { parseInstant } from '../../wire/rfc3339.ts';
import { DEFERRED_UNTIL_HEADER, TOKEN_LIMIT_HEADER } from '../../wire/wake.ts';
import {
  ALARM_ID,
  type Answer,
  type Bench,
  eventsOf,
  fixtureMachine,
  startBench,
  WAKE_TOKEN,
} from '../testing/bench.ts';
import { type PlainDaemon, startPlainDaemon } from '../testing/plain-daemon.ts';
import { startRouterProcess } from '../testing/router-process.ts';
import { ShiftingClock } from '../testing/shifting-clock.ts';
import { WakeRecords } from './budgets.ts';

const USER = 'alice';
const MINUTE = 60_000;
const HOUR = 60 * MINUTE;

async function bounded(
  t: TestContext,
  budget: Budget,
  settings: Record<string, string> = {},
): Promise<{ router: Bench; daemon: PlainDaemon; clock: ShiftingClock }> {
  const clock = new ShiftingClock();
  const router = await startBench(t, { clock, settings });
  const daemon = await startPlainDaemon(t);
  await router.put(USER, { provider: 'http', spec: { url: daemon.url }, budget });
  return { router, daemon, clock };
}

/** Quiet hours in UTC that are in effect now and end within two hours. */
function quietNow(now: number): Budget {
  const time = (instant: number) => new Date(instant).toISOString().slice(11, 16);
  return { quiet: { from: time(now - HOUR), to: time(now + HOUR), timezone: 'UTC' } };
}

function deferredUntil(answer: Answer): number {
  assert.equal(answer.status, 429, answer.text);
  const until = parseInstant(answer.headers.get(DEFERRED_UNTIL_HEADER) ?? '');
  assert.ok(until !== undefined, 'the message has the end time');
  return until;
}

describe('a wake beyond the budget of its user', () => {
  test('is deferred with a reason and a time, and passes at that time', async (t) => {
    const { router, daemon, clock } = await bounded(t, { wakes_per_hour: 2 });
    for (let n = 0; n < 2; n++) assert.equal((await router.wake(USER)).status, 202);
    const fire_id = `${ALARM_ID}@1`;
    const deferred = await router.wake(USER, { fire_id });
    const until = deferredUntil(deferred);
    assert.deepEqual([deferred.json.error.code, deferred.json.error.retryable], ['rate_limited', true]);
    assert.match(
      deferred.json.error.message,
      /^deferred: 2 wakes in the last hour are this user's budget; this one may go at 20/,
    );
    const seconds = Number(deferred.headers.get('retry-after'));
    assert.ok(Math.abs(until - clock.now() - seconds * 1000) < 5000 && seconds > 3500 && seconds <= 3600);
    assert.equal(deferred.headers.get('x-reveille-answered-by'), null);
    assert.equal(daemon.chats.length, 2);
    assert.equal(router.notices.at(-1)?.status, 429);
    clock.advance(until - clock.now());
    assert.equal((await router.wake(USER, { fire_id })).status, 202);
    assert.equal(daemon.chats.length, 3);
  });

  test('does not count for other users, and a repetition of an accepted fire passes without a count', async (t) => {
    const { router, daemon } = await bounded(t, { wakes_per_hour: 1 });
    const fire_id = `${ALARM_ID}@1`;
    assert.equal((await router.wake(USER, { fire_id })).status, 202);
    assert.equal((await router.wake(USER, { fire_id, attempt: 2 })).status, 202);
    deferredUntil(await router.wake(USER));
    await router.put('bob', { provider: 'http', spec: { url: daemon.url } });
    assert.equal((await router.wake('bob')).status, 202);
  });

  test('does not count when the daemon rejects it, and counts when the outcome is unknown', async (t) => {
    const { router, daemon } = await bounded(t, { wakes_per_hour: 1 });
    daemon.answer = (response) => response.writeHead(503).end();
    for (let n = 0; n < 3; n++) assert.equal((await router.wake(USER)).status, 503);
    daemon.answer = (response) => response.destroy();
    const fire_id = `${ALARM_ID}@9`;
    assert.equal((await router.wake(USER, { fire_id })).status, 502);
    daemon.answer = undefined;
    deferredUntil(await router.wake(USER));
    assert.equal((await router.wake(USER, { fire_id })).status, 202, 'this fire may have been accepted');
  });

  test('counts when one of its two calls is rejected and the other is accepted, in either order', async (t) => {
    const { router, daemon } = await bounded(t, { wakes_per_hour: 2 });
    for (const [n, statuses] of [
      [503, 202],
      [202, 503],
    ].entries()) {
      const waiting: ServerResponse[] = [];
      daemon.answer = (response) => void waiting.push(response);
      const fire_id = `${ALARM_ID}@${n}`;
      const calls: Promise<Answer>[] = [];
      for (const attempt of [1, 2]) {
        calls.push(router.wake(USER, { fire_id, attempt }));
        await eventually('it is with the daemon', () => waiting.length === attempt);
      }
      for (const [call, status] of statuses.entries()) {
        waiting[call]!.writeHead(status).end();
        assert.equal((await calls[call]!).status, status);
      }
    }
    daemon.answer = undefined;
    deferredUntil(await router.wake(USER));
    assert.equal((await router.wake(USER, { fire_id: `${ALARM_ID}@0`, attempt: 3 })).status, 202);
  });

  test('does not count when both of its calls are rejected', async (t) => {
    const { router, daemon } = await bounded(t, { wakes_per_hour: 1 });
    const waiting: ServerResponse[] = [];
    daemon.answer = (response) => void waiting.push(response);
    const fire_id = `${ALARM_ID}@1`;
    const calls = [1, 2].map((attempt) => router.wake(USER, { fire_id, attempt }));
    await eventually('both are with the daemon', () => waiting.length === 2);
    for (const response of waiting) response.writeHead(503).end();
    await Promise.all(calls);
    daemon.answer = undefined;
    assert.equal((await router.wake(USER)).status, 202);
  });

  test('is deferred before the machine is started', async (t) => {
    const folder = temporaryFolder(t);
    const router = await startBench(t);
    await router.put(USER, fixtureMachine(folder, undefined, { budget: quietNow(Date.now()) }));
    assert.match(
      (await router.wake(USER)).json.error.message,
      /^deferred: quiet hours of this user until \d\d:\d\d UTC$/,
    );
    assert.equal((await router.admin('GET', `/${USER}`)).json.data.running, 'asleep');
    assert.deepEqual(eventsOf(folder), []);
    assert.equal((await router.wake(USER, { urgent: true })).status, 202);
    const [chat] = eventsOf(folder, 'chat');
    assert.ok(!chat?.body?.includes('urgent'), 'headers for the router are not passed on');
  });

  test('cannot pass beside others: of 50 concurrent wakes only the allowed number passes, and each other one gets its own time', async (t) => {
    const { router, daemon, clock } = await bounded(t, { wakes_per_hour: 10 });
    const answers = await Promise.all(Array.from({ length: 50 }, () => router.wake(USER)));
    assert.equal(answers.filter(({ status }) => status === 202).length, 10);
    assert.equal(daemon.chats.length, 10);
    const untils = answers.filter(({ status }) => status !== 202).map((answer) => deferredUntil(answer) - clock.now());
    const hours = untils.map((until) => Math.round(until / HOUR)).sort();
    assert.deepEqual(
      hours,
      [1, 2, 3, 4].flatMap((hour) => Array.from({ length: 10 }, () => hour)),
    );
  });

  test('is deferred for a command target as well', async (t) => {
    const router = await startBench(t);
    const daemon = await startPlainDaemon(t);
    const spec = { preset: 'webhook', url: `${daemon.url}/hook`, allow_private: true };
    await router.put(USER, { provider: 'command', spec, budget: { min_gap_seconds: 60 } });
    assert.equal((await router.wake(USER)).status, 202);
    assert.match((await router.wake(USER)).json.error.message, /at least 60 seconds between two wakes/);
    assert.equal(daemon.chats.length, 1);
  });
});

describe('the budget of a user', () => {
  test('is the budget of the machine, or else ROUTER_BUDGET as a whole', async (t) => {
    const { router, daemon } = await bounded(t, { wakes_per_day: 5 }, { ROUTER_BUDGET: '{"wakes_per_hour":1}' });
    assert.equal((await router.wake(USER)).status, 202);
    assert.equal((await router.wake(USER)).status, 202);
    const shown = (await router.admin('GET', `/${USER}`)).json.data;
    assert.deepEqual([shown.budget, shown.default_budget], [{ wakes_per_day: 5 }, undefined]);

    const machine = { provider: 'http', spec: { url: daemon.url } };
    await router.put('bob', machine);
    assert.deepEqual((await router.admin('GET', '/bob')).json.data.default_budget, { wakes_per_hour: 1 });
    assert.equal((await router.wake('bob')).status, 202);
    deferredUntil(await router.wake('bob'));
    await router.put('bob', { ...machine, budget: {} });
    assert.equal((await router.wake('bob')).status, 202, 'an empty budget has no limits');
  });

  test('can be changed alone, and applies to the next wake', async (t) => {
    const { router } = await bounded(t, { wakes_per_hour: 1 });
    assert.equal((await router.wake(USER)).status, 202);
    deferredUntil(await router.wake(USER));
    const put = await router.admin('PUT', `/${USER}/budget`, { wakes_per_hour: 2 });
    assert.deepEqual([put.status, put.json.data.budget, put.json.data.token], [200, { wakes_per_hour: 2 }, undefined]);
    assert.equal((await router.wake(USER)).status, 202);
    deferredUntil(await router.wake(USER));
    assert.equal((await router.admin('PUT', `/${USER}/budget`, { wakes: 2 })).status, 400);
    assert.equal((await router.admin('PUT', '/nobody/budget', {})).status, 404);
    assert.equal((await router.admin('DELETE', `/${USER}/budget`)).json.data.budget, undefined);
    assert.equal((await router.wake(USER)).status, 202);
    await router.admin('DELETE', `/${USER}`);
    assert.equal((await router.admin('PUT', `/${USER}/budget`, {})).status, 409);
    const { changes } = (await router.admin('GET', `/${USER}/changes`)).json.data as unknown as {
      changes: { action: string; fields: string[] }[];
    };
    assert.deepEqual(
      changes.slice(1, 3).map(({ action, fields }) => [action, fields]),
      [
        ['budget', ['budget.wakes_per_hour']],
        ['budget', ['budget.wakes_per_hour']],
      ],
    );
  });

  test('is independent of the daemon: a 429 of the daemon is passed on unchanged', async (t) => {
    const { router, daemon } = await bounded(t, {});
    daemon.answer = (response) =>
      response.writeHead(429, { [DEFERRED_UNTIL_HEADER]: '2036-01-01T00:00:00Z', 'retry-after': '7' }).end('busy');
    const answer = await router.wake(USER);
    assert.deepEqual([answer.status, answer.headers.get(DEFERRED_UNTIL_HEADER), answer.text], [429, null, 'busy']);
  });

  test('rejects invalid values, in the setting as well', async (t) => {
    const { router, daemon } = await bounded(t, {});
    const budget = { quiet: { from: '22:00', to: '22:00', timezone: 'UTC' } };
    const answer = await router.admin('PUT', '/bob', { provider: 'http', spec: { url: daemon.url }, budget });
    assert.equal(answer.status, 400);
    assert.match(answer.json.error.message, /budget\.quiet\.to must differ from from/);
    for (const text of ['{"wakes_per_hour":0}', 'ten', '[]', '{"quiet":{"from":"22:00"}}'])
      await assert.rejects(
        startBench(t, { settings: { ROUTER_BUDGET: text } }),
        /ROUTER_BUDGET is not a budget: .*write it like/,
      );
  });

  test('survives a restart, and wakes older than a day do not count', async (t) => {
    const dataDir = temporaryFolder(t);
    const clock = new ShiftingClock();
    const daemon = await startPlainDaemon(t);
    const machine = { provider: 'http', spec: { url: daemon.url }, budget: { wakes_per_day: 2 } };
    const settings = { ROUTER_DATA_DIR: dataDir };
    const first = await startBench(t, { clock, settings });
    await first.put(USER, machine);
    for (let n = 0; n < 2; n++) assert.equal((await first.wake(USER)).status, 202);
    await first.close();
    const second = await startBench(t, { clock, settings });
    const until = deferredUntil(await second.wake(USER));
    await second.close();
    clock.advance(until - clock.now());
    const third = await startBench(t, { clock, settings });
    assert.equal((await third.wake(USER)).status, 202);
  });

  test('counts a fire again when it repeats after a day, also after a restart', async (t) => {
    const dataDir = temporaryFolder(t);
    const file = openDatabase({
      path: join(dataDir, 'router.db'),
      migrations: new URL('../machines/migrations', import.meta.url),
      clock: systemClock,
      lock: 'exclusive',
    });
    atEnd(t, () => file.close());
    const records = new WakeRecords(file, new GroupCommit(file.db));
    await records.put(USER, { fireId: 'a', at: 1000 });
    await records.put(USER, { fireId: 'a', at: 1000 + 25 * HOUR });
    assert.deepEqual(records.of(USER, 1000 + HOUR), [{ fireId: 'a', at: 1000 + 25 * HOUR }]);
  });

  test('is not exceeded when the router is killed during wakes: a possibly accepted wake counts', async (t) => {
    const dataDir = temporaryFolder(t);
    const daemon = await startPlainDaemon(t);
    daemon.answer = () => {};
    const machine = { provider: 'http', spec: { url: daemon.url }, budget: { wakes_per_hour: 3 } };
    const first = await startRouterProcess(t, dataDir);
    await first.put(USER, machine);
    const fires = [1, 2, 3].map((n) => `${ALARM_ID}@${n}`);
    const lost = fires.map((fire_id) => first.wake(USER, { fire_id }).catch(() => undefined));
    await eventually('all three are with the daemon', () => daemon.chats.length === 3);
    deferredUntil(await first.wake(USER));
    await first.kill();
    await Promise.all(lost);

    daemon.answer = undefined;
    const second = await startRouterProcess(t, dataDir);
    deferredUntil(await second.wake(USER));
    for (const fire_id of fires) assert.equal((await second.wake(USER, { fire_id, attempt: 2 })).status, 202);
    deferredUntil(await second.wake(USER));
  });
});

describe('the circuit breaker', () => {
  test('opens when the machine keeps crashing, admits a probe after the pause, and closes when the machine starts', async (t) => {
    const folder = temporaryFolder(t);
    const clock = new ShiftingClock();
    const lines: string[] = [];
    const log = pino({ level: 'info' }, { write: (line: string) => void lines.push(line) });
    const router = await startBench(t, { clock, log });
    const budget: Budget = { breaker: { failures: 2, pause_seconds: 60 } };
    const dying = { provider: 'process', spec: { command: [process.execPath, '-e', 'process.exit(7)'] }, budget };
    await router.put(USER, dying);
    for (let n = 0; n < 2; n++) {
      const [one, other] = await Promise.all([router.wake(USER), router.wake(USER)]);
      assert.deepEqual([one.status, other.status], [503, 503], `${one.text} ${other.text}`);
      // Wait until the backoff of the provider has ended.
      clock.advance(MINUTE);
    }
    // The pause began with the second failure and has ended: one probe may go.
    assert.equal((await router.wake(USER)).status, 503);
    const deferred = await router.wake(USER);
    const until = deferredUntil(deferred);
    assert.match(
      deferred.json.error.message,
      /^deferred: the machine failed to start 3 times in a row \(last: .*7.*\); tried again at 20/,
    );
    assert.ok(Math.abs(until - clock.now() - 2 * MINUTE) < 10_000, 'twice as long');
    assert.equal((await router.wake(USER, { urgent: true })).status, 429);
    assert.ok(lines.some((line) => line.includes('wake deferred')));

    clock.advance(2 * MINUTE);
    await router.put(USER, fixtureMachine(folder, undefined, { budget }));
    const [trying, waiting] = await Promise.all([router.wake(USER), router.wake(USER)]);
    assert.equal(trying.status, 202, trying.text);
    assert.ok([202, 429].includes(waiting.status));
    assert.equal((await router.wake(USER)).status, 202);
  });

  test('counts a server that refuses connections, and ignores an overloaded one', async (t) => {
    const { router, daemon } = await bounded(t, {});
    const budget: Budget = { breaker: { failures: 1 } };
    const specs = [
      { preset: 'webhook', url: `${daemon.url}/hook`, allow_private: true },
      { preset: 'openclaw', url: daemon.url },
      { preset: 'opencode', url: daemon.url },
    ];
    const statuses = { webhook: [429, 503], openclaw: [409, 429, 502, 503], opencode: [401] };
    for (const spec of specs) {
      await router.put(USER, { provider: 'command', spec, budget });
      for (const status of statuses[spec.preset as keyof typeof statuses]) {
        daemon.answer = (response) => response.writeHead(status).end();
        for (let n = 0; n < 2; n++) assert.equal((await router.wake(USER)).status, 503, `${spec.preset} ${status}`);
      }
    }
    await daemon.close();
    for (const spec of [...specs, { preset: 'a2a', url: daemon.url }]) {
      await router.put(USER, { provider: 'command', spec, budget });
      assert.equal((await router.wake(USER)).status, 503, spec.preset);
      deferredUntil(await router.wake(USER));
    }
  });

  test('counts a missing program and a missing folder', async (t) => {
    const { router } = await bounded(t, {});
    const budget: Budget = { breaker: { failures: 1 } };
    const bin = process.execPath;
    for (const spec of [
      { preset: 'claude', bin: '/no/such/program' },
      { preset: 'claude', bin, cwd: '/no/such/folder' },
    ]) {
      await router.put(USER, { provider: 'command', spec, budget });
      assert.equal((await router.wake(USER)).status, 503);
      deferredUntil(await router.wake(USER));
    }
  });

  test('closes at once when the machine changes, gets a token or is restored, and stays open when only the budget changes', async (t) => {
    const clock = new ShiftingClock();
    const router = await startBench(t, { clock });
    const gone = await startPlainDaemon(t);
    await gone.close();
    const daemon = await startPlainDaemon(t);
    const machine = { provider: 'http', spec: { url: gone.url }, budget: { breaker: { failures: 1 } } };
    const opened = async () => {
      assert.equal((await router.wake(USER)).status, 503);
      deferredUntil(await router.wake(USER));
    };
    await router.put(USER, machine);
    await opened();
    await router.put(USER, machine);
    await router.put(USER, { ...machine, idle_seconds: 100 });
    await router.admin('PUT', `/${USER}/budget`, { breaker: { failures: 1, pause_seconds: 50 } });
    deferredUntil(await router.wake(USER));
    await router.admin('POST', `/${USER}/rotate-token`);
    await opened();
    await router.admin('POST', `/${USER}/suspend`);
    await router.admin('POST', `/${USER}/restore`);
    await opened();
    await router.put(USER, { ...machine, spec: { url: daemon.url } });
    assert.equal((await router.wake(USER)).status, 202);
  });
});

describe('a budget in tokens or in money', () => {
  /** A router with a stand-in for chronosd, which reports the same usage for every turn once it has ended. */
  async function withChronosd(t: TestContext, budget: Budget | undefined) {
    const clock = new ShiftingClock();
    const chronosd = await startPlainDaemon(t);
    const daemon = await startPlainDaemon(t);
    const log: Record<string, unknown>[] = [];
    const router = await startBench(t, {
      clock,
      log: pino({ level: 'warn' }, { write: (line: string) => void log.push(JSON.parse(line)) }),
      settings: { ROUTER_CHRONOS_URL: chronosd.url },
    });
    await router.put(USER, { provider: 'http', spec: { url: daemon.url }, ...(budget && { budget }) });
    const answerWith = (usage: object | undefined, isEnded: (fireId: string) => boolean = () => true) => {
      chronosd.answer = (response, { body }) => {
        const { fire_ids } = JSON.parse(body.toString()) as { fire_ids: string[] };
        const turns = fire_ids.filter(isEnded).map((fire_id) => ({ fire_id, usage }));
        response.writeHead(200, { 'content-type': 'application/json' });
        response.end(JSON.stringify({ ok: true, data: { turns } }));
      };
    };
    return { router, daemon, chronosd, clock, log, answerWith };
  }
  const rowsIn = (dataDir: string) => {
    const db = new DatabaseSync(join(dataDir, 'router.db'), { readOnly: true });
    const rows = db.prepare('SELECT fire_id, usage FROM wakes ORDER BY at').all() as { usage: string | null }[];
    db.close();
    return rows.map(({ usage }) => usage);
  };

  test('asks chronosd for the turns of its user that it does not know yet, and remembers the answer', async (t) => {
    const { router, daemon, chronosd, answerWith } = await withChronosd(t, { tokens_per_day: 250 });
    answerWith({ input_tokens: 90, output_tokens: 10 });
    const fires = [1, 2, 3].map((n) => `${ALARM_ID}@${n}`);
    for (const fire_id of fires) assert.equal((await router.wake(USER, { fire_id })).status, 202);
    deferredUntil(await router.wake(USER, { urgent: true }));
    assert.equal((await router.wake(USER, { fire_id: fires[2], attempt: 2 })).status, 202, 'it may have been accepted');
    deferredUntil(await router.wake(USER));
    assert.deepEqual(
      chronosd.chats.map(({ url, headers, body }) => [url, headers.authorization, JSON.parse(body.toString())]),
      fires.map((fire_id) => ['/internal/usage', `Bearer ${WAKE_TOKEN}`, { user_id: USER, fire_ids: [fire_id] }]),
    );
    assert.deepEqual(new Set(rowsIn(router.dataDir)), new Set(['{"input_tokens":90,"output_tokens":10}']));
    assert.deepEqual((await router.admin('GET', `/${USER}`)).json.data.spending, {
      ...{ turns: 3, tokens: 300, cost_usd: 0, unknown: 0, under_way: 0 },
    });
    assert.ok(daemon.chats.every(({ headers }) => headers[TOKEN_LIMIT_HEADER] === undefined));
  });

  test('counts a turn without a report as nothing, and says so', async (t) => {
    const { router, answerWith } = await withChronosd(t, { tokens_per_day: 1 });
    answerWith(undefined);
    for (let n = 0; n < 3; n++) assert.equal((await router.wake(USER)).status, 202);
    answerWith({ input_tokens: 1, output_tokens: 0 });
    const answer = await router.wake(USER);
    deferredUntil(answer);
    assert.match(
      answer.json.error.message,
      /used 1 token, and the budget is 1 token; the usage of 2 of them is not fully/,
    );
    assert.deepEqual(new Set(rowsIn(router.dataDir)), new Set(['unknown', '{"input_tokens":1,"output_tokens":0}']));
  });

  test('admits wakes by what it knows while chronosd does not answer, with a warning', async (t) => {
    const { router, chronosd, log, answerWith } = await withChronosd(t, { tokens_per_day: 100 });
    answerWith({ input_tokens: 90, output_tokens: 10 });
    assert.equal((await router.wake(USER)).status, 202);
    chronosd.answer = (response) => void response.writeHead(500).end('out of order');
    assert.equal((await router.wake(USER)).status, 202);
    await chronosd.close();
    assert.equal((await router.wake(USER)).status, 202);
    assert.deepEqual(
      log.map(({ msg, turns }) => [msg, turns]),
      [1, 2].map((turns) => ['the usage of turns is not known; a budget may be exceeded', turns]),
    );
  });

  test('costs nothing where there is none: no request to chronosd, and no row', async (t) => {
    const { router, daemon, chronosd } = await withChronosd(t, undefined);
    for (let n = 0; n < 3; n++) assert.equal((await router.wake(USER)).status, 202);
    assert.deepEqual(rowsIn(router.dataDir), []);
    await router.admin('PUT', `/${USER}/budget`, { wakes_per_day: 5, tokens_per_turn: 500 });
    for (let n = 0; n < 3; n++) assert.equal((await router.wake(USER)).status, 202);
    assert.equal((await router.admin('GET', `/${USER}`)).json.data.spending, undefined);
    assert.deepEqual(rowsIn(router.dataDir), [null, null, null]);
    assert.deepEqual(chronosd.chats, []);
    assert.deepEqual(
      daemon.chats.map(({ headers }) => headers[TOKEN_LIMIT_HEADER]),
      [undefined, undefined, undefined, '500', '500', '500'],
    );
  });

  test('is refused by a router that does not know chronosd, with the setting', async (t) => {
    const router = await startBench(t);
    const machine = { provider: 'http', spec: { url: 'http://127.0.0.1:1' } };
    await router.put(USER, machine);
    for (const answer of [
      await router.admin('PUT', `/${USER}/budget`, { usd_per_day: 1 }),
      await router.admin('PUT', `/${USER}`, { ...machine, budget: { tokens_per_alarm_per_day: 5 } }),
    ]) {
      assert.equal(answer.status, 400, answer.text);
      assert.match(answer.json.error.message, /in tokens or in money per day needs chronosd; set ROUTER_CHRONOS_URL/);
    }
    assert.equal((await router.admin('PUT', `/${USER}/budget`, { tokens_per_turn: 5 })).status, 200);
    await assert.rejects(
      startBench(t, { settings: { ROUTER_BUDGET: '{"tokens_per_day":5}' } }),
      /needs chronosd; set ROUTER_CHRONOS_URL/,
    );
  });
});
