import assert from 'node:assert/strict';
import { test } from 'node:test';
import { Webhook } from 'standardwebhooks';
import { randomSecret } from './secrets.ts';
import { verifyWebhook, type WebhookToSign, webhookSigner } from './webhook-signature.ts';

const NOW_SECONDS = 1_781_511_000;
const nowMs = NOW_SECONDS * 1000 + 999;
const body = '{"message":"Grüße 👋","payload":{"n":12345678901234567890}}';
const id = '0191e4f2-0000-7000-8000-0000000000ab@1781511000000';
const secret = randomSecret();

function signed({ secret: usedSecret = secret, ...overrides }: Partial<WebhookToSign> & { secret?: string } = {}) {
  return webhookSigner(usedSecret)({ id, timestampSeconds: NOW_SECONDS, body, ...overrides });
}

test('signatures agree with the reference library in both directions', () => {
  // The library uses the current time, so these signatures do too.
  const now = new Date();
  const timestampSeconds = Math.floor(now.getTime() / 1000);
  const encoded = `whsec_${Buffer.from(secret).toString('base64')}`;
  const libraries: [string, Webhook][] = [
    [secret, new Webhook(secret, { format: 'raw' })],
    [encoded, new Webhook(encoded)],
  ];
  for (const [ours, theirs] of libraries) {
    const headers = signed({ timestampSeconds, secret: ours });
    assert.deepEqual(theirs.verify(body, headers), JSON.parse(body));
    assert.equal(theirs.sign(id, now, body), headers['webhook-signature']);
    assert.deepEqual(verifyWebhook({ headers, body, secrets: [ours], nowMs: now.getTime() }), { ok: true });
  }
});

test('the example of the specification has the specified signature', () => {
  const sign = webhookSigner('whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw');
  const headers = sign({
    id: 'msg_p5jXN8AQM9LWM0D4loKWxJek',
    timestampSeconds: 1614265330,
    body: '{"test": 2432232314}',
  });
  assert.equal(headers['webhook-signature'], 'v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=');
});

test('a signature serves one event: no id with a dot is accepted, and none is signed', () => {
  const inner = `${NOW_SECONDS}.${body}`;
  const genuine = signed({ id: 'evt', body: inner });
  assert.deepEqual(verifyWebhook({ headers: genuine, body: inner, secrets: [secret], nowMs }), { ok: true });
  // The same signed text, read as another id with another body.
  const shifted = { ...genuine, 'webhook-id': `evt.${NOW_SECONDS}` };
  assert.deepEqual(verifyWebhook({ headers: shifted, body, secrets: [secret], nowMs }), {
    ok: false,
    reason: 'bad_id',
  });
  const dotted = signed({ id: `evt.${NOW_SECONDS}` });
  assert.equal(dotted['webhook-id'], `evt%2E${NOW_SECONDS}`);
  assert.deepEqual(verifyWebhook({ headers: dotted, body, secrets: [secret], nowMs }), { ok: true });
  const read = { ...dotted, 'webhook-id': 'evt' };
  assert.equal(verifyWebhook({ headers: read, body: inner, secrets: [secret], nowMs }).ok, false);
});

test('bytes and the same text have the same signature', () => {
  assert.deepEqual(signed({ body: Buffer.from(body) }), signed());
  assert.deepEqual(verifyWebhook({ headers: signed(), body: Buffer.from(body), secrets: [secret], nowMs }), {
    ok: true,
  });
});

test('one matching pair of several signatures and secrets is enough', () => {
  const headers = signed();
  const other = signed({ secret: 'another secret entirely' })['webhook-signature'];
  const signature = `v1a,AAAA ${other} v1,short v2,${headers['webhook-signature'].slice(3)} ${headers['webhook-signature']}`;
  assert.deepEqual(
    verifyWebhook({
      headers: { ...headers, 'webhook-signature': signature },
      body,
      secrets: ['old one', secret],
      nowMs,
    }),
    { ok: true },
  );
  const onlyForeign = `v1a,AAAA ${other} v2,${headers['webhook-signature'].slice(3)}`;
  assert.deepEqual(
    verifyWebhook({ headers: { ...headers, 'webhook-signature': onlyForeign }, body, secrets: [secret], nowMs }),
    {
      ok: false,
      reason: 'no_match',
    },
  );
});

test('a changed id, time, body or secret does not match, nor does an absent secret', () => {
  const headers = signed();
  const refused = { ok: false, reason: 'no_match' };
  const check = (overrides: Partial<Parameters<typeof verifyWebhook>[0]>) =>
    verifyWebhook({ headers, body, secrets: [secret], nowMs, ...overrides });
  assert.deepEqual(check({ headers: { ...headers, 'webhook-id': `${id}0` } }), refused);
  assert.deepEqual(check({ headers: { ...headers, 'webhook-timestamp': String(NOW_SECONDS - 1) } }), refused);
  assert.deepEqual(check({ body: `${body} ` }), refused);
  assert.deepEqual(check({ secrets: [`${secret}x`] }), refused);
  assert.deepEqual(check({ secrets: [] }), refused);
});

test('the time may differ by at most the tolerance in both directions', () => {
  const check = (timestampSeconds: number, toleranceSeconds?: number) => {
    const headers = signed({ timestampSeconds });
    return verifyWebhook({
      headers,
      body,
      secrets: [secret],
      nowMs,
      ...(toleranceSeconds !== undefined && { toleranceSeconds }),
    });
  };
  assert.deepEqual(check(NOW_SECONDS - 300), { ok: true });
  assert.deepEqual(check(NOW_SECONDS + 300), { ok: true });
  assert.deepEqual(check(NOW_SECONDS - 301), { ok: false, reason: 'too_old' });
  assert.deepEqual(check(NOW_SECONDS + 301), { ok: false, reason: 'too_new' });
  assert.deepEqual(check(NOW_SECONDS - 11, 10), { ok: false, reason: 'too_old' });
});

test('missing and malformed headers have their own reasons', () => {
  const headers = signed();
  for (const name of ['webhook-id', 'webhook-timestamp', 'webhook-signature']) {
    for (const value of [undefined, '']) {
      assert.deepEqual(verifyWebhook({ headers: { ...headers, [name]: value }, body, secrets: [secret], nowMs }), {
        ok: false,
        reason: 'missing_header',
      });
    }
  }
  for (const timestamp of ['soon', '-1', '1e9', '1781511000.5', ' 1781511000', '9'.repeat(40), 'NaN']) {
    const verdict = verifyWebhook({
      headers: { ...headers, 'webhook-timestamp': timestamp },
      body,
      secrets: [secret],
      nowMs,
    });
    assert.deepEqual(verdict, { ok: false, reason: 'bad_timestamp' }, timestamp);
  }
  for (const signature of [' ', ',', 'v1', 'v1,', 'v1,%%%', `${'v1,AAAA '.repeat(10_000)}`]) {
    const verdict = verifyWebhook({
      headers: { ...headers, 'webhook-signature': signature },
      body,
      secrets: [secret],
      nowMs,
    });
    assert.deepEqual(verdict, { ok: false, reason: 'no_match' });
  }
});

test('an empty secret is refused', () => {
  assert.throws(() => signed({ secret: '' }), { code: 'internal' });
  assert.throws(() => signed({ secret: 'whsec_' }), { code: 'internal' });
});
