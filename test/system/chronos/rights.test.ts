/**
 * Rights at the effect: every kind of alarm with a command of a person, every credential, and every way to cause a fire
 * or to read a field. The members follow from the tables of routes and of fields, so that a new one needs a decision.
 */
import assert from 'node:assert/strict';
import { type TestContext, test } from 'node:test';
import { Dispatcher } from '../../../src/chronos/dispatch/dispatcher.ts';
import { wakeBody } from '../../../src/chronos/dispatch/http-waker.ts';
import { CHRONOS_ROUTES } from '../../../src/chronos/http/routes.ts';
import { recordReports } from '../../../src/chronos/http/turn-report-routes.ts';
import { clientProof, personProof } from '../../../src/kit/identity/person-rights.ts';
import { silentLogger } from '../../../src/kit/log/log.ts';
import { OWNER_FIELDS, type OwnerField } from '../../../src/wire/alarm-fields.ts';
import { ALARM_RIGHTS } from '../../../src/wire/alarm-rights.ts';
import type { TurnReport } from '../../../src/wire/turn-report.ts';
import { DELIVERED, HandWaker } from './dispatch-bench.ts';
import { ADMIN, type Answer, createHttpBench } from './http-bench.ts';

const [MINUTE, HOUR] = [60_000, 3_600_000];
const CREDENTIALS = ['person', 'agent', 'maker', 'client', 'revoked'] as const;
type Credential = (typeof CREDENTIALS)[number];
const OTHERS = CREDENTIALS.filter((one) => one !== 'person');
const CLIENTS = { maker: { client_id: 'https://maker.example/c.json' }, client: { client_id: 'other', name: 'Other' } };

type Call = (method: string, path: string, body?: object) => Promise<Answer>;

async function createBench(t: TestContext) {
  let dispatcher: Dispatcher | undefined;
  const bench = await createHttpBench(t, { onDue: (dueAt) => dispatcher?.notifyDue(dueAt) });
  const { store, clock } = bench;
  const failing = new Set<string>();
  const waker = new HandWaker(clock, ({ alarm }) =>
    failing.has(alarm.id) ? { outcome: 'failed', httpStatus: 410, error: 'gone', final: true } : DELIVERED,
  );
  dispatcher = new Dispatcher({
    ...{ store, waker, clock, log: silentLogger, random: () => 0 },
    config: { concurrency: 32, userConcurrency: 32, tickMs: 24 * HOUR },
  });
  dispatcher.start();
  t.after(() => dispatcher.drain(0));
  const callOf = async (who: Credential): Promise<Call> => {
    const { revoked } = { revoked: who === 'revoked' };
    return async (method, path, body) => {
      // The clock of the test moves by hours, and a proof of identity lasts five minutes.
      const agent = await bench.agent('ada', key);
      const text = body === undefined ? '' : JSON.stringify(body);
      const [signed] = [{ method, path: path.split('?')[0]!, body: text }];
      const now = revoked ? clock.now() - HOUR : clock.now();
      const proof =
        who === 'person'
          ? personProof('Ada', signed, { secret: ADMIN, now })
          : who === 'agent'
            ? undefined
            : clientProof(CLIENTS[who === 'maker' ? 'maker' : 'client'], signed, { secret: ADMIN, now });
      return agent.call(method, path, {
        ...(body && { body: text }),
        ...(proof !== undefined && { headers: { 'x-chronos-person': proof } }),
      });
    };
  };
  const { key } = await bench.agent('ada');
  const calls = Object.fromEntries(
    await Promise.all(CREDENTIALS.map(async (who) => [who, await callOf(who)] as const)),
  ) as Record<Credential, Call>;
  const set = async (who: Credential, fields: object) => {
    const answer = await calls[who]('POST', '/v1/alarms', { wake_message: 'x', ...fields });
    assert.equal(answer.status, 200, answer.text);
    return answer.data;
  };
  /** The commands of a person that wakes of an alarm would have run. */
  const ran = (id: string): number =>
    waker.wakes
      .filter(({ claim }) => claim.alarm.id === id)
      .map(
        ({ claim }) =>
          JSON.parse(wakeBody(claim)) as { run?: { by_person?: true }; check_state?: { by_person?: true } },
      )
      .filter(({ run, check_state }) => run?.by_person === true || check_state?.by_person === true).length;
  const ledger = async (id: string) => (await calls.person('GET', `/v1/alarms/${id}/fires`)).data.fires;
  const finish = async (id: string) => {
    const [{ fire_id } = assert.fail('no fire')] = await ledger(id);
    const nothing = { error: null, retryAt: null, reply: null, usage: null, turnId: null, conversationId: null };
    const report: TurnReport = { stage: 'turn_finished', at: clock.now(), outcome: 'ok', ...nothing };
    const fire = { owner: 'ada', alarmId: id, fireId: fire_id, dueAt: Number(fire_id.split('@')[1]) };
    await recordReports({ store, clock, onDue: (at) => dispatcher.notifyDue(at) }, fire, [report]);
  };
  /** Steps, so that the dispatcher writes what it has done between them. */
  const pass = async (ms: number) => {
    for (let n = 0; n < 4; n++) await clock.advance(ms / 4);
  };
  const forget = () => void waker.wakes.splice(0);
  return { ...bench, calls, set, ran, ledger, finish, pass, failing, forget };
}
type Bench = Awaited<ReturnType<typeof createBench>>;

