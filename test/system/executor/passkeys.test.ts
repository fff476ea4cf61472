/** Passkeys at a real executor, over HTTP: who may enrol one, what it answers, and what is refused. */
import assert from 'node:assert/strict';
import { type TestContext, test } from 'node:test';
import { testApprover } from '../../../src/kit/identity/testing/approver.ts';
import { type AssertionFault, changedAssertion, testPasskey } from '../../../src/kit/identity/testing/passkey.ts';
import type { ApproverView } from '../../../src/wire/approver.ts';
import type { GateAnswer } from '../../../src/wire/executor.ts';
import { APPROVER, asOperator, enrolled, executorKeyOf } from '../../support/cluster/approval.ts';
import { diceOf } from '../../support/random/random.ts';
import { temporaryFolder } from '../../support/temporary.ts';
import { callerOf, startedExecutor, TOKEN, transfer } from './executor-bench.ts';

async function open(t: TestContext, more: Record<string, string> = {}) {
  const executor = await startedExecutor(t, temporaryFolder(t), more);
  const { url } = executor;
  const key = await executorKeyOf(url);
  const enrol = (body: unknown) => asOperator(url, 'POST', '/approvers', body);
  const listed = async (user = 'ada') =>
    ((await asOperator(url, 'GET', `/approvers?user=${user}`)).data as { approvers: ApproverView[] }).approvers;
  return { url, key, enrol, listed, ada: callerOf(executor, 'ada'), bob: callerOf(executor, 'bob') };
}

/** The bench with ada's key and a passkey of hers. */
async function withPasskey(t: TestContext, algorithm: 'es256' | 'eddsa' | 'rs256' = 'es256') {
  const at = await open(t);
  await enrolled(at.url, 'ada');
  const passkey = testPasskey({ algorithm });
  assert.equal((await at.enrol(passkey.enrollment(at.key, 'ada', APPROVER.key))).status, 200);
  const asking = async (amount?: string) => {
    const id = await at.ada.submit({ intent: transfer(amount) });
    return { id, gate: await at.ada.waiting(id) };
  };
  return { ...at, passkey, asking };
}

test('a passkey is let in by a key that stands and by nothing else; it lets nobody in and ends nobody', async (t) => {
  const { url, key, enrol, listed } = await open(t);
  const passkey = testPasskey();
  const first = await enrol(passkey.enrollment(key, 'ada', APPROVER.key));
  assert.deepEqual([first.status, await listed()], [403, []], 'never the first');
  await enrolled(url, 'ada');
  const bob = testApprover();
  await enrolled(url, 'bob', bob);
  const good = passkey.enrollment(key, 'ada', APPROVER.key);
  const other = testPasskey();
  const put = (change: object) => ({ ...good, passkey: { ...good.passkey, ...change } });
  const refused: [what: string, body: unknown, status: number][] = [
    ['without a voucher', passkey.enrollment(key, 'ada'), 403],
    ['vouched for by a stranger', passkey.enrollment(key, 'ada', testApprover().key), 403],
    ['vouched for by bob, for ada', passkey.enrollment(key, 'ada', bob.key), 403],
    ['a voucher of another passkey', { ...other.enrollment(key, 'ada'), voucher: good.voucher }, 403],
    ['a voucher for another user', { ...good, user: 'bob' }, 403],
    ['a voucher for another name', { ...good, name: 'a phone of mine' }, 403],
    ['another address than was vouched for', put({ origin: 'http://localhost:3000' }), 403],
    ['another key than was vouched for', put({ public_key: other.passkey.public_key }), 403],
    ['for another executor', passkey.enrollment('b'.repeat(64), 'ada', APPROVER.key), 409],
    ['stale', { ...good, expires_at: '2020-01-01T00:00:00.000Z' }, 403],
    ['http elsewhere', put({ origin: 'http://console.example', rp_id: 'console.example' }), 400],
    ['an address for a name', put({ origin: 'http://127.0.0.1:8087', rp_id: '127.0.0.1' }), 400],
    ['the name of somebody else', put({ rp_id: 'example' }), 400],
    ['an origin with a path', put({ origin: 'http://localhost:8087/x' }), 400],
    ['a key that is none', put({ public_key: 'ab'.repeat(91) }), 400],
    ['a key and a passkey at once', { ...good, approver: APPROVER.approver, signature: 'a'.repeat(128) }, 400],
  ];
  for (const [what, body, status] of refused) assert.deepEqual([what, (await enrol(body)).status], [what, status]);
  for (const token of [TOKEN, '', 'x'.repeat(40)])
    assert.equal((await asOperator(url, 'POST', '/approvers', good, token)).status, 401);
  assert.deepEqual(
    (await listed()).map(({ approver }) => approver),
    [APPROVER.approver],
  );

  assert.equal((await enrol(good)).status, 200);
  assert.equal((await enrol(good)).status, 409, 'the same once more');
  const [, view] = await listed();
  const { credential_id, origin, rp_id } = passkey.passkey;
  assert.deepEqual(view?.passkey, { credential_id, origin, rp_id, sign_count: 0 });
  // In the name of the passkey, with a signature of the key and the other way round.
  const thief = testApprover();
  const forKey = thief.enrollment(key, 'ada', APPROVER);
  const vouched = { ...forKey, voucher: { ...forKey.voucher!, approver: passkey.approver } };
  assert.equal((await enrol(vouched)).status, 403, 'a passkey vouches for nobody');
  const revoke = (body: unknown) => asOperator(url, 'DELETE', '/approvers', body);
  const own = APPROVER.revocation(key, 'ada', passkey.approver);
  assert.equal((await revoke({ ...own, voucher: { ...own.voucher, approver: passkey.approver } })).status, 403);
  assert.equal((await revoke(APPROVER.revocation(key, 'ada', APPROVER.approver))).status, 409, 'the last key stands');
  assert.equal((await revoke(own)).status, 200);
  assert.equal((await enrol(passkey.enrollment(key, 'ada', APPROVER.key))).status, 409, 'it does not come back');
});

