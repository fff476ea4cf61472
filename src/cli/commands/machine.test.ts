import assert from 'node:assert/strict';
import { once } from 'node:events';
import { createServer } from 'node:net';
import { after, before, describe, test } from 'node:test';
import { type Installation, startAgent, startInstallation } from '../../../test/support/installation.ts';
import { sharedOwner } from '../../../test/support/temporary.ts';

describe('reveille machine', () => {
  let house: Installation;
  const shared = sharedOwner();
  before(async () => {
    house = await startInstallation(shared);
  });
  after(() => shared.end());

  test('put registers the local machine and shows the minted token once', async (t) => {
    const agent = await startAgent(t);
    const said = await house.run('machine', 'put', '--provider', 'http', '--url', agent.url);
    assert.match(said, new RegExp(`^Machine of ${house.label}\n`));
    assert.match(said, /it is not shown again:\n {2}[\w-]{40,}\n$/);
    const again = await house.run('machine', 'put', '--provider', 'http', '--url', agent.url);
    assert.doesNotMatch(again, /not shown again/);
    const shown = JSON.parse(await house.run('machine', 'show', '--json'));
    assert.equal(shown.user_id, house.label);
    assert.equal(shown.state, 'active');
    assert.ok(!('token' in shown));
  });

  test('put takes everything after -- as the command, with an optional user before it', async () => {
    const words = ['machine', 'put', 'alice', '--provider', 'process', '--env', 'A=1', '--json'];
    const made = JSON.parse(await house.run(...words, '--', 'node', 'agent.js', '--json', '--help', '--'));
    assert.equal(made.user_id, 'alice');
    assert.deepEqual(made.spec.command, ['node', 'agent.js', '--json', '--help', '--']);
    assert.equal(made.spec.cwd, process.cwd());
    const own = JSON.parse(await house.run('machine', 'put', '--provider', 'process', '--json', '--', 'node', 'x.js'));
    assert.equal(own.user_id, house.label);
  });

  test('list shows every machine: a line each for people, a JSON line each for programs', async () => {
    await house.run('machine', 'put', 'bob', '--provider', 'http', '--url', 'http://127.0.0.1:1/base');
    const text = await house.run('machine', 'list');
    assert.match(text, /^USER +STATE +WHERE\n/);
    assert.match(text, /\nbob +active +http:\/\/127\.0\.0\.1:1\/base\n/);
    const lines = (await house.run('machine', 'list', '--json')).trimEnd().split('\n');
    assert.ok(lines.map((line) => JSON.parse(line).user_id).includes('bob'));
  });

  test('suspend, restore and delete print the new state of the machine', async () => {
    await house.run('machine', 'put', 'carol', '--provider', 'http', '--url', 'http://127.0.0.1:1');
    assert.equal(await house.run('machine', 'suspend', 'carol'), 'Suspended the machine of carol; it is suspended\n');
    assert.equal(await house.run('machine', 'restore', 'carol'), 'Restored the machine of carol; it is active\n');
    assert.equal(await house.run('machine', 'delete', 'carol'), 'Deleted the machine of carol; it is deleted\n');
    assert.doesNotMatch(await house.run('machine', 'list'), /carol/);
    const { status, stderr } = await house.attempt(['machine', 'restore', 'carol']);
    assert.equal(status, 1);
    assert.match(stderr, /^error: the machine of carol is deleted/);
  });

  test('budget is set, shown and removed as text, and the history names the actor of each change', async () => {
    await house.run(
      'machine',
      'put',
      'dora',
      '--provider',
      'http',
      '--url',
      'http://127.0.0.1:1',
      '--max-per-day',
      '50',
    );
    assert.match(await house.run('machine', 'show', 'dora'), /budget +at most 50 wakes a day\n/);
    await house.run('machine', 'put', 'dora', '--provider', 'http', '--url', 'http://127.0.0.1:2');
    assert.match(await house.run('machine', 'show', 'dora'), /budget +at most 50 wakes a day\n/);
    await house.run('machine', 'delete', 'dora');
    await house.run('machine', 'put', 'dora', '--provider', 'http', '--url', 'http://127.0.0.1:1');
    assert.match(await house.run('machine', 'show', 'dora'), /budget +at most 50 wakes a day\n/);
    const quiet = ['--quiet', '22:00-07:00', '--zone', 'Europe/Berlin'];
    assert.equal(
      await house.run('machine', 'budget', 'dora', '--max-per-hour', '10', ...quiet),
      'Budget of dora: at most 10 wakes an hour; quiet from 22:00 to 07:00 Europe/Berlin\n',
    );
    assert.equal(await house.run('machine', 'budget', 'dora', '--unlimited'), 'Budget of dora: no limits\n');
    assert.equal(await house.run('machine', 'budget', 'dora', '--default'), 'Budget of dora: no limits\n');
    assert.equal(await house.run('machine', 'budget', 'dora'), 'Budget of dora: no limits\n');
    const wrong = await house.attempt(['machine', 'budget', 'dora', '--default', '--breaker', '5']);
    assert.equal(wrong.status, 2);
    const history = await house.run('machine', 'history', 'dora');
    assert.match(history, /^WHEN +WHO +DID +STATE AFTER +WHAT CHANGED\n/);
    assert.match(history, /an operator +put +active +provider, spec\.url/);
    const lines = (await house.run('machine', 'history', 'dora', '--json', '--limit', '2')).trimEnd().split('\n');
    assert.deepEqual(
      lines.map((line) => JSON.parse(line).action),
      ['budget', 'budget'],
    );
  });

  test('an absent machine fails with 1, an invalid user id with 2', async () => {
    const absent = await house.attempt(['machine', 'show', 'nobody', '--json']);
    assert.equal(absent.status, 1);
    assert.equal(JSON.parse(absent.stderr).error.code, 'not_found');
    const wrong = await house.attempt(['machine', 'show', '../admin']);
    assert.equal(wrong.status, 2);
    assert.match(wrong.stderr, /the user id must be 1 to 64/);
    assert.equal((await house.attempt(['machine', 'put', '--url', 'http://x'])).status, 2);
    assert.equal((await house.attempt(['machine', 'delete'])).status, 2);
  });

  test('rotate-token shows a new token once, and the programs that need it', async () => {
    const put = JSON.parse(
      await house.run('machine', 'put', 'dora', '--provider', 'http', '--url', 'http://127.0.0.1:1', '--json'),
    );
    const said = await house.run('machine', 'rotate-token', 'dora');
    assert.match(said, /^The machine of dora has a new token; it is not shown again:\n {2}[\w-]{40,}\n/);
    assert.match(said, /\nDo this now: the daemon must be given the new token/);
    const again = JSON.parse(await house.run('machine', 'rotate-token', 'dora', '--json'));
    assert.ok(again.token !== put.token && !said.includes(again.token));
    assert.equal((await house.attempt(['machine', 'rotate-token', 'nobody-at-all'])).status, 1);
    assert.equal((await house.attempt(['machine', 'rotate-token'])).status, 2);
  });

  test('a router that does not run, and one that refuses the token, have different errors', async () => {
    const refused = await house.attempt(['machine', 'list'], { env: { ROUTER_ADMIN_TOKEN: 'not-the-token-at-all' } });
    assert.equal(refused.status, 1);
    assert.match(refused.stderr, /the router at .* does not accept this ROUTER_ADMIN_TOKEN/);
    const other = await house.attempt(['machine', 'list'], {
      env: {
        REVEILLE_HOME: `${house.home.path}-none`,
        ROUTER_PORT: String(await freePort()),
        ROUTER_ADMIN_TOKEN: 'x'.repeat(16),
      },
    });
    assert.equal(other.status, 1);
    assert.match(
      other.stderr,
      /cannot reach the router at .* \(ECONNREFUSED\): is it running\? start it with "reveille up"/,
    );
  });
});

async function freePort(): Promise<number> {
  const server = createServer().listen(0, '127.0.0.1');
  await once(server, 'listening');
  const address = server.address();
  server.close();
  await once(server, 'close');
  return typeof address === 'object' && address ? address.port : 0;
}
