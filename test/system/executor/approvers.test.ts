/**
 * Who may approve is not who may submit: attacks on the rosters and on answers, over HTTP, with every credential but
 * the right key.
 */
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { type TestContext, test } from 'node:test';
import { type TestApprover, testApprover } from '../../../src/kit/identity/testing/approver.ts';
import { ADMIN_TOKEN, APPROVER, asOperator, enrolled, executorKeyOf } from '../../support/cluster/approval.ts';
import { temporaryFolder } from '../../support/temporary.ts';
import { callerOf, startedExecutor, TOKEN, transfer } from './executor-bench.ts';

async function open(t: TestContext) {
  const folder = temporaryFolder(t);
  const executor = await startedExecutor(t, folder);
  const { url } = executor;
  const key = await executorKeyOf(url);
  const operator = (method: 'GET' | 'POST' | 'DELETE', path: string, body?: unknown, token?: string) =>
    asOperator(url, method, path, body, token ?? ADMIN_TOKEN);
  return { folder, executor, url, key, operator, ada: callerOf(executor, 'ada') };
}

type Open = Awaited<ReturnType<typeof open>>;

const standing = async ({ operator }: Pick<Open, 'operator'>, user: string): Promise<string[]> => {
  const { approvers } = (await operator('GET', `/approvers?user=${user}`)).data as {
    approvers: { approver: string; revoked_at?: string; forged?: true }[];
  };
  return approvers
    .filter(({ revoked_at, forged }) => revoked_at === undefined && !forged)
    .map(({ approver }) => approver);
};

/** An intent of ada's that asks, and its gate. */
async function asking({ ada }: Open) {
  const id = await ada.submit({ intent: transfer() });
  return { id, gate: await ada.waiting(id) };
}

test('the first key of a user takes the operator’s word; no further one, and no end, goes without a key that stands', async (t) => {
  const at = await open(t);
  const { operator, key, url } = at;
  await enrolled(url, 'ada');
  const thief = testApprover();
  const second = testApprover();
  const refused: [body: unknown, status: number][] = [
    [thief.enrollment(key, 'ada'), 403],
    [thief.enrollment(key, 'ada', thief), 403],
    [{ ...thief.enrollment(key, 'ada'), voucher: { approver: APPROVER.approver, signature: 'a'.repeat(128) } }, 403],
    // Somebody else's approver, whoever enrolled them.
    [thief.enrollment(key, 'ada', second), 403],
    // A voucher for another user, and one for another executor.
    [{ ...thief.enrollment(key, 'bob', APPROVER), user: 'ada' }, 403],
    [thief.enrollment('b'.repeat(64), 'ada', APPROVER), 409],
    // A key that nobody is shown to have, and the executor's own.
    [{ ...second.enrollment(key, 'ada', APPROVER), approver: thief.approver }, 403],
    [{ ...second.enrollment(key, 'ada', APPROVER), expires_at: '2020-01-01T00:00:00.000Z' }, 403],
  ];
  for (const [body, status] of refused) {
    const answer = await operator('POST', '/approvers', body);
    assert.equal(answer.status, status, JSON.stringify(answer));
  }
  for (const revocation of [
    { ...APPROVER.revocation(key, 'ada', APPROVER.approver), voucher: undefined },
    thief.revocation(key, 'ada', APPROVER.approver),
  ])
    assert.notEqual((await operator('DELETE', '/approvers', revocation)).status, 200);
  const last = await operator('DELETE', '/approvers', APPROVER.revocation(key, 'ada', APPROVER.approver));
  assert.equal(last.status, 409, 'the last one stands: else the next first one could be anybody’s');
  assert.deepEqual(await standing(at, 'ada'), [APPROVER.approver]);

  assert.equal((await operator('POST', '/approvers', second.enrollment(key, 'ada', APPROVER))).status, 200);
  assert.deepEqual(await standing(at, 'ada'), [APPROVER.approver, second.approver]);
  const ended = second.revocation(key, 'ada', APPROVER.approver);
  assert.equal((await operator('DELETE', '/approvers', ended)).status, 200);
  assert.equal((await operator('POST', '/approvers', APPROVER.enrollment(key, 'ada', second))).status, 409);
  assert.deepEqual(await standing(at, 'ada'), [second.approver], 'what was revoked does not come back');
  assert.equal((await operator('POST', '/approvers', thief.enrollment(key, 'ada', APPROVER))).status, 403);
});

