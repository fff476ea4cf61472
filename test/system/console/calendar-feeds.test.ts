/** The console of a fleet adds calendar feeds, which the router passes on to chronosd. */
import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import { sharedOwner } from '../../support/temporary.ts';
import { type Fleet, type Person, startFleet } from './fleet-bench.ts';

const owner = sharedOwner();
let fleet: Fleet;
let ada: Person;
let bob: Person;

describe('calendar feeds at the console', () => {
  before(async () => {
    fleet = await startFleet(owner);
    [ada, bob] = [await fleet.person('ada'), await fleet.person('bob')];
    await ada.agent.createAlarm({ kind: 'cron', cron_expr: '@daily', label: 'Water the plants', wake_message: 'x' });
  });
  after(() => owner.end());

  test('a feed is added, shown once, read with its address, and revoked', async () => {
    const own = await fleet.enter(ada.token);
    assert.match((await own.get('upcoming')).text, /href="upcoming\/calendar"/);
    assert.match((await own.get('upcoming/calendar')).text, /No calendar feeds/);
    const made = await own.post('upcoming/calendar', { name: 'my <phone>' });
    assert.equal(made.status, 200);
    const [address = ''] = /https:\/\/[^<\s"]+\.ics/.exec(made.text) ?? [];
    assert.ok(address.startsWith(`${fleet.origin}/calendar/`), address);
    const path = address.slice(fleet.origin.length);
    const page = await own.get('upcoming/calendar');
    assert.match(page.text, /my &lt;phone&gt;/);
    assert.ok(!page.text.includes(path.slice(10)), 'the address is not shown again');
    const calendar = await fleet.send(path);
    assert.deepEqual([calendar.status, calendar.headers['content-type']], [200, 'text/calendar; charset=utf-8']);
    assert.match(calendar.text, /\r\nSUMMARY:Water the plants\r\n/);

    const [, id = ''] = /\/calendar\/([0-9a-f]{12})/.exec(path) ?? [];
    const other = await fleet.enter(bob.token);
    assert.equal((await other.post('upcoming/calendar/revoke', { id })).status, 404);
    assert.match((await other.get('upcoming/calendar')).text, /No calendar feeds/);
    assert.equal((await fleet.send(path)).status, 200);
    await own.post('upcoming/calendar/revoke', { id });
    assert.match((await own.get('upcoming/calendar')).text, /Revoked: “my &lt;phone&gt;”/);
    assert.equal((await fleet.send(path)).status, 404);
  });
});
