/**
 * Checking a whole receipt, as a file or an executor's answer holds it: its chain, the hashes inside the envelopes, and whether what
 * they tell can have happened (docs/receipts.md). Pure.
 */
import { z } from 'zod';
import { FINGERPRINT_LENGTH } from '../../wire/did.ts';
import { intentReceiptSchema, RECEIPT_FORMAT, RECEIPT_KINDS, type ReceiptKind } from '../../wire/intent-receipt.ts';
import { checkInput, showValue } from '../../wire/validate.ts';
import type { ReceiptEntry } from './bodies.ts';
import { BODY_SHAPES } from './body-shapes.ts';
import { EMPTY_CHAIN } from './chain.ts';
import { wrongDigest } from './digests.ts';
import { isAnswer } from './receipt-text.ts';
import { keyIdOf } from './signing-key.ts';
import type { Story } from './story.ts';
import { StoryReader } from './story-reader.ts';
import { type BrokenLink, ChainReader, type ChainReport } from './verify.ts';

export type ReceiptReport = ChainReport & {
  /** What the envelopes tell that hold. */
  readonly story: Story;
  /** As far as the receipt says it. */
  readonly intentId: string | undefined;
  readonly publicKey: string | undefined;
  readonly keyId: string | undefined;
  /** How many envelopes there are. */
  readonly envelopes: number;
};

/** Around the bodies, so that complaints name the member from the envelope on. */
const BODIES = Object.fromEntries(
  RECEIPT_KINDS.map((kind) => [kind, z.object({ body: BODY_SHAPES[kind] })]),
) as unknown as { readonly [Kind in ReceiptKind]: z.ZodType };

/** What is wrong with an envelope whose hash and signature hold. */
function wrongContent(entry: ReceiptEntry, seq: number, story: StoryReader): BrokenLink | undefined {
  const checked = checkInput(BODIES[entry.kind], entry);
  if ('problems' in checked) return { seq, property: 'malformed', message: checked.problems[0]!.sentence };
  const wrong = wrongDigest(entry);
  if (wrong) {
    const { field, expected, found } = wrong;
    const message = `${field} is not the hash of what stands beside it`;
    return { seq, property: 'digest', message, expected, found };
  }
  const contradiction = story.take(entry, seq);
  return contradiction && { seq, property: 'story', ...contradiction };
}

/** The receipt around its envelopes; these are looked at one by one, so that what is wrong has a number. */
const frameSchema = intentReceiptSchema.extend({ envelopes: z.array(z.unknown()) });

const isObject = (value: unknown): value is Record<string, unknown> =>
  typeof value === 'object' && value !== null && !Array.isArray(value);

/** Whether a key is the expected one: its 64 hex digits, its id, or the 16 digits of it that stand in a DID. */
export function isKey(publicKey: string, expected: string): boolean {
  if (expected.length === FINGERPRINT_LENGTH) return publicKey.startsWith(expected);
  return publicKey === expected || keyIdOf(publicKey) === expected;
}

function unframed(message: string): ReceiptReport {
  const broken: BrokenLink = { seq: 0, property: 'malformed', message };
  const nothing = { head: EMPTY_CHAIN, story: new StoryReader('').story() };
  return { ...nothing, broken, intentId: undefined, publicKey: undefined, keyId: undefined, envelopes: 0 };
}

/** What is said of a value that is no receipt at all. */
function strangeness(value: unknown): string | undefined {
  if (!isObject(value)) return `a receipt is an object (got ${showValue(value)})`;
  if (value.ok === false) return `this is the answer to a request that failed: ${showValue(value.error)}`;
  if (value.format === RECEIPT_FORMAT) return undefined;
  return `its format must be ${JSON.stringify(RECEIPT_FORMAT)} (got ${showValue(value.format)})`;
}

/**
 * Checks a receipt up to the first thing that is wrong with it.
 *
 * @param value as strict JSON reading gives it ({@link file://./receipt-text.ts}): a duplicate member or a number that JavaScript
 *   rounds cannot be seen here any more
 * @param keys what the key may be, each as {@link isKey} takes it; without them the key is the receipt's own claim
 */
export function verifyReceipt(value: unknown, { keys }: { keys?: readonly string[] | undefined } = {}): ReceiptReport {
  const inner = isAnswer(value) ? value.data : value;
  const strange = strangeness(inner);
  if (strange !== undefined) return unframed(strange);
  const checked = checkInput(frameSchema, inner);
  if ('problems' in checked) return unframed(checked.problems[0]!.sentence);
  const { intent_id: intentId, public_key: publicKey, envelopes } = checked.value;
  const keyId = keyIdOf(publicKey);
  const frame = { intentId, publicKey, keyId, envelopes: envelopes.length };
  if (envelopes.length === 0) return { ...unframed('it has no envelopes: it says nothing'), ...frame };
  if (keys && !keys.some((expected) => isKey(publicKey, expected))) {
    const message = 'the receipt is by another key than the one that was expected';
    const broken: BrokenLink = { seq: 0, property: 'key', message, expected: keys.join(' or '), found: publicKey };
    return { ...unframed(''), broken, ...frame };
  }
  const chain = new ChainReader(publicKey);
  const story = new StoryReader(intentId);
  for (const envelope of envelopes) {
    const broken = chain.take(envelope) ?? wrongContent(envelope as ReceiptEntry, chain.head.seq, story);
    if (broken) return { head: chain.head, story: story.story(), broken, ...frame };
  }
  return { head: chain.head, story: story.story(), broken: undefined, ...frame };
}
