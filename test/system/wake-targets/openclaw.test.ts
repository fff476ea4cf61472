import assert from 'node:assert/strict';
import { describe, type TestContext, test } from 'node:test';
import { always } from '../../support/stand-ins/http-agent.ts';
import { startStandInOpenclaw } from '../../support/stand-ins/openclaw.ts';
import { atEnd } from '../../support/temporary.ts';
import { startTargetBench } from './router.ts';

const FIRE = '018f3b1c-0000-7000-8000-000000000001@5';

async function start(t: TestContext, token?: string) {
  const openclaw = await startStandInOpenclaw();
  atEnd(t, () => openclaw.close());
  const bench = await startTargetBench(t);
  const spec = { preset: 'openclaw', url: openclaw.url };
  await bench.put('alice', { provider: 'command', spec, token: token ?? openclaw.token });
  return { openclaw, bench };
}

describe('openclaw', () => {
  test('a wake becomes a run of the conversation, under a key derived from its fire', async (t) => {
    const { openclaw, bench } = await start(t);
    const turn = await bench.wakeToEnd('alice', { fire_id: FIRE, conversation_id: 'agent:main:main' });
    assert.equal(turn.status, 'accepted');
    const { message, ...rest } = openclaw.runs[0]!;
    assert.ok(String(message).includes('\nresume the work\n'));
    assert.deepEqual(rest, { name: 'Reveille', wakeMode: 'now', sessionKey: 'agent:main:main', idempotencyKey: FIRE });
    const again = await bench.wake('alice', { fire_id: FIRE });
    assert.deepEqual([again.status, openclaw.seen.length], [200, 1]);
    await bench.wakeToEnd('alice', { conversation_id: undefined });
    assert.equal('sessionKey' in openclaw.runs[1]!, false);
  });

  test("a turn that did not begin is left to the alarm to retry, with the gateway's own message", async (t) => {
    const { openclaw, bench } = await start(t);
    for (const status of [409, 502, 503, 429]) {
      openclaw.misbehave = always(status, { ok: false, error: 'not begun' }, { headers: { 'retry-after': '9' } });
      const refused = await bench.wake('alice', { fire_id: FIRE });
      assert.deepEqual([refused.status, refused.headers.get('retry-after')], [503, '9']);
      assert.match(refused.json.error.message, new RegExp(`the gateway answered ${status}: .*not begun`));
    }
    openclaw.misbehave = undefined;
    assert.equal((await bench.wake('alice', { fire_id: FIRE })).status, 202);
    assert.equal(openclaw.runs.length, 1);
  });

  test('a lost answer leads to the same run once more', async (t) => {
    const { openclaw, bench } = await start(t);
    let cut = true;
    openclaw.misbehave = ({ text }, response) => {
      if (!cut) return false;
      // The gateway begins the run; only its answer is lost.
      openclaw.runs.push(JSON.parse(text));
      response.destroy();
      return true;
    };
    const lost = await bench.wake('alice', { fire_id: FIRE, attempt: 1 });
    assert.equal(lost.status, 502);
    assert.match(lost.json.error.message, /may or may not have been accepted/);
    cut = false;
    assert.equal((await bench.wake('alice', { fire_id: FIRE, attempt: 2 })).status, 202);
    const [one, two] = openclaw.seen.map(({ text }) => text);
    assert.equal(one, two);
  });

  test('a wrong token, a hanging gateway and a redirect each have a message', async (t) => {
    const { openclaw, bench } = await start(t, 'a-token-that-is-wrong');
    const refused = await bench.wake('alice');
    assert.equal(refused.status, 502);
    assert.match(refused.json.error.message, /^the gateway answered 401: Unauthorized$/);
    openclaw.misbehave = always(307, '', { headers: { location: 'http://127.0.0.1:1/' } });
    assert.match((await bench.wake('alice')).json.error.message, /307 \(redirects are not followed\)/);
    openclaw.misbehave = () => true;
    const hanging = bench.wake('alice');
    await new Promise<void>((resolve) => {
      const waitForRequests = () => (openclaw.seen.length < 3 ? setImmediate(waitForRequests) : resolve());
      waitForRequests();
    });
    bench.clock.advance(25_000);
    assert.match((await hanging).json.error.message, /did not answer: no answer within 25 s; the wake may or may not/);
  });
});
