import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { nextEnvelope } from '../../../src/executor/receipt/chain.ts';
import { readValues } from '../../../src/executor/receipt/receipt-text.ts';
import { verifyReceipt, verifyReceipts } from '../../../src/executor/receipt/verify-receipt.ts';
import { canonicalJson } from '../../../src/wire/canonical-json.ts';
import { rounds } from '../../support/random/random.ts';
import { KEY, OTHER_KEY, receiptOf, seal } from './sealing.ts';
import { APPROVER_KEY, TRUE_STORIES } from './stories.ts';

type Json = Record<string, unknown>;

const RECEIPTS = Object.values(TRUE_STORIES).map((entries) => canonicalJson(receiptOf(seal(entries))));
const receipts = fc.constantFrom(...RECEIPTS);
const where = fc.double({ min: 0, max: 1, maxExcluded: true, noNaN: true });
const at = (share: number, length: number) => Math.floor(share * length);
const RUNS = { numRuns: rounds(150, 400) };

/** Whether a file's text is one valid receipt of the test's key; both verification methods must agree. */
async function holds(text: string): Promise<boolean> {
  const given = { keys: [KEY.publicKeyHex] };
  const all = [...readValues(text)];
  const reports = all.map((read) => ('value' in read ? verifyReceipt(read.value, given) : undefined));
  const aside = await Array.fromAsync(verifyReceipts(all, given));
  assert.deepEqual(
    aside.map((each) => ('report' in each ? each.report : undefined)),
    reports,
  );
  const [report, ...more] = reports;
  return report !== undefined && more.length === 0 && report.broken === undefined;
}

/** The text as the receipt's value, or `undefined` when it is no receipt. */
function canonicalOf(text: string): string | undefined {
  try {
    return canonicalJson(JSON.parse(text));
  } catch {
    return undefined;
  }
}

test('any changed, added or removed byte is found, unless the receipt is still the same value', async () => {
  const change = fc.constantFrom('change', 'add', 'leave out');
  await fc.assert(
    fc.asyncProperty(receipts, where, fc.integer({ min: 0, max: 255 }), change, async (receipt, share, byte, how) => {
      const bytes = [...Buffer.from(receipt)];
      bytes.splice(at(share, bytes.length), how === 'add' ? 0 : 1, ...(how === 'leave out' ? [] : [byte]));
      const text = Buffer.from(bytes).toString();
      if (await holds(text)) assert.equal(canonicalOf(text), receipt);
    }),
    RUNS,
  );
});

/** Every position in a value: its containing object or list, and its name there. */
function placesIn(value: unknown, found: { around: Json; name: string }[] = []): { around: Json; name: string }[] {
  if (typeof value !== 'object' || value === null) return found;
  for (const [name, member] of Object.entries(value)) {
    found.push({ around: value as Json, name });
    placesIn(member, found);
  }
  return found;
}

test('any member with another value, another name, or removed is found', async () => {
  await fc.assert(
    fc.asyncProperty(
      receipts,
      where,
      fc.jsonValue(),
      fc.constantFrom('set', 'rename', 'take'),
      async (text, share, value, how) => {
        const receipt = JSON.parse(text) as { envelopes: Json[] };
        const { envelopes } = receipt;
        const all: unknown = envelopes;
        const places = placesIn(receipt);
        const { around, name } = places[at(share, places.length)]!;
        const before = around[name];
        // A chain without its last envelope is a chain; the next test is about it.
        fc.pre(how !== 'take' || around !== all || Number(name) < envelopes.length - 1);
        if (Array.isArray(around)) around.splice(Number(name), 1, ...(how === 'take' ? [] : [value]));
        else {
          if (how !== 'set') delete around[name];
          if (how !== 'take') around[how === 'set' ? name : `${name}_`] = how === 'set' ? value : before;
        }
        const changed = canonicalJson(receipt);
        assert.equal(await holds(changed), changed === text);
      },
    ),
    RUNS,
  );
});

test('removed, exchanged, repeated or inserted envelopes are found; a chain that only ends earlier is valid and has no end', async () => {
  await fc.assert(
    fc.asyncProperty(
      receipts,
      where,
      where,
      fc.constantFrom('out', 'exchange', 'repeat', 'in'),
      async (text, one, other, how) => {
        const receipt = JSON.parse(text) as { envelopes: Json[] };
        const { envelopes } = receipt;
        const [from, to] = [at(one, envelopes.length), at(other, envelopes.length)];
        const wasLast = from === envelopes.length - 1;
        if (how === 'out') envelopes.splice(from, 1);
        if (how === 'exchange') [envelopes[from], envelopes[to]] = [envelopes[to]!, envelopes[from]!];
        if (how === 'repeat') envelopes.splice(to, 0, envelopes[from]!);
        const foreign = (JSON.parse(RECEIPTS[at(other, RECEIPTS.length)]!) as typeof receipt).envelopes;
        if (how === 'in') envelopes.splice(from, 0, foreign[at(one, foreign.length)]!);
        const isPrefix = (how === 'out' && wasLast && envelopes.length > 0) || (how === 'exchange' && from === to);
        assert.equal(await holds(canonicalJson(receipt)), isPrefix);
      },
    ),
    RUNS,
  );
});