const COMMAND = { run: { argv: ['./backup.sh'] } };
const CHECK = { check: { command: { argv: ['./is-new.sh'] } } };
const LATER = { kind: 'once', delay_seconds: 24 * 3600 };
const HOURLY = { kind: 'cron', cron_expr: '30 * * * *' };

/** A way to cause a fire: what a person sets, and what a credential does. The person's own attempt must run the command. */
type Way = (bench: Bench, call: Call, who: Credential) => Promise<string>;

const ofRoute =
  (action: string, fields: object, before?: (bench: Bench, id: string) => Promise<unknown>): Way =>
  async (bench, call) => {
    const { id } = await bench.set('person', { ...fields, ...COMMAND });
    await before?.(bench, id);
    bench.forget();
    await call('POST', `/v1/alarms/${id}/${action}`, action === 'backfill' ? backfillOf(bench) : undefined);
    return id;
  };
const backfillOf = ({ clock }: Bench) => ({
  from: new Date(clock.now() - 2 * HOUR).toISOString(),
  to: new Date(clock.now()).toISOString(),
});
const failed = async ({ failing, pass }: Bench, id: string) => {
  failing.add(id);
  await pass(25 * HOUR);
  failing.delete(id);
};
const paused = async ({ calls, pass }: Bench, id: string) => {
  await calls.person('POST', `/v1/alarms/${id}/pause`);
  await pass(25 * HOUR);
};
/** A person's command follows an alarm that others make or cause. */
const followed =
  (cause: (bench: Bench, call: Call, who: Credential) => Promise<string>): Way =>
  async (bench, call, who) => {
    const first = await cause(bench, call, who);
    const { id } = await bench.set('person', { after: { alarm: first, on: 'any' }, ...COMMAND });
    const third = await bench.set('person', { after: { alarm: id, on: 'any' }, ...COMMAND });
    await call('POST', `/v1/alarms/${first}/trigger`);
    await bench.pass(MINUTE);
    if ((await bench.ledger(first)).length > 0) await bench.finish(first);
    await bench.pass(MINUTE);
    return who === 'person' ? id : `${id} ${third.id}`;
  };

/** Each route with which a caller may cause a fire; the others change or read something else. */
const ROUTES: Readonly<Record<string, Way | 'fields' | 'none'>> = {
  createAlarm: 'none',
  previewAlarm: 'none',
  listAlarms: 'none',
  alarmTotals: 'none',
  alarmMark: 'none',
  getAlarm: 'none',
  patchAlarm: 'fields',
  cancelAlarm: 'none',
  pauseAlarm: 'none',
  resumeAlarm: ofRoute('resume', LATER, paused),
  triggerAlarm: ofRoute('trigger', LATER),
  backfillAlarm: ofRoute('backfill', HOURLY),
  redriveAlarm: ofRoute('redrive', LATER, failed),
  listFires: 'none',
  endClient: 'none',
  getCalendar: 'none',
  createFeed: 'none',
  listFeeds: 'none',
  removeFeed: 'none',
  events: 'none',
};

const byAddress =
  (fields: object, path = ''): Way =>
  async (bench, call) => {
    const { id, hook } = await bench.set('person', { ...fields, ...COMMAND });
    // The address as this caller reads it; a client could also guess the part without the secret.
    const shown =
      (await call('GET', `/v1/alarms/${id}`)).data?.hook?.address ?? hook!.address.replace(/\.[0-9a-f]{32}$/, '');
    await fetch(`${bench.url}${shown}${path}`, { method: 'POST', body: '{}' });
    return id;
  };