test('where somebody has to vouch, whoever has every token of the executor cannot make up a user, and approve as that user', async (t) => {
  const folder = temporaryFolder(t);
  const vouched = { EXECUTOR_ENROLLMENT: 'vouched' };
  const before = await startedExecutor(t, folder, vouched);
  const key = await executorKeyOf(before.url);
  const thief = testApprover();
  const bob = testApprover();
  const enrol = (url: string, body: unknown) => asOperator(url, 'POST', '/approvers', body);
  assert.equal((await enrol(before.url, APPROVER.enrollment(key, 'ada'))).status, 200, 'nobody is there to vouch yet');
  for (const body of [
    thief.enrollment(key, 'mallory'),
    thief.enrollment(key, 'mallory', thief),
    { ...thief.enrollment(key, 'mallory'), voucher: APPROVER.enrollment(key, 'ada', APPROVER).voucher },
  ])
    assert.equal((await enrol(before.url, body)).status, 403);
  assert.deepEqual((await asOperator(before.url, 'GET', '/approvers?user=mallory')).data, {
    ...{ executor: key, approvers: [], resets: [] },
  });
  assert.equal((await enrol(before.url, bob.enrollment(key, 'bob', APPROVER))).status, 200);
  await before.close();

  const after = await startedExecutor(t, folder, vouched);
  const at = { operator: (method: 'GET' | 'POST' | 'DELETE', path: string) => asOperator(after.url, method, path) };
  assert.deepEqual(await standing(at, 'bob'), [bob.approver], 'it counts when it is read again');
  assert.equal((await enrol(after.url, thief.enrollment(key, 'bob', APPROVER))).status, 403, 'hers counts for her own');
  const caller = callerOf(after, 'bob');
  const id = await caller.submit({ intent: transfer() });
  assert.equal((await caller.sendAnswer(id, 'pay', bob.answer(id, await caller.waiting(id)))).status, 200);
  await caller.until(id, 'completed');
});

test('the rosters open to the administrator’s token alone, and it opens nothing else', async (t) => {
  const at = await open(t);
  const { url, operator } = at;
  const { token } = (await operator('POST', '/submitters', { user: 'ada', name: 'an agent' })).data as {
    token: string;
  };
  // Each wrong token is answered late, so they are all sent at once.
  const tries = [TOKEN, token, 'x'.repeat(40), ''].flatMap((wrong) =>
    ['/approvers', '/submitters'].flatMap((path) =>
      (['GET', 'POST', 'DELETE'] as const).map(async (method) => {
        const answer = await asOperator(url, method, path, method === 'GET' ? undefined : {}, wrong);
        assert.equal(answer.status, 401, `${method} ${path}`);
      }),
    ),
  );
  await Promise.all(tries);
  for (const path of ['/intents', '/messages/async/x', '/events?intent_id=x'])
    assert.equal((await callerOf({ url }, 'ada', ADMIN_TOKEN).call('GET', path)).status, 401, path);
});

test('an answer counts by its signature: not of another user’s approver, a stranger, a revoked key, or for another time', async (t) => {
  const at = await open(t);
  const { operator, key, url, ada } = at;
  await enrolled(url, 'ada');
  const bob = testApprover();
  await enrolled(url, 'bob', bob);
  const gone = testApprover();
  await operator('POST', '/approvers', gone.enrollment(key, 'ada', APPROVER));
  const { id, gate } = await asking(at);
  const revokedInFlight = gone.answer(id, gate);
  assert.equal((await operator('DELETE', '/approvers', APPROVER.revocation(key, 'ada', gone.approver))).status, 200);
  const inMs = (ms: number) => new Date(Date.now() + ms).toISOString();
  const wrong = {
    'bob’s approver': bob.answer(id, gate),
    'a stranger': testApprover().answer(id, gate),
    'a stranger in the name of hers': testApprover().answer(id, gate, { approver: APPROVER.approver }),
    'a key that was revoked while the answer was on its way': revokedInFlight,
    'a past expiry': APPROVER.answer(id, gate, { expires_at: inMs(-1) }),
    'more than a day ahead': APPROVER.answer(id, gate, { expires_at: inMs(25 * 3_600_000) }),
    'a yes over a no': { ...APPROVER.answer(id, gate, { approved: false }), approved: true },
    'words that were not signed': { ...APPROVER.answer(id, gate), answer: 'and twice' },
    'another node': APPROVER.answer(id, { ...gate, node_id: 'other' }),
    'another intent': APPROVER.answer('another', gate),
  };
  for (const [what, answer] of Object.entries(wrong)) {
    const { status, error } = await ada.sendAnswer(id, 'pay', answer);
    assert.deepEqual([what, status, error?.code], [what, 403, 'forbidden']);
  }
  const unsigned = { approved: true, call_sha256: gate.call.call_sha256 };
  assert.equal((await ada.sendAnswer(id, 'pay', unsigned)).status, 400, 'what was enough before');
  // His approver, his header, her intent.
  assert.equal((await callerOf(at.executor, 'bob').sendAnswer(id, 'pay', bob.answer(id, gate))).status, 404);
  assert.equal((await ada.state(id)).status, 'awaiting_approval');
  assert.equal((await ada.sendAnswer(id, 'pay', APPROVER.answer(id, gate))).status, 200);
  await ada.until(id, 'completed');
});

