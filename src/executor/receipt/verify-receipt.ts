/**
 * Checking a whole receipt, as a file or an executor's answer holds it: its chain, the hashes inside the envelopes, and
 * whether what they tell can have happened (docs/receipts.md). Pure, but for the threads that signatures may be checked
 * on.
 */
import { z } from 'zod';
import { FINGERPRINT_LENGTH } from '../../wire/did.ts';
import { intentReceiptSchema, RECEIPT_FORMAT, RECEIPT_KINDS, type ReceiptKind } from '../../wire/intent-receipt.ts';
import { checkInput, showValue } from '../../wire/validate.ts';
import type { BoundCall, CompileRead, ReceiptEntry } from './bodies.ts';
import { BODY_SHAPES } from './body-shapes.ts';
import { EMPTY_CHAIN } from './chain.ts';
import { type AnyChainState, EMPTY_STATE } from './chain-state.ts';
import { callSha256, digestOf, sha256Hex } from './envelope.ts';
import { CheckedChain } from './invariants.ts';
import { isReceiptResponse, type ReadValue } from './receipt-text.ts';
import { keyIdOf } from './signing-key.ts';
import { type BrokenLink, ChainReader, type ChainReport, type ParsedEnvelope, parseEnvelope } from './verify.ts';

export type ReceiptReport = ChainReport & {
  /** What the envelopes come to that hold. */
  readonly state: AnyChainState;
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
function wrongContent(entry: ReceiptEntry, seq: number, checked: CheckedChain): BrokenLink | undefined {
  const shaped = checkInput(BODIES[entry.kind], entry);
  if ('problems' in shaped) return { seq, property: 'malformed', message: shaped.problems[0]!.sentence };
  const wrong = wrongDigest(entry);
  if (wrong) {
    const { field, expected, found } = wrong;
    const message = `${field} is not the hash of what stands beside it`;
    return { seq, property: 'digest', message, expected, found };
  }
  const violation = checked.add(entry, seq);
  return violation && { seq, property: 'story', ...violation };
}

/** The receipt around its envelopes; these are looked at one by one, so that what is wrong has a number. */
const frameSchema = intentReceiptSchema.extend({ envelopes: z.array(z.unknown()) });

const isObject = (value: unknown): value is Record<string, unknown> =>
  typeof value === 'object' && value !== null && !Array.isArray(value);

/** Whether a key is the expected one: its 64 hex digits, its id, or the 16 digits of it that stand in a DID. */
function isKey(publicKey: string, expected: string): boolean {
  if (expected.length === FINGERPRINT_LENGTH) return publicKey.startsWith(expected);
  return publicKey === expected || keyIdOf(publicKey) === expected;
}

function invalidFrame(message: string): ReceiptReport {
  const broken: BrokenLink = { seq: 0, property: 'malformed', message };
  const nothing = { head: EMPTY_CHAIN, state: EMPTY_STATE };
  return { ...nothing, broken, intentId: undefined, publicKey: undefined, keyId: undefined, envelopes: 0 };
}

/** What is said of a value that is no receipt at all. */
function formatProblem(value: unknown): string | undefined {
  if (!isObject(value)) return `a receipt is an object (got ${showValue(value)})`;
  if (value.ok === false) return `this is the answer to a request that failed: ${showValue(value.error)}`;
  if (value.format === RECEIPT_FORMAT) return undefined;
  return `its format must be ${JSON.stringify(RECEIPT_FORMAT)} (got ${showValue(value.format)})`;
}

/** What the reader expects. */
type Expectations = {
  /** What the key may be, each as {@link isKey} takes it; without them the key is the receipt's own claim. */
  keys?: readonly string[] | undefined;
  /**
   * Public keys, of which one must have approved each escalate-class call that was started; without them whoever the
   * executor says.
   */
  approvers?: readonly string[] | undefined;
};

/** A receipt whose frame holds, read envelope by envelope. */
class ReceiptReader {
  readonly envelopes: readonly unknown[];
  readonly chain: ChainReader;
  readonly #checked: CheckedChain;
  readonly #frame: Pick<ReceiptReport, 'intentId' | 'publicKey' | 'keyId' | 'envelopes'>;
  readonly #approvers: Expectations['approvers'];
  #broken: BrokenLink | undefined;

  constructor(frame: z.output<typeof frameSchema>, { approvers }: Expectations) {
    this.#approvers = approvers;
    this.envelopes = frame.envelopes;
    this.chain = new ChainReader(frame.public_key);
    this.#checked = new CheckedChain(frame.intent_id);
    this.#frame = frameOf(frame);
  }

  /**
   * @param isSigned what the chain says of its signature
   * @returns whether it holds: then the next one can be read
   */
  add(loose: ParsedEnvelope, isSigned: boolean): boolean {
    const entry = loose.envelope as unknown as ReceiptEntry;
    this.#broken =
      this.chain.add(loose, isSigned) ??
      wrongContent(entry, this.chain.head.seq, this.#checked) ??
      this.#notApproved(entry, this.chain.head.seq);
    return this.#broken === undefined;
  }

  /** What is wrong with a start that holds, but was not approved by whom the reader has named. */
  #notApproved({ kind, body }: ReceiptEntry, seq: number): BrokenLink | undefined {
    if (!this.#approvers || kind !== 'call.started' || body.surface !== 'escalate') return undefined;
    const startedBy = this.#checked.startApprover(body.node_id);
    if (startedBy !== undefined && this.#approvers.includes(startedBy)) return undefined;
    const message = `"${body.node_id}" was started without the approval of whom you named`;
    const found = startedBy ?? 'no approver’s key';
    return { seq, property: 'approver', message, expected: this.#approvers.join(' or '), found };
  }

  report(): ReceiptReport {
    return { head: this.chain.head, state: this.#checked.state, broken: this.#broken, ...this.#frame };
  }
}

function frameOf({ intent_id: intentId, public_key: publicKey, envelopes }: z.output<typeof frameSchema>) {
  return { intentId, publicKey, keyId: keyIdOf(publicKey), envelopes: envelopes.length };
}

/** @returns what is wrong before any envelope is looked at, or their reader */
function openReceipt(value: unknown, given: Expectations): ReceiptReport | ReceiptReader {
  const { keys } = given;
  const inner = isReceiptResponse(value) ? value.data : value;
  const strange = formatProblem(inner);
  if (strange !== undefined) return invalidFrame(strange);
  const checked = checkInput(frameSchema, inner);
  if ('problems' in checked) return invalidFrame(checked.problems[0]!.sentence);
  const { public_key: publicKey, envelopes } = checked.value;
  if (envelopes.length === 0)
    return { ...invalidFrame('it has no envelopes: it says nothing'), ...frameOf(checked.value) };
  if (keys && !keys.some((expected) => isKey(publicKey, expected))) {
    const message = 'the receipt is by another key than the one that was expected';
    const broken: BrokenLink = { seq: 0, property: 'key', message, expected: keys.join(' or '), found: publicKey };
    return { ...invalidFrame(''), broken, ...frameOf(checked.value) };
  }
  return new ReceiptReader(checked.value, given);
}

/**
 * Checks a receipt up to the first thing that is wrong with it.
 *
 * @param value as strict JSON reading gives it ({@link file://./receipt-text.ts}): a duplicate member or a number that
 *   JavaScript
 *   rounds cannot be seen here any more
 * @param given what the reader expects
 */
export function verifyReceipt(value: unknown, given: Expectations = {}): ReceiptReport {
  const reader = openReceipt(value, given);
  if (!(reader instanceof ReceiptReader)) return reader;
  for (const envelope of reader.envelopes) {
    const loose = parseEnvelope(envelope);
    if (!reader.add(loose, reader.chain.isSigned(loose))) break;
  }
  return reader.report();
}

/** Enough for several cores to be busy while this thread reads; some hundred kilobytes. */
const SIGNATURES_AHEAD = 256;

async function verifyInThread(value: unknown, given: Expectations): Promise<ReceiptReport> {
  const reader = openReceipt(value, given);
  if (!(reader instanceof ReceiptReader)) return reader;
  const checked = mapInOrder(reader.envelopes, SIGNATURES_AHEAD, async (envelope) => {
    const loose = parseEnvelope(envelope);
    return { loose, isSigned: await reader.chain.isSignedInThread(loose) };
  });
  for await (const { loose, isSigned } of checked) if (!reader.add(loose, isSigned)) break;
  return reader.report();
}

/** Receipts of a dozen envelopes keep several cores busy only together. */
const RECEIPTS_AHEAD = 8;

/** What a text has at one place: a receipt that was checked, or no receipt. */
type CheckedValue =
  | { readonly line: number; readonly report: ReceiptReport }
  | Extract<ReadValue, { unreadable: unknown }>;

/**
 * Checks the receipts of a text as {@link verifyReceipt} does, but their signatures on other threads, ahead of the
 * reading. What comes out is the same, in the order of the text.
 */
export function verifyReceipts(read: Iterable<ReadValue>, given: Expectations = {}): AsyncIterable<CheckedValue> {
  return mapInOrder(read, RECEIPTS_AHEAD, async (each) =>
    'unreadable' in each ? each : { line: each.line, report: await verifyInThread(each.value, given) },
  );
}

/** A hash that is not the one of what stands beside it. */
type WrongDigest = { readonly field: string; readonly expected: string; readonly found: string };

function compare(field: string, expected: string, found: string): WrongDigest | undefined {
  return expected === found ? undefined : { field, expected, found };
}

function ofArgs(field: string, { args, args_sha256 }: { args: unknown; args_sha256: string }): WrongDigest | undefined {
  return compare(`${field}args_sha256`, digestOf(args), args_sha256);
}

function ofCall({ tool, args, args_sha256, call_sha256 }: BoundCall): WrongDigest | undefined {
  return (
    compare('body.call.args_sha256', digestOf(args), args_sha256) ??
    compare('body.call.call_sha256', callSha256(tool, args), call_sha256)
  );
}

function ofReads(reads: readonly CompileRead[]): WrongDigest | undefined {
  for (const [at, read] of reads.entries()) {
    const wrong = ofArgs(`body.reads.${at}.`, read);
    if (wrong) return wrong;
  }
  return undefined;
}

/** @returns the first that is wrong */
function wrongDigest({ kind, body }: ReceiptEntry): WrongDigest | undefined {
  switch (kind) {
    case 'intent.compiled':
    case 'intent.clarify':
      return ofReads(body.reads);
    case 'call.decided':
    case 'call.started':
      return ofCall(body.call);
    case 'call.tried':
      return ofArgs('body.', body);
    case 'gate.asked':
      return compare('body.displayed_sha256', sha256Hex(body.displayed), body.displayed_sha256);
    default:
      return undefined;
  }
}

/**
 * Gives what comes of items, in their order, while work on the next ones is under way.
 *
 * @param width on how many at a time
 * @throws what work on an item throws, when it is the item's turn; all that was begun has ended by then
 */
export async function* mapInOrder<Item, Done>(
  items: Iterable<Item>,
  width: number,
  begin: (item: Item) => Promise<Done>,
): AsyncGenerator<Done, void, void> {
  const begun: Promise<Done>[] = [];
  try {
    for (const item of items) {
      const work = begin(item);
      // What it throws is thrown when it is its turn.
      work.catch(() => {});
      begun.push(work);
      if (begun.length >= width) yield await begun.shift()!;
    }
    while (begun.length > 0) yield await begun.shift()!;
  } finally {
    await Promise.allSettled(begun);
  }
}
