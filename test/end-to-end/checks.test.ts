/** Checks of alarms from the request to the ledger, with the real chronosd and router. */

import assert from 'node:assert/strict';
import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { type TestContext, test } from 'node:test';
import { personProof } from '../../src/kit/identity/person-rights.ts';
import { Sandbox } from '../../src/kit/process/isolation.ts';
import { eventsOf, fixtureMachine } from '../../src/router/testing/bench.ts';
import { eventually } from '../support/eventually.ts';
import { needs } from '../support/tools.ts';
import { startSite } from '../system/checks/bench.ts';
import { openChronosdWithRouter, USER } from './chronosd-with-router.ts';

const ADMIN = 'the operator of chronosd in these tests';
const EVERY_SECOND = { kind: 'rrule', rrule: 'RRULE:FREQ=SECONDLY;INTERVAL=1', wake_message: 'look' } as const;

const byAda = (request: { method: string; path: string; body: string }) =>
  personProof('Ada', request, { secret: ADMIN, now: Date.now() });

async function open(t: TestContext) {
  const site = await startSite(t);
  const path = '/usr/local/bin:/usr/bin:/bin';
  const daemons = await openChronosdWithRouter(
    t,
    { ...process.env },
    { CHRONOS_ADMIN_TOKEN: ADMIN, CHRONOS_MIN_INTERVAL_SECONDS: '1' },
    {
      routerSettings: { ROUTER_CHECK_ALLOW: new URL(site.url).host },
      sandbox: new Sandbox('auto', { hidden: [], grantable: [], kept: [] }, path),
    },
  );
  const machine = fixtureMachine(daemons.work);
  await daemons.put(USER, { ...machine, spec: { ...machine.spec, cwd: daemons.work, sandbox: false } });
  const outcomes = async (id: string) => (await daemons.fires(id)).map(({ outcome }) => outcome);
  return { ...daemons, daemons, site, outcomes, starts: () => eventsOf(daemons.work, 'start').length };
}

test('a check that says no skips, starts nothing and fails nothing; a change wakes once, with its data', async (t) => {
  const { site, setAlarm, client, fires, outcomes, starts, work, daemons } = await open(t);
  let version = 1;
  site.answer = (_, response) => response.end(JSON.stringify({ version }));
  const check = { http: { url: site.url, pointer: '/version', changed: true } } as const;
  const id = await setAlarm({ ...EVERY_SECOND, delay_seconds: undefined, check });
  await daemons.fire(id, 'the first wake is accepted', ({ outcome }) => outcome === 'delivered');
  await eventually(
    'three fires are skipped',
    async () => (await outcomes(id)).filter((one) => one === 'skipped').length >= 3,
  );
  version = 2;
  await eventually('a second wake', async () => (await outcomes(id)).filter((one) => one === 'delivered').length === 2);
  await eventually('it is skipped again', async () => (await outcomes(id))[0] === 'skipped');
  assert.equal(starts(), 1, 'the machine runs already');
  const chats = eventsOf(work, 'chat').map(({ body }) => JSON.parse(Buffer.from(body!, 'base64').toString()));
  assert.deepEqual(
    chats.map((chat) => chat.check),
    [
      { verdict: 'wake', reason: 'the value at /version is known for the first time', output: '1' },
      { verdict: 'wake', reason: 'the value at /version has changed since the last wake', output: '2' },
    ],
  );
  const [skipped] = await fires(id);
  assert.match(skipped!.error!, /^check: the value at \/version has not changed since the last wake \(\d+ ms\)$/);
  assert.equal(skipped!.http_status, 200);
  const view = await client().getAlarm(id);
  assert.deepEqual([view.status, view.failure_count, view.fire_count, view.last_error], ['active', 0, 2, undefined]);
  assert.equal(JSON.stringify(view).includes('check_state'), false);
});