test('a submitter acts for its user and nobody else, carries a signed answer, and is nobody once it is revoked', async (t) => {
  const at = await open(t);
  const { url, operator, folder } = at;
  await enrolled(url, 'ada');
  const made = (await operator('POST', '/submitters', { user: 'ada', name: 'neo' })).data as {
    id: string;
    token: string;
  };
  assert.match(made.token, /^rvs_/);
  const neo = callerOf({ url }, undefined, made.token);
  const named = callerOf({ url }, 'ada', made.token);
  const id = await neo.submit({ intent: transfer() });
  const gate = await neo.waiting(id);
  assert.equal((await named.state(id)).status, 'awaiting_approval');
  for (const path of ['/intents', `/intents/${id}`, `/intents/${id}/receipt`, `/messages/async/${id}`]) {
    assert.equal((await named.call('GET', path)).status, 200, path);
    assert.equal((await callerOf({ url }, 'bob', made.token).call('GET', path)).status, 403, path);
  }
  assert.equal(
    (await callerOf({ url }, 'bob', made.token).call('POST', '/messages/async', { intent: transfer() })).status,
    403,
  );
  const own: TestApprover = testApprover();
  assert.equal((await neo.sendAnswer(id, 'pay', own.answer(id, gate))).status, 403);
  assert.equal(
    (await neo.sendAnswer(id, 'pay', APPROVER.answer(id, gate))).status,
    200,
    'the signature is the authority',
  );
  await neo.until(id, 'completed');
  const second = await neo.submit({ intent: transfer('1.00') });
  await neo.waiting(second);
  const cancelled = await neo.data('POST', `/intents/${second}/cancel`, { reason: 'nobody was there' });
  assert.equal(cancelled.status, 'cancelled');
  const { envelopes } = (await neo.data('GET', `/intents/${second}/receipt`)) as unknown as {
    envelopes: { kind: string; body: Record<string, unknown> }[];
  };
  assert.match(String(envelopes.at(-1)?.body.reason), /cancelled for ada: nobody was there/);

  const listed = await operator('GET', '/submitters');
  assert.ok(!JSON.stringify(listed).includes(made.token), 'it was shown once');
  for (const file of ['journal.db', 'journal.db-wal']) {
    const bytes = readFileSync(join(folder, 'executor', file), 'latin1');
    assert.ok(!bytes.includes(made.token), 'and is kept nowhere');
  }
  assert.equal((await operator('DELETE', '/submitters', { id: made.id })).status, 200);
  assert.equal((await neo.call('GET', '/intents')).status, 401);
});

test('a line that was written into the roster makes nobody an approver, and is shown as what it is', async (t) => {
  const folder = temporaryFolder(t);
  const before = await startedExecutor(t, folder);
  await enrolled(before.url, 'ada');
  const key = await executorKeyOf(before.url);
  await before.close();
  const thief = testApprover();
  const { approver, name, expires_at, signature } = thief.enrollment(key, 'ada');
  const db = new DatabaseSync(join(folder, 'executor', 'journal.db'));
  db.prepare(
    `INSERT INTO approvers (user_id, public_key, name, enrolled_at, expires_at, signature, voucher, voucher_signature)
     VALUES ('ada', ?, ?, ?, ?, ?, ?, ?)`,
  ).run(approver, name, Date.now(), expires_at, signature, APPROVER.approver, 'a'.repeat(128));
  db.close();
  const executor = await startedExecutor(t, folder);
  const at = { operator: (method: 'GET' | 'POST' | 'DELETE', path: string) => asOperator(executor.url, method, path) };
  assert.deepEqual(await standing(at, 'ada'), [APPROVER.approver]);
  const { approvers } = (await at.operator('GET', '/approvers')).data as { approvers: { forged?: true }[] };
  assert.deepEqual(
    approvers.map(({ forged }) => forged),
    [undefined, true],
  );
  const ada = callerOf(executor, 'ada');
  const id = await ada.submit({ intent: transfer() });
  const gate = await ada.waiting(id);
  assert.equal((await ada.sendAnswer(id, 'pay', thief.answer(id, gate))).status, 403);
  assert.equal((await ada.state(id)).status, 'awaiting_approval');
});