for (const algorithm of ['es256', 'eddsa', 'rs256'] as const)
  test(`an answer by a passkey (${algorithm}) counts, stands whole in the receipt, and its counter is kept`, async (t) => {
    const { passkey, asking, ada, listed } = await withPasskey(t, algorithm);
    const { id, gate } = await asking();
    const offered = (await ada.data('GET', '/passkeys')) as unknown as { passkeys: { approver: string }[] };
    assert.deepEqual(
      offered.passkeys.map(({ approver }) => approver),
      [passkey.approver],
    );
    const answer = passkey.answer(id, gate);
    assert.equal((await ada.sendAnswer(id, 'pay', answer)).status, 200);
    await ada.until(id, 'completed');
    const { envelopes } = (await ada.data('GET', `/intents/${id}/receipt`)) as unknown as {
      envelopes: { kind: string; body: Record<string, unknown> }[];
    };
    const { body } = envelopes.find(({ kind }) => kind === 'gate.answered')!;
    assert.deepEqual(body.passkey, { ...passkey.passkey, ...answer.passkey });
    assert.deepEqual([body.approver, 'signature' in body], [passkey.approver, false]);
    assert.equal((await listed())[1]?.passkey?.sign_count, 1);
  });

test('what is signed with a passkey counts for one answer to one question, of one user, from one address', async (t) => {
  const { passkey, asking, ada, bob, url, key, enrol, listed } = await withPasskey(t);
  const bobs = testApprover();
  await enrolled(url, 'bob', bobs);
  const bobsPasskey = testPasskey({ algorithm: 'eddsa' });
  await enrol(bobsPasskey.enrollment(key, 'bob', bobs.key));
  const gone = testPasskey();
  await enrol(gone.enrollment(key, 'ada', APPROVER.key));
  await asOperator(url, 'DELETE', '/approvers', APPROVER.revocation(key, 'ada', gone.approver));
  const { id, gate } = await asking();
  const odd = (what: AssertionFault, said: Partial<GateAnswer> = {}) => passkey.answer(id, gate, said, what);
  const good = passkey.answer(id, gate);
  const no = passkey.answer(id, gate, { approved: false });
  const assertion = good.passkey!;
  const inMs = (ms: number) => new Date(Date.now() + ms).toISOString();
  const wrong: Record<string, unknown> = {
    'a yes over a no': { ...no, approved: true },
    'a no over a yes': { ...good, approved: false },
    'words that were not signed': { ...good, answer: 'and twice' },
    'another expiry': { ...good, expires_at: inMs(60_000) },
    'a past expiry': passkey.answer(id, gate, { expires_at: inMs(-1) }),
    'more than a day ahead': passkey.answer(id, gate, { expires_at: inMs(25 * 3_600_000) }),
    'another node': passkey.answer(id, { ...gate, node_id: 'other' }),
    'another intent': passkey.answer('another', gate),
    'a page of another port': odd({ origin: 'http://localhost:3000' }),
    'a page elsewhere': odd({ origin: 'https://evil.example' }),
    'another name': odd({ rpId: 'evil.example' }),
    'a page in a page of others': odd({ more: { crossOrigin: true, topOrigin: 'https://evil.example' } }),
    'made, not asked for': odd({ type: 'webauthn.create' }),
    'nobody verified': odd({ flags: 0x01 }),
    'nobody there': odd({ flags: 0x04 }),
    'no flags': odd({ flags: 0 }),
    'a challenge twice': {
      ...good,
      passkey: { ...assertion, client_data: assertion.client_data.replace('{', '{"challenge":"x",') },
    },
    'a broken signature': {
      ...good,
      passkey: { ...assertion, signature: assertion.signature.replace(/.$/, (d) => (d === '0' ? '1' : '0')) },
    },
    'the signature of another passkey': { ...good, passkey: testPasskey().answer(id, gate).passkey },
    'a stranger’s passkey': testPasskey().answer(id, gate),
    'a passkey of bob’s': bobsPasskey.answer(id, gate),
    'one that was revoked': gone.answer(id, gate),
    'in the name of her key': { ...good, approver: APPROVER.approver },
    'her key in the name of the passkey': { ...APPROVER.answer(id, gate), approver: passkey.approver },
  };
  for (const [what, answer] of Object.entries(wrong))
    assert.deepEqual([what, (await ada.sendAnswer(id, 'pay', answer)).status], [what, 403]);
  for (const answer of [
    { ...good, signature: APPROVER.answer(id, gate).signature },
    { ...good, passkey: undefined },
    { ...good, passkey: { ...assertion, public_key: passkey.passkey.public_key } },
    { ...good, passkey: { ...assertion, authenticator_data: assertion.authenticator_data.slice(0, 72) } },
  ])
    assert.equal((await ada.sendAnswer(id, 'pay', answer)).status, 400);
  assert.equal((await bob.sendAnswer(id, 'pay', bobsPasskey.answer(id, gate))).status, 404);
  assert.equal((await ada.state(id)).status, 'awaiting_approval');
  assert.equal((await listed())[1]?.passkey?.sign_count, 0, 'what is refused counts nothing');

  assert.equal((await ada.sendAnswer(id, 'pay', good)).status, 200);
  assert.equal((await ada.sendAnswer(id, 'pay', good)).status, 409, 'the first counts, the second is told so');
  await ada.until(id, 'completed');
  const next = await asking('1.00');
  const replayed = { ...passkey.answer(next.id, next.gate), passkey: assertion };
  assert.equal((await ada.sendAnswer(next.id, 'pay', replayed)).status, 403, 'an assertion of another question');
  for (const count of [1, 0])
    assert.equal((await ada.sendAnswer(next.id, 'pay', passkey.answer(next.id, next.gate, {}, { count }))).status, 403);
  const onward = passkey.answer(next.id, next.gate, { approved: false }, { count: 40 });
  assert.equal((await ada.sendAnswer(next.id, 'pay', onward)).status, 200);
  await ada.until(next.id, 'denied');
});

test('authenticators that do not count say 0, again and again', async (t) => {
  const { passkey, asking, ada } = await withPasskey(t, 'eddsa');
  for (const amount of ['1.00', '2.00']) {
    const { id, gate } = await asking(amount);
    assert.equal((await ada.sendAnswer(id, 'pay', passkey.answer(id, gate, {}, { count: 0 }))).status, 200);
    await ada.until(id, 'completed');
  }
});

test('0 of 200 assertions with something changed in them are taken', async (t) => {
  const { passkey, asking, ada } = await withPasskey(t);
  const { id, gate } = await asking();
  const dice = diceOf(t);
  const good = passkey.answer(id, gate);
  let taken = 0;
  for (let tried = 0; tried < 200; tried++)
    if ((await ada.sendAnswer(id, 'pay', { ...good, passkey: changedAssertion(good.passkey!, dice) })).status < 400)
      taken++;
  t.diagnostic(`200 tried, ${taken} taken`);
  assert.equal(taken, 0);
  assert.equal((await ada.sendAnswer(id, 'pay', good)).status, 200);
});