const FURTHER: Readonly<Record<string, Way>> = {
  'a secret address': byAddress({ event: { source: 'webhook', verify: 'path' } }),
  'a heartbeat that failed': byAddress({ expect: { every: 'P2D' } }, '/fail'),
  'an alarm of the person, triggered': followed(async ({ set }) => (await set('person', LATER)).id),
  'an alarm of the same credential': followed(
    async ({ set }, _, who) => (await set(who === 'revoked' ? 'agent' : who, LATER)).id,
  ),
  'a chain of two': followed(async (bench) => {
    const first = await bench.set('person', LATER);
    return (await bench.set('person', { after: { alarm: first.id, on: 'any' } })).id;
  }),
  'its own webhook, signed by the one who made it': followed(async (bench, _, who) => {
    const maker = who === 'revoked' ? 'client' : who;
    const made = await bench.set(maker, { event: { source: 'webhook', verify: 'path', repeat: 'always' } });
    await fetch(`${bench.url}${made.hook!.address}`, { method: 'POST', body: '{}' });
    return made.id;
  }),
};

test('every route of a principal is decided', () => {
  const routes = Object.entries(CHRONOS_ROUTES).filter(([, { credential }]) => credential === 'principal');
  assert.deepEqual(routes.map(([name]) => name).sort(), Object.keys(ROUTES).sort());
});

