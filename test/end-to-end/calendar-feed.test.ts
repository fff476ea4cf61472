/** A calendar app reads a user's feed at the public listener, with the secret address alone. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import ICAL from 'ical.js';
import { createChronosClient } from '../../src/chronos/client.ts';
import { agentIdentity } from '../../src/kit/identity/agent.ts';
import { generateKey } from '../../src/kit/identity/keys.ts';
import { personProof } from '../../src/kit/identity/person-rights.ts';
import { withCode } from '../contract/store/fixtures.ts';
import { openChronosdWithRouter } from './chronosd-with-router.ts';

const ADMIN = 'the-operators-token-of-the-tests';
const prover = (request: { method: string; path: string; body: string }) =>
  personProof('Alice', request, { secret: ADMIN, now: Date.now() });

test('a feed shows the coming fires until it is revoked, and only those of its user', async (t) => {
  const house = await openChronosdWithRouter(t, process.env, { CHRONOS_ADMIN_TOKEN: ADMIN });
  const alice = house.client(prover);
  await alice.createAlarm({
    ...{ kind: 'cron', cron_expr: '30 7 * * 1-5', timezone: 'Europe/Berlin', label: 'Stand-up' },
    wake_message: 'the violet harbour',
  });
  const paused = await alice.createAlarm({ kind: 'cron', cron_expr: '@daily', label: 'Paused', wake_message: 'x' });
  await alice.pauseAlarm(paused.id);
  const identity = agentIdentity('bob', generateKey());
  const bob = createChronosClient({
    url: house.chronosUrl,
    token: 'transport-token-of-the-tests',
    identity,
    person: prover,
  });
  await bob.createAlarm({ kind: 'cron', cron_expr: '@daily', label: 'Of bob', wake_message: 'x' });

  const made = await alice.createFeed({ name: 'phone' });
  assert.match(made.address, /^\/calendar\/[0-9a-f]{12}\.[\w-]+\.[\w-]{43}\.ics$/);
  const read = (address = made.address, headers: Record<string, string> = {}) =>
    fetch(house.publicUrl + address, { headers, redirect: 'manual' });
  const answer = await read();
  const text = await answer.text();
  assert.equal(answer.status, 200, text);
  assert.equal(answer.headers.get('content-type'), 'text/calendar; charset=utf-8');
  assert.equal(answer.headers.get('cache-control'), 'private, max-age=300');
  const summaries = (calendar: string) =>
    new ICAL.Component(ICAL.parse(calendar))
      .getAllSubcomponents('vevent')
      .map((event) => event.getFirstPropertyValue('summary'));
  assert.deepEqual(summaries(text), ['Stand-up']);
  assert.doesNotMatch(text, /violet|Paused|bob/);
  assert.match(text, /\r\nDTSTART;TZID=Europe\/Berlin:\d{8}T073000\r\nRRULE:FREQ=WEEKLY;BYDAY=MO,TU,WE,TH,FR\r\n/);

  const etag = answer.headers.get('etag')!;
  const same = await read(made.address, { 'if-none-match': `W/"other", ${etag}` });
  assert.deepEqual([same.status, await same.text(), same.headers.get('etag')], [304, '', etag]);
  const { alarms } = await alice.listAlarms({ status: 'active' });
  await alice.patchAlarm(alarms[0]!.id, { label: 'Stand-up, later' });
  const changed = await read(made.address, { 'if-none-match': etag });
  assert.equal(changed.status, 200);
  assert.deepEqual(summaries(await changed.text()), ['Stand-up, later']);
  assert.equal((await fetch(house.publicUrl + made.address, { method: 'HEAD' })).status, 200);

  const whole = await alice.createFeed({ messages: true });
  assert.match(await (await read(whole.address)).text(), /DESCRIPTION:the violet harbour/);
  assert.deepEqual(
    (await alice.listFeeds()).map(({ name, messages }) => [name, messages]),
    [
      ['phone', false],
      ['calendar', true],
    ],
  );
  assert.doesNotMatch(JSON.stringify(await alice.listFeeds()), new RegExp(made.address.slice(-47, -4)));

  assert.deepEqual(await bob.listFeeds(), []);
  await assert.rejects(bob.removeFeed(made.id), withCode('not_found'));
  assert.equal((await alice.removeFeed(made.id)).name, 'phone');
  const gone = await read();
  assert.equal(gone.status, 404);
  assert.equal((await read(whole.address)).status, 200);
});

test('an address that is not exactly a feed of its user answers 404, whatever is wrong with it', async (t) => {
  const house = await openChronosdWithRouter(t, process.env, { CHRONOS_ADMIN_TOKEN: ADMIN });
  const alice = house.client(prover);
  await alice.createAlarm({ kind: 'cron', cron_expr: '@daily', label: 'secret label', wake_message: 'x' });
  const { address } = await alice.createFeed({});
  const [, id = '', owner = '', secret = ''] = /^\/calendar\/([^.]+)\.([^.]+)\.([^.]+)\.ics$/.exec(address)!;
  const other = Buffer.from('bob').toString('base64url');
  const flipped = `${secret.startsWith('A') ? 'B' : 'A'}${secret.slice(1)}`;
  const wrong = [
    ...[`${id}.${owner}.${flipped}.ics`, `${id}.${owner}.${secret.slice(0, -1)}.ics`, `${id}.${owner}..ics`],
    ...[`${id}.${other}.${secret}.ics`, `000000000000.${owner}.${secret}.ics`, `${id}.${owner}.${secret}`],
    ...[`${id}.${owner}.${secret}.ics.ics`, `${secret}.ics`, 'x.ics', `${id}.${'A'.repeat(200)}.${secret}.ics`],
    ...[`${id}.${owner}.${secret.toLowerCase()}.ics`, `${id.toUpperCase()}.${owner}.${secret}.ICS`],
  ];
  const answers = new Set<string>();
  for (const base of [house.publicUrl, house.chronosUrl])
    for (const path of wrong) {
      const answer = await fetch(`${base}/calendar/${path}`);
      const text = await answer.text();
      assert.equal(answer.status, 404, path);
      assert.doesNotMatch(text, /secret label|VCALENDAR/);
      answers.add(text);
    }
  assert.equal(answers.size, 1, 'one answer for all');
  for (const path of ['/calendar/', '/calendar/..%2fv1%2falarms', `/calendar/x/${id}`]) {
    const { status } = await fetch(house.publicUrl + path);
    assert.ok(status === 400 || status === 404, `${path}: ${status}`);
  }
  assert.equal((await fetch(house.publicUrl + address, { method: 'POST' })).status, 404);
  assert.equal((await fetch(`${house.publicUrl}${address}?a=1`)).status, 200);
});

test('only a person adds a feed, at most ten, and a feed is not read without limit', async (t) => {
  const house = await openChronosdWithRouter(t, process.env, { CHRONOS_ADMIN_TOKEN: ADMIN });
  await assert.rejects(house.client().createFeed({}), withCode('forbidden'));
  const alice = house.client(prover);
  await assert.rejects(alice.createFeed({ name: 'x'.repeat(101) }), withCode('invalid_request'));
  const made = await alice.createFeed({});
  for (let n = 1; n < 10; n++) await alice.createFeed({});
  await assert.rejects(alice.createFeed({}), withCode('conflict'));
  const statuses = new Map<number, number>();
  for (let n = 0; n < 40; n++) {
    const { status, headers } = await fetch(house.publicUrl + made.address);
    statuses.set(status, (statuses.get(status) ?? 0) + 1);
    if (status === 429) assert.match(headers.get('retry-after') ?? '', /^\d+$/);
  }
  assert.ok((statuses.get(429) ?? 0) >= 5 && (statuses.get(200) ?? 0) >= 30, JSON.stringify([...statuses]));
  await house.closeChronos();
  assert.equal((await fetch(house.publicUrl + made.address)).status, 503);
});
