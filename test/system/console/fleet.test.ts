/**
 * The shared console over TLS: two users who see only their own data; sign-in, the end of sessions, and refused requests.
 * The counts report the number of attempts.
 */
import assert from 'node:assert/strict';
import { randomBytes } from 'node:crypto';
import { mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { after, before, describe, test } from 'node:test';
import { SCREEN_ROUTES } from '../../../src/console/screens/routes.ts';
import { calendarTime } from '../../../src/kit/clock/local-time.ts';
import { rightsOf } from '../../../src/kit/identity/person-rights.ts';
import { testPasskey } from '../../../src/kit/identity/testing/passkey.ts';
import { type PasskeyRequest, passkeyEnrollmentText } from '../../../src/wire/passkey.ts';
import { APPROVER, asOperator, enrolled } from '../../support/cluster/approval.ts';
import { eventually } from '../../support/eventually.ts';
import { sharedOwner } from '../../support/temporary.ts';
import { callerOf, transfer } from '../executor/executor-bench.ts';
import { type Fleet, type Got, type Person, startFleet, visitOf } from './fleet-bench.ts';

const TRIES = process.env.REVEILLE_ROUNDS === 'all' ? 10_000 : 200;

describe('the console of a fleet', () => {
  const owner = sharedOwner();
  let fleet: Fleet;
  let ada: Person;
  let bob: Person;
  let own: Awaited<ReturnType<Fleet['enter']>>;
  let other: Awaited<ReturnType<Fleet['enter']>>;
  /** Data of ada that only ada may see. */
  const adas = { alarm: '', intent: '', conversation: 'of-ada' };
  const SECRET = /violet harbour/;

  before(async () => {
    fleet = await startFleet(owner);
    ada = await fleet.person('ada');
    bob = await fleet.person('bob');
    adas.alarm = (
      await ada.agent.createAlarm({
        ...{
          kind: 'once',
          wake_message: 'look after the violet harbour',
          label: 'violet harbour',
          delay_seconds: 9000,
        },
      })
    ).id;
    await bob.agent.createAlarm({ kind: 'once', wake_message: 'bring the bread', delay_seconds: 9000 });
    const asks = callerOf(fleet.executor, 'ada');
    adas.intent = await asks.submit({ intent: transfer(), conversation_id: 'violet harbour'.replace(' ', '-') });
    await asks.waiting(adas.intent);
    own = await fleet.enter(ada.token);
    other = await fleet.enter(bob.token);
  });
  after(() => owner.end());

  test('a token signs in over TLS and becomes a cookie for this host alone', async () => {
    assert.equal(own.status, 200);
    assert.match(
      own.cookie!,
      /^__Host-reveille=[A-Za-z0-9_-]{43}; Path=\/; Max-Age=\d+; HttpOnly; SameSite=Strict; Secure$/,
    );
    const page = await own.get('upcoming');
    assert.equal(page.status, 200);
    assert.match(page.text, /violet harbour/);
    assert.match(page.text, /Berlin/, 'in the zone of the user');
    assert.match(String(page.headers['content-security-policy']), /default-src 'none'/);
    assert.equal((await fleet.send('/sign-in', { method: 'GET' })).status, 404);
    const wrong = await fleet.enter(`${ada.token.slice(0, -1)}x`);
    assert.deepEqual([wrong.status, wrong.cookie], [401, undefined]);
  });

  test('every screen shows the data of the user: alarms, tasks, the machine and the chat', async () => {
    assert.match((await own.get('alarms')).text, /violet harbour/);
    assert.match((await own.get(`alarms/${adas.alarm}`)).text, /look after the violet harbour/);
    assert.match((await own.get('machine')).text, /asleep/, 'reading does not start the machine');
    const asked = (await own.get('approvals')).text;
    assert.match(asked, /Pay 12\.50 EUR: alice → bob/);
    assert.match(asked, /To answer on this page, add a passkey/);
    assert.doesNotMatch(asked, /data-answer/);
    assert.match((await own.get('day')).text, /reveille time/);
    const status = (await own.get('status')).text;
    assert.match(status, /Everything works/);
    assert.doesNotMatch(status, new RegExp(fleet.folder), 'no paths of the operator');

    const set = await own.post('alarms/new', {
      do: 'set',
      message: 'ask about the violet harbour',
      when: 'in 2 hours',
    });
    assert.equal(set.status, 303, set.text);
    const { alarms } = await ada.agent.listAlarms({ limit: 1 });
    assert.deepEqual(alarms[0]!.set_by, { kind: 'person', name: 'ada' }, 'the user set it, not the agent');

    const sent = await own.post(`chat/${adas.conversation}`, { message: 'is the violet harbour quiet?' });
    assert.equal(sent.status, 303, sent.text);
    await eventually('the turn is done', async () =>
      /violet harbour/.test((await own.get(`chat/${adas.conversation}`)).text),
    );
    assert.match((await own.get('machine')).text, /running/);
    assert.equal((await fleet.machines.show('bob')).running, 'asleep', 'the other machine was not started');
  });

  test('calendars of chronosd apply in the form, on the page of an alarm and in Upcoming', async () => {
    const day = (after: number) => new Date(Date.now() + after * 86_400_000).toISOString().slice(0, 10);
    const event = ['BEGIN:VEVENT', `DTSTART;VALUE=DATE:${day(-1)}`.replaceAll('-', ''), 'DURATION:P5D', 'END:VEVENT'];
    const folder = join(fleet.folder, 'chronos', 'calendars');
    mkdirSync(folder, { recursive: true });
    writeFileSync(join(folder, 'office.ics'), ['BEGIN:VCALENDAR', ...event, 'END:VCALENDAR', ''].join('\r\n'));
    const given = {
      message: 'water the plants',
      when: '0 12 * * *',
      zone: 'UTC',
      catch_up: 'latest',
      overlap: 'allow',
    };
    const [skipped, first, second] = [day(3), day(4), day(5)].map((date) => `${date}T12:00:00.000Z`);
    const read = await own.post('alarms/new', { ...given, do: 'read', holidays: 'office' });
    const local = (at = '') => calendarTime(Date.parse(at), { now: Date.now(), zone: 'UTC' });
    assert.match(read.text, new RegExp(`Fires <strong>${local(first)}</strong>[^]*<strong>${local(second)}<`));
    const refused = await own.post('alarms/new', { ...given, do: 'set', holidays: 'nowhere' });
    assert.equal(refused.status, 400);
    assert.match(refused.text, /Holidays must name an installed calendar .*; installed are office/);
    const set = await own.post('alarms/new', { ...given, do: 'set', holidays: 'office' });
    assert.equal(set.status, 303, set.text);
    const id = /[0-9a-f-]{36}/.exec(String(set.headers.location))![0];
    const shown = (await own.get('upcoming')).text;
    const fires = [...shown.matchAll(new RegExp(`-${id}".*?datetime="([^"]+)"`, 'gs'))].map(([, at]) => at);
    assert.deepEqual([fires.slice(0, 2), fires.includes(skipped)], [[first, second], false]);
    await ada.agent.cancelAlarm(id);
  });

  test('without a key on the server, a passkey is created, enrolled elsewhere, and then answers', async () => {
    // A passkey needs a host name, so the test does not use 127.0.0.1.
    const origin = fleet.origin.replace('127.0.0.1', 'localhost');
    const headers = { cookie: own.sent, host: new URL(origin).host };
    const csrf = /data-csrf="([^"]+)"/.exec((await own.get('status')).text)![1]!;
    const post = (path: string, fields: Record<string, string>) =>
      fleet.send(`${own.base}${path}`, {
        method: 'POST',
        headers: { ...headers, origin, 'content-type': 'application/x-www-form-urlencoded' },
        body: new URLSearchParams({ csrf, ...fields }).toString(),
      });
    const requested = async (path: string, fields: Record<string, string>) =>
      JSON.parse((await post(path, fields)).text);
    const base64url = (hex: string) => Buffer.from(hex, 'hex').toString('base64url');
    const authenticator = testPasskey({ origin });
    const { credential_id, public_key } = authenticator.passkey;

    assert.match(
      (await own.get('approvals/passkeys')).text,
      /127\.0\.0\.1 is an address\. Open the console by its name/,
    );
    const { create } = await requested('approvals/passkeys/make', { name: 'a phone' });
    assert.equal(create.rp_id, 'localhost');
    const made = authenticator.registration(base64url(create.challenge));
    const page = await post('approvals/passkeys', { name: 'a phone', credential_id, public_key, ...made });
    assert.match(page.text, /it cannot answer yet/);
    const shownText = /aria-label="The request">([^<]+)</.exec(page.text)![1]!.replaceAll('&quot;', '"');
    const { request } = JSON.parse(shownText) as { request: PasskeyRequest };
    assert.deepEqual(request.passkey, authenticator.passkey);
    const { url } = fleet.executor;
    await enrolled(url, 'ada');
    assert.equal(
      (await asOperator(url, 'POST', '/approvers', request)).status,
      403,
      'no approver has signed the enrolment',
    );
    const signature = APPROVER.key.sign(passkeyEnrollmentText(request));
    const vouched = { ...request, voucher: { approver: APPROVER.approver, signature } };
    assert.equal((await asOperator(url, 'POST', '/approvers', vouched)).status, 200);

    const id = adas.intent;
    const asked = (await fleet.send(`${own.base}approvals/${id}`, { headers })).text;
    assert.match(asked, /Signed with your passkey: a phone/);
    assert.doesNotMatch(asked, /Sign with the key of this computer/);
    const field = (name: string) => new RegExp(`name="${name}" value="([^"]+)"`).exec(asked)![1]!;
    const names = ['intent_id', 'node_id', 'call_sha256', 'displayed_sha256'];
    const question = { ...Object.fromEntries(names.map((name) => [name, field(name)])), do: 'deny' };
    const { get, fields } = await requested('approvals/passkey', question);
    assert.deepEqual(get.ids, [credential_id]);
    const signed = authenticator.assertion('', { challenge: base64url(get.challenge) });
    const answer = { ...question, ...fields, credential_id, ...signed };
    assert.equal((await post('approvals/answer', { ...answer, do: 'approve' })).status, 303);
    const states = callerOf(fleet.executor, 'ada');
    assert.equal((await states.state(id)).status, 'awaiting_approval', 'a denial does not approve');
    assert.equal((await post('approvals/answer', answer)).status, 303);
    await states.until(id, 'denied');
    adas.intent = await states.submit({ intent: transfer(), conversation_id: 'violet-harbour' });
    await states.waiting(adas.intent);
  });

  test('every route as the other user and without a session: 0 leaks', async (t) => {
    const ids: Record<string, string> = { alarms: adas.alarm, approvals: adas.intent, chat: adas.conversation };
    const paths = SCREEN_ROUTES.map(({ method, path }) => ({
      method,
      path: path.replace(':id', ids[path.split('/')[0]!] ?? 'x'),
    })).concat({ method: 'GET', path: '' }, { method: 'GET', path: 'live' }, { method: 'POST', path: 'sign-out' });
    const csrfOf = async (client: typeof own) => /data-csrf="([^"]+)"/.exec((await client.get('status')).text)![1]!;
    const bobs = await csrfOf(other);
    let tried = 0;
    const leaks: string[] = [];
    const record = (what: string, got: Got, mayBeThere: boolean) => {
      tried++;
      if (SECRET.test(got.text) || (!mayBeThere && got.status < 400)) leaks.push(`${what}: ${got.status}`);
    };
    const before = JSON.stringify((await ada.agent.listAlarms({})).alarms.map(({ id, status }) => [id, status]));
    for (const { method, path } of paths) {
      const write = {
        method: 'POST',
        headers: { origin: fleet.origin, 'content-type': 'application/x-www-form-urlencoded' },
        body: new URLSearchParams({
          csrf: bobs,
          do: 'cancel',
          id: adas.alarm,
          message: 'x',
          when: 'in 1 hour',
        }).toString(),
      };
      const ask = (base: string, cookie: string) => {
        return fleet.send(
          base + path,
          method === 'POST' ? { ...write, headers: { ...write.headers, cookie } } : { headers: { cookie } },
        );
      };
      // Ada's pages with the cookie of bob, without a cookie and with a forged one; then pages of bob with ids of ada.
      record(`bob at ada's ${path}`, await ask(own.base, other.sent), false);
      record(`no session at ada's ${path}`, await ask(own.base, ''), false);
      record(
        `forged cookie at ada's ${path}`,
        await ask(own.base, `__Host-reveille=${randomBytes(32).toString('base64url')}`),
        false,
      );
      if (path === 'live' || path === 'sign-out' || /^machine\/(suspend|wake)$|^alarms\/new$|^chat/.test(path))
        continue;
      record(`bob at his own ${path}`, await ask(other.base, other.sent), true);
    }
    t.diagnostic(`${tried} tried, ${leaks.length} leaks`);
    assert.deepEqual(leaks, []);
    const now = (await ada.agent.listAlarms({})).alarms.map(({ id, status }) => [id, status]);
    assert.equal(JSON.stringify(now), before, 'the alarms of ada did not change');
    assert.equal((await fleet.machines.show('ada')).state, 'active');
  });

  test('foreign hosts and origins, forged forms, cookies and codes: 0 accepted', async (t) => {
    let tried = 0;
    const accepted: string[] = [];
    const record = (what: string, got: Got) => {
      tried++;
      if (got.status < 400 || got.cookie !== undefined) accepted.push(`${what}: ${got.status}`);
    };
    const page = `${own.base}alarms`;
    for (const host of ['evil.example', 'localhost.evil.example', '127.0.0.1.evil.example', '0.0.0.0', 'a@127.0.0.1'])
      record(`host ${host}`, await fleet.send(page, { headers: { cookie: own.sent, host } }));
    const form = 'application/x-www-form-urlencoded';
    const csrf = /data-csrf="([^"]+)"/.exec((await own.get('status')).text)![1]!;
    const http = fleet.origin.replace('https:', 'http:');
    for (const origin of ['null', 'https://evil.example', http, `${fleet.origin}.evil.example`, ''])
      for (const path of [`${own.base}alarms/new`, '/sign-in'])
        record(
          `origin ${origin} at ${path}`,
          await fleet.send(path, {
            method: 'POST',
            headers: { cookie: own.sent, 'content-type': form, ...(origin !== '' && { origin }) },
            body: `csrf=${csrf}&do=set&message=x&when=in+1+hour&token=${ada.token}`,
          }),
        );
    const others = /data-csrf="([^"]+)"/.exec((await other.get('status')).text)![1]!;
    for (const one of ['', others, csrf.toUpperCase(), randomBytes(32).toString('hex')])
      record(
        'csrf',
        await fleet.send(`${own.base}alarms/new`, {
          method: 'POST',
          headers: { cookie: own.sent, 'content-type': form, origin: fleet.origin },
          body: `csrf=${one}&do=set&message=x&when=in+1+hour`,
        }),
      );
    const token = own.sent.split('=')[1]!;
    const cookies = [`reveille=${token}`, `__Secure-reveille=${token}`, `__Host-reveille=${token}x`, `x=${token}`];
    for (const cookie of cookies) record('cookie', await fleet.send(page, { headers: { cookie } }));
    for (let n = 0; n < TRIES / 2; n++) {
      const cookie = `__Host-reveille=${randomBytes(32).toString('base64url')}`;
      record('forged cookie', await fleet.send(page, { headers: { cookie } }));
      record('forged code', await fleet.send(`/open?code=${randomBytes(32).toString('base64url')}`));
    }
    const bearer = { authorization: `Bearer ${ada.token}`, 'content-type': 'application/json' };
    const asked = await fleet.send('/console/codes', {
      method: 'POST',
      headers: bearer,
      body: '{"zone":"Asia/Tokyo"}',
    });
    assert.equal(asked.status, 200, asked.text);
    const { code } = JSON.parse(asked.text).data as { code: string };
    record(
      'opened by another site',
      await fleet.send(`/open?code=${code}`, {
        headers: { 'sec-fetch-site': 'cross-site', 'sec-fetch-mode': 'navigate', 'sec-fetch-dest': 'document' },
      }),
    );
    // Of many simultaneous requests, one consumes the code.
    const all = await Promise.all(Array.from({ length: 8 }, () => fleet.send(`/open?code=${code}`)));
    const opened = all.filter(({ status }) => status === 200);
    assert.equal(opened.length, 1);
    assert.match((await visitOf(opened[0]!, fleet).get('upcoming')).text, /Tokyo/);
    record('used code', await fleet.send(`/open?code=${code}`));
    for (const headers of [{}, { authorization: 'Bearer x' }, { authorization: `Bearer ${own.sent}` }])
      record('code without a token', await fleet.send('/console/codes', { method: 'POST', headers, body: '{}' }));
    t.diagnostic(`${tried} tried, ${accepted.length} accepted`);
    assert.deepEqual(accepted, []);
  });

  test('reveille open gets a code for the token, and no address contains the token', async () => {
    const { stdout, stderr, status } = await fleet.command(['open', '--print', '--url', fleet.origin], {
      REVEILLE_TOKEN: ada.token,
    });
    assert.equal(status, 0, stderr);
    const address = new URL(stdout.trim());
    assert.ok(!stdout.includes(ada.token) && !stdout.includes(rightsOf(ada.token)));
    const got = await fleet.send(address.pathname + address.search);
    assert.equal(got.status, 200);
    assert.match((await visitOf(got, fleet).get('alarms')).text, /violet harbour/);
  });

  test('the files of the router contain no token, rights, cookie or code', async () => {
    await own.get('alarms');
    const kept = readdirSync(join(fleet.folder, 'router'))
      .filter((name) => name.startsWith('router.db'))
      .map((name) => readFileSync(join(fleet.folder, 'router', name), 'latin1'))
      .join('');
    assert.match(kept, /console_sessions/);
    for (const secret of [ada.token, rightsOf(ada.token), own.sent.split('=')[1]!]) assert.ok(!kept.includes(secret));
  });

  test('sessions survive a restart of the router; events arrive; a revoked token ends pages and streams at once', async () => {
    await fleet.restart();
    assert.match((await own.get('alarms')).text, /violet harbour/);
    const made = JSON.parse(await fleet.run('user', 'token', 'ada', '--name', 'phone', '--json'));
    const phone = await fleet.enter(made.token);
    const stream = fleet.follow(`${phone.base}live`, phone.sent);
    await eventually('the stream is open', () => stream.text.includes('event: hello'));
    let set = 0;
    await eventually('the hint arrives', async () => {
      // Alarms from before the first poll are on the page that opened the stream.
      await ada.agent.createAlarm({ kind: 'once', wake_message: `shown at once ${set++}`, delay_seconds: 7000 });
      return /event: hint\ndata: alarms/.test(stream.text);
    });
    const code = await fleet.command(['open', '--print', '--url', fleet.origin], { REVEILLE_TOKEN: made.token });
    await fleet.run('user', 'revoke', 'ada', '--token', made.id);
    assert.equal((await phone.get('alarms')).status, 401, 'with the next request');
    const late = new URL(code.stdout.trim());
    assert.equal((await fleet.send(late.pathname + late.search)).status, 401, 'an unused code is refused as well');
    const at = Date.now();
    await eventually('the stream ends', () => stream.ended);
    assert.ok(Date.now() - at < 4000);
    assert.equal((await own.get('alarms')).status, 200, 'another token of the same user is valid');
    const agents = JSON.parse(`[${(await fleet.run('agent', 'list', '--json')).trim().split('\n').join(',')}]`).flat();
    const keys = (agents[0]?.agents ?? agents) as { label: string; revoked_at?: string }[];
    assert.equal(keys.filter(({ label, revoked_at }) => label === 'ada' && revoked_at !== undefined).length, 1);
    await fleet.run('user', 'revoke', 'ada');
    assert.equal((await own.get('alarms')).status, 401);
  });

  test('the doctor reports the public listener', async () => {
    const { port } = new URL(fleet.origin);
    const at = { ROUTER_PUBLIC_PORT: port, ROUTER_PUBLIC_TLS_CERT: fleet.certificate };
    const listener = async (more: Record<string, string>) => {
      const { stdout } = await fleet.command(['doctor', '--json'], { ...at, ...more });
      const { checks } = JSON.parse(stdout) as { checks: { name: string; status: string; detail: string }[] };
      return checks.find(({ name }) => name === 'public listener')!;
    };
    const { status, detail } = await listener({});
    assert.deepEqual([status, detail], ['ok', `users connect at ${fleet.origin}, with TLS, with the console`]);
    assert.equal((await listener({ ROUTER_PUBLIC_PORT: '1' })).status, 'broken');
  });

  test('a user suspends and restores the machine, but cannot restore it after the operator suspended it', async () => {
    assert.equal((await other.post('machine/suspend', {})).status, 303);
    assert.equal((await fleet.machines.show('bob')).state, 'suspended');
    assert.match((await other.get('machine')).text, /by you/);
    assert.equal((await other.post('machine/restore', {})).status, 303);
    assert.equal((await fleet.machines.show('bob')).state, 'active');
    await fleet.machines.suspend('bob');
    const refused = await other.post('machine/restore', {});
    assert.equal(refused.status, 403);
    assert.match(refused.text, /suspended by the operator of this router/);
    await fleet.machines.restore('bob');
  });
});
