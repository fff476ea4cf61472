import assert from 'node:assert/strict';
import { type TestContext, test } from 'node:test';
import { diceOf } from '../../test/support/random/random.ts';
import { atEnd, temporaryFolder } from '../../test/support/temporary.ts';
import type { WaitingGate } from '../executor/client.ts';
import { ManualClock } from '../kit/clock/testing/manual-clock.ts';
import { seal } from '../kit/identity/secrets.ts';
import { ApprovalLinks, LINK_MS, makeApprovalToken, PASSPHRASES_MAX } from './approval-link.ts';
import type { Question } from './news.ts';
import { NotifyStore } from './store.ts';

const SECRET = 'a-secret-that-seals-approval-links';
const NOW = Date.parse('2026-11-23T02:00:00Z');

function questionOf(n: number): Question {
  const hex = n.toString(16).padStart(64, '0');
  return {
    ...{ intent_id: `intent-${n}`, node_id: 'pay', call_sha256: hex, displayed_sha256: hex.replaceAll('0', 'd') },
    expires_at: new Date(NOW + 3_600_000).toISOString(),
  };
}

const gateOf = ({ node_id, call_sha256, displayed_sha256, expires_at }: Question): WaitingGate => ({
  ...{ node_id, displayed_sha256, expires_at, question: 'Pay?' },
  call: { tool: 'ledger/transfer', args: {}, call_sha256 },
});

function bench(t: TestContext, dir = temporaryFolder(t)) {
  const clock = new ManualClock(NOW);
  const store = new NotifyStore({ dir, clock, lock: 'shared' });
  atEnd(t, () => store.close());
  const links = new ApprovalLinks({ store, secret: SECRET, clock });
  const tokenFor = (question: Question, approved: boolean, user = 'ada') =>
    makeApprovalToken(SECRET, { user, question, approved }, clock.now());
  return { clock, store, links, tokenFor, dir };
}

test('a link names its answer and its call, opening it changes nothing, and using it works once', (t) => {
  const { links, tokenFor } = bench(t);
  const question = questionOf(1);
  const token = tokenFor(question, true);
  const expected = {
    ...{ user: 'ada', intentId: 'intent-1', nodeId: 'pay', approved: true, expiresAt: NOW + LINK_MS },
    ...{ callSha256: question.call_sha256, displayedSha256: question.displayed_sha256 },
  };
  for (let look = 0; look < 3; look++) assert.deepEqual(links.read(token), { ok: true, link: expected });
  assert.deepEqual(links.use(token, [gateOf(question)]), { ok: true, link: expected });
  assert.deepEqual(links.use(token, [gateOf(question)]), { ok: false, why: 'used' });
  assert.deepEqual(links.read(token), { ok: false, why: 'used' });
});

test('one answer invalidates the other link of the question, also after a restart; a question asked anew has new links', (t) => {
  const first = bench(t);
  const question = questionOf(1);
  const [yes, no] = [first.tokenFor(question, true), first.tokenFor(question, false)];
  assert.equal(first.links.use(no, [gateOf(question)]).ok, true);
  const second = bench(t, first.dir);
  assert.deepEqual(second.links.use(yes, [gateOf(question)]), { ok: false, why: 'used' });
  const anew = { ...question, displayed_sha256: 'e'.repeat(64) };
  assert.equal(second.links.use(second.tokenFor(anew, true), [gateOf(anew)]).ok, true);
});

test('a link is refused after its minutes, after the end of its question, or when another call waits in its place', (t) => {
  const { clock, links, tokenFor } = bench(t);
  const question = questionOf(1);
  const token = tokenFor(question, true);
  const other = gateOf({ ...question, call_sha256: 'f'.repeat(64) });
  assert.deepEqual(links.use(token, []), { ok: false, why: 'changed' });
  assert.deepEqual(links.use(token, [other]), { ok: false, why: 'changed' });
  clock.jump(LINK_MS);
  assert.deepEqual(links.use(token, [gateOf(question)]), { ok: false, why: 'expired' });
  // A question that ends sooner ends its links.
  const soon = { ...question, expires_at: new Date(clock.now() + 1000).toISOString() };
  const short = tokenFor(soon, true);
  clock.jump(1000);
  assert.deepEqual(links.read(short), { ok: false, why: 'expired' });
});