test('a signature by another key is found, even with consistent other members', () => {
  const stories = fc.constantFrom(...Object.values(TRUE_STORIES));
  // The other key signs under the name of this one.
  const otherKey = { ...OTHER_KEY, keyId: KEY.keyId };
  fc.assert(
    fc.property(stories, where, (entries, share) => {
      const own = seal(entries);
      const from = at(share, own.length);
      const head = { seq: from, hash: own[from]!.prev_hash };
      const forged = nextEnvelope({ head, entry: entries[from]!, key: otherKey }).envelope;
      const { broken } = verifyReceipt(receiptOf(own.with(from, forged)));
      assert.deepEqual([broken?.seq, broken?.property], [from + 1, 'signature']);
      assert.equal(verifyReceipt(receiptOf(seal(entries, otherKey))).broken?.property, 'signature');
      assert.equal(verifyReceipt(receiptOf(seal(entries, OTHER_KEY), OTHER_KEY)).broken, undefined);
      assert.equal(
        verifyReceipt(receiptOf(seal(entries, OTHER_KEY), OTHER_KEY), { keys: [KEY.keyId] }).broken?.property,
        'key',
      );
    }),
    { numRuns: 60 },
  );
});

test("with the executor's key but without the approver's, no approval can be changed", () => {
  const entries = TRUE_STORIES['approved-with-words']!;
  const from = entries.findIndex(({ kind }) => kind === 'gate.answered');
  const { body } = entries[from]! as { body: Json };
  const names = [
    'approved',
    'answer',
    'call_sha256',
    'displayed_sha256',
    'expires_at',
    'approver',
    'signature',
    'node_id',
  ];
  const hex = (text: string, at: number) => text.slice(0, at) + (text[at] === '0' ? '1' : '0') + text.slice(at + 1);
  const other = (value: unknown, share: number, taken: boolean): unknown => {
    if (taken) return undefined;
    if (typeof value === 'boolean') return !value;
    return hex(String(value), at(share, String(value).length));
  };
  const changes = fc.array(fc.tuple(fc.constantFrom(...names), where, fc.boolean()), { minLength: 1, maxLength: 3 });
  const verdict = (changed: Json) => {
    const story = entries.with(from, { kind: 'gate.answered', body: changed } as never);
    return verifyReceipt(receiptOf(seal(story)), { keys: [KEY.publicKeyHex], approvers: [APPROVER_KEY] }).broken;
  };
  assert.equal(verdict(body), undefined);
  fc.assert(
    fc.property(changes, (all) => {
      const changed = { ...body };
      for (const [name, share, taken] of all) changed[name] = other(body[name], share, taken);
      const broken = verdict(changed);
      assert.equal(broken?.seq, from + 1);
      assert.ok(['malformed', 'story'].includes(broken.property), broken.property);
    }),
    RUNS,
  );
  for (const name of names)
    for (const taken of [true, false]) assert.ok(verdict({ ...body, [name]: other(body[name], 0, taken) }));
});

test('the verifier gives a verdict for any input', () => {
  fc.assert(
    fc.property(fc.oneof(fc.string(), fc.json(), fc.string({ unit: fc.constantFrom(...'{}[]",:\\0e-u ') })), (text) => {
      for (const read of readValues(text)) if ('value' in read) assert.ok(verifyReceipt(read.value).broken);
    }),
    { numRuns: 1000 },
  );
});

test('of a long chain, the first invalid envelope is named, however many later ones are checked ahead of it', async () => {
  const story = TRUE_STORIES['not-at-its-end']!;
  const tried = story.findIndex(({ kind }) => kind === 'call.tried');
  const entries = story.toSpliced(tried, 1, ...Array.from({ length: 600 }, () => story[tried]!));
  const envelopes = seal(entries);
  for (const seqs of [[603, 1], [255, 256], [257, 600], []]) {
    const changed = envelopes.map((envelope) =>
      seqs.includes(envelope.seq) ? { ...envelope, signature: '0'.repeat(128) } : envelope,
    );
    const value = receiptOf(changed);
    const [aside] = await Array.fromAsync(verifyReceipts([{ value, line: 1 }]));
    assert.ok(aside && 'report' in aside);
    assert.deepEqual(aside.report, verifyReceipt(value));
    assert.equal(aside.report.broken?.seq, seqs.length === 0 ? undefined : Math.min(...seqs));
  }
});
