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
  test('gets the nonce of a lease that the operator holds, and no other caller sees it', async (t) => {
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

  test('has the lease of another holder waited for, and the log says so', async (t) => {
    const underTest = await open(t);
    underTest.fly.machine.lease = 'of-a-deploy';
    const states: string[] = [];
    const starting = start(underTest, states);
    await eventually('it is refused', () =>
      states.some((text) => /409: .*lease currently held by deploy@fly/.test(text)),
    );
    underTest.fly.machine.lease = undefined;
    await advancing(underTest, starting);
    assert.equal(underTest.fly.machine.starts, 1);
  });

  test('is called again after a rate limit, at the given time or a second later', async (t) => {
    const underTest = await open(t);
    const limited = { status: 429, body: { error: 'rate limit exceeded' }, headers: { 'retry-after': '7' } };
    underTest.fly.next('start', limited);
    const states: string[] = [];
    const starting = start(underTest, states);
    await eventually('it is refused', () => states.some((text) => /429: rate limit exceeded$/.test(text)));
    underTest.clock.advance(6000);
    await new Promise((resolve) => setTimeout(resolve, 30));
    assert.equal(underTest.fly.count('start'), 1);
    await advancing(underTest, starting);
    assert.equal(underTest.fly.count('start'), 2);
  });

  test('is reached for a machine whose limits another client uses up', async (t) => {
    const underTest = await open(t);
    for (let n = 0; n < 3; n++) await spend(underTest, 'POST', '/start', 'stopped');
    for (let n = 0; n < 10; n++) await spend(underTest, 'GET', '');
    const before = underTest.fly.limited;
    await advancing(underTest, start(underTest));
    assert.ok(underTest.fly.limited > before);
    assert.equal(underTest.running(), 1);
  });

  test('gets no more requests than it allows, in ten rounds of sleep and wake', async (t) => {
    const underTest = await open(t);
    for (let round = 0; round < 10; round++) {
      await advancing(underTest, start(underTest));
      await advancing(underTest, underTest.provider.stop(underTest.machine));
      // The minimum idle time of a machine.
      underTest.clock.advance(1000);
    }
    assert.equal(underTest.fly.limited, 0);
  });

  test('is queried again after a temporary error, up to a limit', async (t) => {
    const text = { status: 503, body: 'upstream connect error' };
    for (const how of [text, 'reset', 'garbage'] as const) {
      const underTest = await open(t);
      underTest.fly.next('get', how, 3);
      await advancing(underTest, start(underTest));
      underTest.fly.next('get', how, 4);
      const message = await failureOf(underTest);
      if (how === text)
        assert.match(message, /^the Fly API cannot do it now: it answered 503: upstream connect error$/);
      else assert.match(message, /^the Fly API (cannot be reached|answered something that is not JSON)/);
    }
  });

  test('starts the machine once when the answer to a start is lost', async (t) => {
    const underTest = await open(t);
    underTest.fly.next('start', 'lost');
    assert.equal((await advancing(underTest, start(underTest))).cold, true);
    assert.deepEqual([underTest.fly.machine.starts, underTest.fly.count('start')], [1, 1]);
  });

  test('is quoted when it refuses', async (t) => {
    const unknown = await open(t, { machine_id: '0000000000' });
    assert.equal(await failureOf(unknown), 'there is no machine 0000000000 in the Fly app agents');
    const token = 'FlyV1 fm2_canaryWRONG000000';
    const unauthorized = await open(t, {}, token);
    const message = await failureOf(unauthorized);
    assert.match(message, /cannot be read: the Fly API refused; it answered 401: unauthorized: token/);
    unauthorized.fly.next('get', { status: 403, body: `you sent Bearer ${token}` });
    assert.match(await failureOf(unauthorized), /403: you sent Bearer \[redacted\]$/);
    const without = await open(t, {}, '');
    assert.equal(
      await failureOf(without),
      'FLY_API_TOKEN is not set; set it in the environment of the router; create one with: fly tokens create deploy',
    );
    assert.equal(without.fly.seen.length, 0);
  });
});

/** Requests of another client for the machine. */
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