test('five wrong passphrases lock both links of a question permanently, also after a restart', (t) => {
  const first = bench(t);
  const question = questionOf(1);
  const [yes, no] = [first.tokenFor(question, true), first.tokenFor(question, false)];
  const verdict = first.links.read(yes);
  assert.ok(verdict.ok);
  first.links.tryPassphrase(verdict.link);
  first.links.uncountPassphrase(verdict.link);
  for (let guess = 0; guess < PASSPHRASES_MAX; guess++) {
    assert.equal(first.links.read(yes).ok, true);
    assert.equal(first.links.tryPassphrase(verdict.link), true);
  }
  const second = bench(t, first.dir);
  assert.equal(second.links.tryPassphrase(verdict.link), false);
  for (const token of [yes, no]) {
    assert.deepEqual(second.links.read(token), { ok: false, why: 'locked' });
    assert.deepEqual(second.links.use(token, [gateOf(question)]), { ok: false, why: 'locked' });
  }
  const other = questionOf(2);
  assert.equal(second.links.use(second.tokenFor(other, true), [gateOf(other)]).ok, true);
});

test('none of 10,000 forged or replayed links is accepted', (t) => {
  const { links, tokenFor } = bench(t);
  const pick = diceOf(t);
  const genuine = Array.from({ length: 20 }, (_, n) => questionOf(n + 1));
  const used = genuine.map((question) => {
    const token = tokenFor(question, true);
    assert.equal(links.use(token, [gateOf(question)]).ok, true);
    return token;
  });
  // Questions with unopened links: an attacker's goal.
  const open = Array.from({ length: 20 }, (_, n) => questionOf(n + 100));
  const denials = open.map((question) => tokenFor(question, false));
  const gates = [...genuine, ...open].map(gateOf);
  const forgeries: (() => string)[] = [
    () => used[pick(used.length)]!,
    () => tokenFor(genuine[pick(genuine.length)]!, false),
    // Another answer, user or time under the old seal.
    () => denials[pick(denials.length)]!.replace('.n.', '.y.'),
    () => denials[pick(denials.length)]!.replace(/^a1\.[^.]+/, `a1.${Buffer.from('eve').toString('base64url')}`),
    () => denials[pick(denials.length)]!.replace(/\.n\.[0-9a-z]+\./, `.n.${(NOW + LINK_MS * 2).toString(36)}.`),
    // Sealed with a key that an attacker has.
    () => {
      const text = denials[pick(denials.length)]!.split('.').slice(0, -1).join('.').replace('.n.', '.y.');
      return `${text}.${seal(`guess-${pick(1e9)}`, text)}`;
    },
    // The seal of one on the text of another, one changed character, and noise.
    () => {
      const [one, other] = [pick(10), 10 + pick(10)];
      const text = denials[one]!.split('.').slice(0, -1).join('.');
      return `${text}.${denials[other]!.split('.').at(-1)}`;
    },
    () => {
      const token = denials[pick(denials.length)]!;
      const at = pick(token.length - 1);
      const instead = token[at] === 'A' ? 'B' : 'A';
      return token.slice(0, at) + instead + token.slice(at + 1);
    },
    () => String.fromCharCode(...Array.from({ length: pick(300) }, () => 32 + pick(94))),
  ];
  const before = links.figures.accepted;
  for (let n = 0; n < 10_000; n++) links.use(forgeries[n % forgeries.length]!(), gates);
  const { accepted, ...refused } = links.figures;
  t.diagnostic(`10,000 forged or replayed links: ${accepted - before} accepted; ${JSON.stringify(refused)}`);
  assert.equal(accepted - before, 0);
  assert.equal(
    Object.values(refused).reduce((sum, count) => sum + count, 0),
    10_000,
  );
  assert.ok(refused.forged > 3000 && refused.used > 2000 && refused.malformed > 1000, JSON.stringify(refused));
  // The genuine ones still work.
  assert.ok(open.every((question, n) => links.use(denials[n]!, [gateOf(question)]).ok));
});