test('max_skips and wake_at_least_every wake anyway; a trigger by hand is not checked', async (t) => {
  const { site, setAlarm, client, outcomes, work } = await open(t);
  const news = () =>
    eventsOf(work, 'chat').map(({ body }) => JSON.parse(Buffer.from(body!, 'base64').toString()).check?.reason);
  const check = { http: { url: site.url, status: 204 } };
  const id = await setAlarm({ ...EVERY_SECOND, delay_seconds: undefined, check: { ...check, max_skips: 2 } });
  await eventually('it is woken', async () => (await outcomes(id)).includes('delivered'));
  const all = await outcomes(id);
  assert.deepEqual(all.slice(all.indexOf('delivered')), ['delivered', 'skipped', 'skipped']);
  assert.match(news()[0], /^2 skipped in a row \(max_skips\); the check said no: .*status 200, not 204/);
  await client().cancelAlarm(id);

  const often = { ...check, wake_at_least_every: 'PT3S' };
  const other = await setAlarm({ ...EVERY_SECOND, delay_seconds: undefined, check: often });
  await eventually('two wakes', async () => (await outcomes(other)).filter((one) => one === 'delivered').length === 2);
  assert.ok((await outcomes(other)).filter((one) => one === 'skipped').length >= 3);
  await client().cancelAlarm(other);

  const later = await setAlarm({ delay_seconds: 3600, check });
  const hits = site.hits;
  await client().triggerAlarm(later);
  await eventually('the trigger is delivered', async () => (await outcomes(later))[0] === 'delivered');
  assert.equal(site.hits, hits);
  assert.equal(news().at(-1), undefined);
});

test('a once alarm whose check says no ends, and shows that it was skipped', async (t) => {
  const { site, setAlarm, client, daemons, starts } = await open(t);
  const id = await setAlarm({ check: { http: { url: site.url, status: 404 } } });
  const fire = await daemons.fire(id, 'it is skipped', ({ outcome }) => outcome === 'skipped');
  assert.match(fire.error!, /status 200, not 404/);
  const view = await client().getAlarm(id);
  assert.equal(view.status, 'fired');
  assert.equal(view.fire_count, 0);
  assert.match(view.last_error!, /^skipped by its check/);
  assert.equal(starts(), 0);
});

test('a command of a person runs, that of the agent is refused with the remedy, and an edit keeps to that', {
  skip: needs('bubblewrap'),
}, async (t) => {
  const { client, setAlarm, daemons, work } = await open(t);
  const check = { command: { argv: ['sh', '-c', 'echo "last: $REVEILLE_LAST_VALUE"; echo 7'] } };
  await assert.rejects(setAlarm({ check }), /check: the agent of alice may not set a command as a check/);
  await assert.rejects(
    client(byAda).createAlarm({
      kind: 'once',
      wake_message: 'x',
      delay_seconds: 9,
      check: { command: { argv: ['nope'] } },
    }),
    /check: there is no program "nope".*install it/,
  );
  await assert.rejects(
    setAlarm({ check: { http: { url: 'http://10.0.0.1/' } } }),
    /check: 10\.0\.0\.1 is .*not reached/,
  );
  await assert.rejects(setAlarm({ check: { path: { path: '/etc/shadow' } } }), /check: the path is not in a folder/);
  const { id } = await client(byAda).createAlarm({ ...EVERY_SECOND, check });
  const told = () =>
    eventsOf(work, 'chat').map(({ body }) => JSON.parse(Buffer.from(body!, 'base64').toString()).check);
  await eventually('two wakes', () => told().length >= 2);
  assert.equal(told()[0].output, 'last: \n7');
  assert.equal(told()[1].output, 'last: 7\n7');
  // The agent may edit the text, and the check stays the person's; a command of its own is refused.
  await client().patchAlarm(id, { label: 'mine' });
  await assert.rejects(client().patchAlarm(id, { check }), /may not set a command/);
  const before = told().length;
  await eventually('it still runs', () => told().length > before && told().at(-1).output === 'last: 7\n7');
  await client().patchAlarm(id, { check: null });
  await daemons.fire(id, 'a plain wake', ({ outcome }) => outcome === 'delivered');
  await eventually('without a check', () => told().at(-1) === undefined);
});

test('a file that appears wakes the agent once', async (t) => {
  const { setAlarm, daemons, outcomes, work } = await open(t);
  mkdirSync(join(work, 'inbox'));
  const id = await setAlarm({ ...EVERY_SECOND, delay_seconds: undefined, check: { path: { path: 'inbox' } } });
  await daemons.fire(id, 'a skip after the first wake', ({ outcome }) => outcome === 'skipped');
  writeFileSync(join(work, 'inbox', 'letter'), 'hello');
  await eventually('woken', async () => (await outcomes(id)).filter((one) => one === 'delivered').length === 2);
  const chat = JSON.parse(Buffer.from(eventsOf(work, 'chat').at(-1)!.body!, 'base64').toString());
  assert.equal(chat.check.output, '"letter"');
});