test('no credential but the person causes a command of the person, by any way', async (t) => {
  const bench = await createBench(t);
  const ways = [...Object.entries(ROUTES), ...Object.entries(FURTHER)];
  let attempts = 0;
  for (const [name, way] of ways) {
    if (typeof way === 'string') continue;
    for (const who of CREDENTIALS) {
      const ids = await way(bench, bench.calls[who], who);
      await bench.pass(2 * MINUTE);
      for (const id of ids.split(' ')) {
        assert.equal(bench.ran(id) > 0, who === 'person', `${name} by ${who}`);
        const fires = await bench.ledger(id);
        // What was not refused at the request is in the ledger, with its cause and the reason.
        for (const { outcome, error, cause } of who === 'person'
          ? []
          : fires.filter(({ outcome: one }) => one === 'skipped')) {
          assert.equal(outcome, 'skipped');
          assert.match(error!, /^run is a person's command, and only/, name);
          assert.notEqual(cause!.by, 'person');
        }
        await bench.calls.person('DELETE', `/v1/alarms/${id}`);
      }
      attempts++;
    }
  }
  t.diagnostic(`${attempts} attempts`);
});

/** A value of each field, for an alarm of a kind that may have it. */
const SAMPLES: { readonly [N in OwnerField]: readonly [fields: object, value: unknown] } = {
  kind: [LATER, 'once'],
  label: [LATER, 'y'],
  wake_message: [LATER, 'y'],
  payload: [LATER, { y: 1 }],
  conversation_id: [LATER, 'c'],
  idempotency_key: [LATER, 'k'],
  when: [LATER, 'in 20 minutes'],
  delay_seconds: [LATER, 60],
  fire_at: [LATER, '2026-06-20T00:00:00Z'],
  cron_expr: [HOURLY, '45 * * * *'],
  rrule: [{ kind: 'rrule', rrule: 'RRULE:FREQ=HOURLY' }, 'RRULE:FREQ=HOURLY;BYMINUTE=5'],
  timezone: [HOURLY, 'Asia/Kolkata'],
  jitter_seconds: [HOURLY, 600],
  ends_at: [HOURLY, '2036-01-01T00:00:00Z'],
  max_fires: [HOURLY, 99],
  holidays: [HOURLY, null],
  catch_up: [HOURLY, 'all'],
  catch_up_window_seconds: [HOURLY, 60],
  overlap: [HOURLY, 'skip'],
  pause_on_failure: [HOURLY, true],
  check: [HOURLY, { command: { argv: ['true'] } }],
  event: [{ event: { source: 'webhook' } }, { source: 'webhook', quiet_for: 'PT5S', deadline: 'PT1H' }],
  after: [{ after: undefined, event: { source: 'webhook' } }, undefined],
  expect: [{ expect: { every: 'P2D' } }, { every: 'PT1H' }],
  run: [LATER, { argv: ['true'] }],
  model: [LATER, null],
  tools: [LATER, null],
  deliver: [LATER, ['mail']],
  max_failures: [LATER, 5],
  max_lateness_seconds: [LATER, 60],
  urgent: [LATER, true],
  wake_computer: [LATER, true],
};

test('after an edit of what decides about it, a command of the person is theirs no more', async (t) => {
  const bench = await createBench(t);
  let edits = 0;
  for (const name of OWNER_FIELDS) {
    const { decides } = ALARM_RIGHTS[name];
    const [fields, value] = SAMPLES[name];
    if (value === undefined) continue;
    for (const part of [COMMAND, CHECK]) {
      for (const who of OTHERS) {
        const { id } = await bench.set('person', { ...fields, ...part });
        const edited = await bench.calls[who]('PATCH', `/v1/alarms/${id}`, { [name]: value });
        if (who !== 'agent') assert.ok([400, 403].includes(edited.status), `${name} by ${who}: ${edited.status}`);
        await bench.pass(edited.status === 200 && decides !== 'nothing' ? 25 * HOUR : 0);
        if (edited.status === 200 && decides !== 'nothing' && !(part === CHECK && decides === 'command'))
          assert.equal(bench.ran(id), 0, `${name} by ${who}`);
        await bench.calls.person('DELETE', `/v1/alarms/${id}`);
        edits++;
      }
    }
  }
  t.diagnostic(`${edits} edits`);
});

test('a command that a person adds, or sets again, runs at the times of the alarm, or is refused', async (t) => {
  const bench = await createBench(t);
  const runsAfter = async (id: string) => {
    const { status, text } = await bench.calls.person('PATCH', `/v1/alarms/${id}`, COMMAND);
    assert.equal(status, 200, text);
    bench.forget();
    await bench.pass(HOUR);
    return bench.ran(id) > 0;
  };
  for (const who of ['agent', 'maker'] as const) {
    assert.ok(await runsAfter((await bench.set(who, HOURLY)).id), `a series of ${who}`);
    // Who made the secret of a sender can send, so the command would never run.
    const { id } = await bench.set(who, { event: { source: 'webhook' } });
    const refused = await bench.calls.person('PATCH', `/v1/alarms/${id}`, COMMAND);
    assert.equal(refused.status, 400, refused.text);
    const more = { ...COMMAND, event: { source: 'webhook', verify: 'github' } };
    const renewed = await bench.calls.person('PATCH', `/v1/alarms/${id}`, more);
    assert.equal(renewed.status, 200, `with a new secret: ${renewed.text}`);
  }
  const { id } = await bench.set('person', { ...HOURLY, ...COMMAND });
  await bench.calls.agent('PATCH', `/v1/alarms/${id}`, { cron_expr: '45 * * * *' });
  assert.ok(await runsAfter(id), 'after the agent has moved the time');
});

const SECRETS = {
  header: 'canary-of-a-header',
  user: 'canary-of-a-user',
  query: 'canary-of-a-query',
  argument: 'canary-of-an-argument',
  secret: 'canary-of-a-given-secret',
};
const READ = {
  event: { source: 'webhook', verify: 'path', repeat: 'always' },
  check: {
    http: {
      url: `https://${SECRETS.user}:x@example.com/?k=${SECRETS.query}`,
      headers: { authorization: SECRETS.header },
    },
  },
  run: { argv: ['./backup.sh', SECRETS.argument] },
  idempotency_key: 'the same',
};
/** What of a person's alarm a credential must not read; its own secret address is one more. */
const HIDDEN: Readonly<Record<Credential, readonly string[]>> = {
  person: [SECRETS.secret],
  agent: [SECRETS.header, SECRETS.user, SECRETS.secret],
  maker: Object.values(SECRETS),
  client: Object.values(SECRETS),
  revoked: Object.values(SECRETS),
};

test('no route shows an address or a secret to a credential that the table does not name', async (t) => {
  const bench = await createBench(t);
  let answers = 0;
  for (const owner of ['person', 'maker', 'agent'] as const) {
    for (const who of CREDENTIALS) {
      const { run, check, ...ofClient } = READ;
      const fields = owner === 'maker' ? ofClient : { ...ofClient, check, ...(owner === 'person' && { run }) };
      const { id, hook } = await bench.set(owner, fields);
      assert.match(hook!.address, /\.[0-9a-f]{32}$/, 'the answer to the create shows the address that it made');
      const given = { kind: 'event', event: { source: 'webhook', secret: SECRETS.secret } };
      const second = await bench.set(owner, given);
      const ofCommand = { check: { command: { argv: ['./is-new.sh', SECRETS.argument] } }, ...HOURLY };
      const third = owner === 'person' ? await bench.set(owner, ofCommand) : second;
      const call = bench.calls[who];
      const texts = [
        (await call('GET', '/v1/alarms')).text,
        (await call('GET', `/v1/alarms/${second.id}`)).text,
        (await call('GET', `/v1/alarms/${third.id}`)).text,
        (await call('GET', `/v1/alarms/${id}`)).text,
        (await call('POST', '/v1/alarms', { wake_message: 'x', ...fields })).text,
        (await call('GET', `/v1/alarms/${id}/fires`)).text,
        (await call('POST', `/v1/alarms/${id}/trigger`)).text,
        (await call('POST', `/v1/alarms/${id}/redrive`)).text,
        (await call('POST', `/v1/alarms/${id}/backfill`, backfillOf(bench))).text,
        (await call('POST', `/v1/alarms/${id}/pause`)).text,
        (await call('POST', `/v1/alarms/${id}/resume`)).text,
        (await call('PATCH', `/v1/alarms/${id}`, { label: 'theirs' })).text,
        (await call('GET', `/v1/alarms/${id}`)).text,
        (await call('DELETE', `/v1/alarms/${id}`)).text,
      ];
      const own = who === owner;
      const [token] = /[0-9a-f]{32}$/.exec(hook!.address)!;
      for (const text of texts) {
        if (who !== 'person' && !own) assert.ok(!text.includes(token), `the address of ${owner} to ${who}: ${text}`);
        const hidden = own && owner !== 'person' ? [SECRETS.secret] : HIDDEN[who];
        // What an agent has set is its own, and the one of all clients' alarms.
        const kept = who === 'agent' && owner !== 'person' ? [SECRETS.secret] : hidden;
        for (const secret of kept) assert.ok(!text.includes(secret), `${secret} of ${owner} to ${who}: ${text}`);
        answers++;
      }
      if (who === 'person' || own)
        assert.ok(
          texts.some((text) => text.includes(token)),
          `${owner} to ${who}`,
        );
      for (const one of [second, third]) await bench.calls.person('DELETE', `/v1/alarms/${one.id}`);
      await bench.calls.person('DELETE', `/v1/alarms/${id}`);
    }
  }
  t.diagnostic(`${answers} answers`);
});

test('each fire records who caused it', async (t) => {
  const bench = await createBench(t);
  const { id } = await bench.set('agent', HOURLY);
  for (const who of ['person', 'agent', 'maker'] as const) {
    await bench.calls[who]('POST', `/v1/alarms/${id}/trigger`);
    await bench.pass(1000);
  }
  await bench.pass(HOUR);
  const causes = (await bench.ledger(id)).map(({ cause }) => cause);
  assert.deepEqual(causes.reverse(), [
    { by: 'person' },
    { by: 'agent' },
    { by: 'client', ...CLIENTS.maker },
    undefined,
  ]);
});

test('a fire keeps who decided when it fires, also after the person edits that before its turn has ended', async (t) => {
  const bench = await createBench(t);
  for (const who of ['agent', 'maker', 'person'] as const) {
    const first = await bench.set(who, HOURLY);
    const { id } = await bench.set('person', { after: { alarm: first.id, on: 'any' }, ...COMMAND });
    await bench.pass(HOUR);
    const edited = await bench.calls.person('PATCH', `/v1/alarms/${first.id}`, { cron_expr: '45 3 1 1 *' });
    assert.equal(edited.status, 200, edited.text);
    await bench.finish(first.id);
    await bench.pass(MINUTE);
    assert.equal(bench.ran(id) > 0, who === 'person', who);
  }
});

test('a repeated report of a turn that had ended before causes no command', async (t) => {
  const bench = await createBench(t);
  const first = await bench.set('person', HOURLY);
  await bench.calls.person('POST', `/v1/alarms/${first.id}/trigger`);
  await bench.pass(MINUTE);
  await bench.finish(first.id);
  await bench.pass(MINUTE);
  const { id } = await bench.set('person', { after: { alarm: first.id, on: 'any' }, ...COMMAND });
  await bench.finish(first.id);
  await bench.pass(MINUTE);
  assert.equal(bench.ran(id), 0);
});
