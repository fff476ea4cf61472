import assert from 'node:assert/strict';
import { describe, type TestContext, test } from 'node:test';
import { eventually } from '../../support/eventually.ts';
import { type FlyUnderTest, openFlyUnderTest } from './fly-under-test.ts';
import { advancing, rejectionOf, start } from './under-test.ts';

async function open(t: TestContext, ...options: Parameters<typeof openFlyUnderTest>): Promise<FlyUnderTest> {
  const underTest = await openFlyUnderTest(...options);
  t.after(() => underTest.close());
  return underTest;
}

const failureOf = async (underTest: FlyUnderTest) =>
  (await rejectionOf(advancing(underTest, start(underTest)))).message;

describe('the Fly API', () => {
  test('is shown the nonce of a lease that the operator holds, and nobody else is', async (t) => {
    const nonce = 'canary-nonce-5c35f65c9f95';
    const underTest = await open(t, { lease_nonce: nonce });
    underTest.fly.machine.lease = nonce;
    await start(underTest);
    await underTest.provider.stop(underTest.machine);
    assert.equal(underTest.fly.machine.state, 'suspended');
    underTest.fly.next('start', { status: 422, body: { error: `nonce ${nonce} is not valid` } });
    assert.match(await failureOf(underTest), /422: nonce \[redacted\] is not valid$/);
    assert.ok(!underTest.logged().includes(nonce));
  });

  test("has somebody else's lease waited for, and says so", async (t) => {
    const underTest = await open(t);
    underTest.fly.machine.lease = 'of-a-deploy';
    const heard: string[] = [];
    const starting = start(underTest, heard);
    await eventually('it is refused', () =>
      heard.some((words) => /409: .*lease currently held by deploy@fly/.test(words)),
    );
    underTest.fly.machine.lease = undefined;
    await advancing(underTest, starting);
    assert.equal(underTest.fly.machine.starts, 1);
  });

  test('is asked again after a rate limit, when it says or a second later', async (t) => {
    const underTest = await open(t);
    const limited = { status: 429, body: { error: 'rate limit exceeded' }, headers: { 'retry-after': '7' } };
    underTest.fly.next('start', limited);
    const heard: string[] = [];
    const starting = start(underTest, heard);
    await eventually('it is refused', () => heard.some((words) => /429: rate limit exceeded$/.test(words)));
    underTest.clock.advance(6000);
    await new Promise((resolve) => setTimeout(resolve, 30));
    assert.equal(underTest.fly.count('start'), 1);
    await advancing(underTest, starting);
    assert.equal(underTest.fly.count('start'), 2);
  });

  test('gets through for a machine on which somebody else spends the limits', async (t) => {
    const underTest = await open(t);
    for (let n = 0; n < 3; n++) await spend(underTest, 'POST', '/start', 'stopped');
    for (let n = 0; n < 10; n++) await spend(underTest, 'GET', '');
    const before = underTest.fly.limited;
    await advancing(underTest, start(underTest));
    assert.ok(underTest.fly.limited > before);
    assert.equal(underTest.running(), 1);
  });

  test('is never asked more often than it allows, in ten rounds of sleeping and waking', async (t) => {
    const underTest = await open(t);
    for (let round = 0; round < 10; round++) {
      await advancing(underTest, start(underTest));
      await advancing(underTest, underTest.provider.stop(underTest.machine));
      // As long as a machine is idle at the least.
      underTest.clock.advance(1000);
    }
    assert.equal(underTest.fly.limited, 0);
  });

  test('that stumbles is asked again, but not for ever', async (t) => {
    const words = { status: 503, body: 'upstream connect error' };
    for (const how of [words, 'reset', 'garbage'] as const) {
      const underTest = await open(t);
      underTest.fly.next('get', how, 3);
      await advancing(underTest, start(underTest));
      underTest.fly.next('get', how, 4);
      const said = await failureOf(underTest);
      if (how === words) assert.match(said, /^the Fly API cannot do it now: it answered 503: upstream connect error$/);
      else assert.match(said, /^the Fly API (cannot be reached|answered something that is not JSON)/);
    }
  });

  test('that loses the answer to a start finds the machine started once', async (t) => {
    const underTest = await open(t);
    underTest.fly.next('start', 'lost');
    assert.equal((await advancing(underTest, start(underTest))).cold, true);
    assert.deepEqual([underTest.fly.machine.starts, underTest.fly.count('start')], [1, 1]);
  });

  test('that refuses is quoted', async (t) => {
    const unknown = await open(t, { machine_id: '0000000000' });
    assert.equal(await failureOf(unknown), 'there is no machine 0000000000 in the Fly app agents');
    const token = 'FlyV1 fm2_canaryWRONG000000';
    const stranger = await open(t, {}, token);
    const said = await failureOf(stranger);
    assert.match(said, /cannot be read: the Fly API refused; it answered 401: unauthorized: token/);
    stranger.fly.next('get', { status: 403, body: `you sent Bearer ${token}` });
    assert.match(await failureOf(stranger), /403: you sent Bearer \[redacted\]$/);
    const without = await open(t, {}, '');
    assert.equal(
      await failureOf(without),
      'FLY_API_TOKEN is not set; set it in the environment of the router; create one with: fly tokens create deploy',
    );
    assert.equal(without.fly.seen.length, 0);
  });
});

/** What somebody else asks of the machine. */
async function spend({ fly, machine }: FlyUnderTest, method: string, path: string, state?: string): Promise<void> {
  if (machine.provider !== 'fly') return;
  const { app, machine_id } = machine.spec;
  const answer = await fetch(`${fly.url}/v1/apps/${app}/machines/${machine_id}${path}`, {
    method,
    headers: { authorization: `Bearer ${fly.token}` },
  });
  assert.equal(answer.status, 200, await answer.text());
  if (state) await fly.set(state);
}
