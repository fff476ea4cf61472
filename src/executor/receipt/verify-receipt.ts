/**
 * Verifies a whole receipt from a file or an executor's answer: its chain, the hashes inside the envelopes, and the
 * consistency of their content (test/contract/receipt-vectors/README.md). Pure, apart from the threads that may check signatures.
 */
import { z } from 'zod';
import { FINGERPRINT_LENGTH } from '../../wire/did.ts';
import { intentReceiptSchema, RECEIPT_FORMAT, RECEIPT_KINDS, type ReceiptKind } from '../../wire/intent-receipt.ts';
import { isObject } from '../../wire/json.ts';
import { checkInput, showValue } from '../../wire/validate.ts';
import { BODY_SHAPES, type BoundCall, type CompileRead, type ReceiptEntry } from './bodies.ts';
import { EMPTY_CHAIN, keyIdOf } from './chain.ts';
import { type AnyChainState, EMPTY_STATE } from './chain-state.ts';
import { callSha256, digestOf, sha256Hex } from './envelope.ts';
import { CheckedChain } from './invariants.ts';
import { isReceiptResponse, type ReadValue } from './receipt-text.ts';
import { type BrokenLink, ChainReader, type ChainReport, type ParsedEnvelope, parseEnvelope } from './verify.ts';

export type ReceiptReport = ChainReport & {
  /** The state after the valid envelopes. */
  readonly state: AnyChainState;
  /** The receipt's claim, if it has one. */
  readonly intentId: string | undefined;
  readonly publicKey: string | undefined;
  readonly keyId: string | undefined;
  readonly envelopes: number;
};

/** Wraps the body schemas, so that error paths begin at the envelope. */
const BODIES = Object.fromEntries(
  RECEIPT_KINDS.map((kind) => [kind, z.object({ body: BODY_SHAPES[kind] })]),
) as unknown as { readonly [Kind in ReceiptKind]: z.ZodType };

/** The defect of an envelope whose hash and signature are valid. */
function wrongContent(entry: ReceiptEntry, seq: number, checked: CheckedChain): BrokenLink | undefined {
  const shaped = checkInput(BODIES[entry.kind], entry);
  if ('problems' in shaped) return { seq, property: 'malformed', message: shaped.problems[0]!.sentence };
  const wrong = wrongDigest(entry);
  if (wrong) {
    const { field, expected, found } = wrong;
    const message = `${field} is not the hash of the value that it belongs to`;
    return { seq, property: 'digest', message, expected, found };
  }
  const violation = checked.add(entry, seq);
  return violation && { seq, property: 'story', ...violation };
}

/**
 * The receipt without the content of its envelopes. Envelopes are checked one by one, so that a defect has a number.
 */
const frameSchema = intentReceiptSchema.extend({ envelopes: z.array(z.unknown()) });

/** Whether a key is the expected one: given as its 64 hex digits, its id, or the 16 digits that a DID contains. */
function isKey(publicKey: string, expected: string): boolean {
  if (expected.length === FINGERPRINT_LENGTH) return publicKey.startsWith(expected);
  return publicKey === expected || keyIdOf(publicKey) === expected;
}

function invalidFrame(message: string): ReceiptReport {
  const broken: BrokenLink = { seq: 0, property: 'malformed', message };
  const empty = { head: EMPTY_CHAIN, state: EMPTY_STATE };
  return { ...empty, broken, intentId: undefined, publicKey: undefined, keyId: undefined, envelopes: 0 };
}

/** Why a value is not a receipt at all. */
function formatProblem(value: unknown): string | undefined {
  if (!isObject(value)) return `a receipt is an object (got ${showValue(value)})`;
  if (value.ok === false) return `this is the answer to a request that failed: ${showValue(value.error)}`;
  if (value.format === RECEIPT_FORMAT) return undefined;
  return `its format must be ${JSON.stringify(RECEIPT_FORMAT)} (got ${showValue(value.format)})`;
}

/** The reader's expectations. */
type Expectations = {
  /** Accepted keys, each in a form of {@link isKey}. Without them the key is the receipt's own claim. */
  keys?: readonly string[] | undefined;
  /**
   * Public keys, one of which must have approved each started escalate-class call. Without them the executor's roster
   * decides.
   */
  approvers?: readonly string[] | undefined;
};

/** Verifies a receipt with a valid frame, envelope by envelope. */
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
   * @param isSigned the chain's result for its signature
   * @returns whether it is valid, so that the next one can be checked
   */
  add(loose: ParsedEnvelope, isSigned: boolean): boolean {
    const entry = loose.envelope as unknown as ReceiptEntry;
    this.#broken =
      this.chain.add(loose, isSigned) ??
      wrongContent(entry, this.chain.head.seq, this.#checked) ??
      this.#notApproved(entry, this.chain.head.seq);
    return this.#broken === undefined;
  }

  /** The defect of a valid start that none of the reader's approvers approved. */
  #notApproved({ kind, body }: ReceiptEntry, seq: number): BrokenLink | undefined {
    if (!this.#approvers || kind !== 'call.started' || body.surface !== 'escalate') return undefined;
    const approver = this.#checked.startApprover(body.node_id);
    if (approver !== undefined && this.#approvers.includes(approver)) return undefined;
    const message = `"${body.node_id}" was started without the approval of an expected approver`;
    const found = approver ?? 'no approver’s key';
    return { seq, property: 'approver', message, expected: this.#approvers.join(' or '), found };
  }

  report(): ReceiptReport {
    return { head: this.chain.head, state: this.#checked.state, broken: this.#broken, ...this.#frame };
  }
}

function frameOf({ intent_id: intentId, public_key: publicKey, envelopes }: z.output<typeof frameSchema>) {
  return { intentId, publicKey, keyId: keyIdOf(publicKey), envelopes: envelopes.length };
}

/** @returns the defect of the frame, or a reader of the envelopes */
function openReceipt(value: unknown, given: Expectations): ReceiptReport | ReceiptReader {
  const { keys } = given;
  const inner = isReceiptResponse(value) ? value.data : value;
  const problem = formatProblem(inner);
  if (problem !== undefined) return invalidFrame(problem);
  const checked = checkInput(frameSchema, inner);
  if ('problems' in checked) return invalidFrame(checked.problems[0]!.sentence);
  const { public_key: publicKey, envelopes } = checked.value;
  if (envelopes.length === 0) return { ...invalidFrame('it has no envelopes'), ...frameOf(checked.value) };
  if (keys && !keys.some((expected) => isKey(publicKey, expected))) {
    const message = 'another key than the expected one signed the receipt';
    const broken: BrokenLink = { seq: 0, property: 'key', message, expected: keys.join(' or '), found: publicKey };
    return { ...invalidFrame(''), broken, ...frameOf(checked.value) };
  }
  return new ReceiptReader(checked.value, given);
}

/**
 * Verifies a receipt up to its first defect.
 *
 * @param value parsed strictly ({@link file://./receipt-text.ts}): duplicate members and rounded numbers cannot be
 *   detected here
 * @param given the reader's expectations
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

/** Keeps several cores busy while this thread parses; some hundred kilobytes. */
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

/** A single receipt of a dozen envelopes does not keep several cores busy. */
const RECEIPTS_AHEAD = 8;

/** One value of a text: a checked receipt, or unreadable text. */
type CheckedValue =
  | { readonly line: number; readonly report: ReceiptReport }
  | Extract<ReadValue, { unreadable: unknown }>;

/**
 * Verifies the receipts of a text like {@link verifyReceipt}, but checks signatures on other threads ahead of the
 * parser. The results are the same, in the order of the text.
 */
export function verifyReceipts(read: Iterable<ReadValue>, given: Expectations = {}): AsyncIterable<CheckedValue> {
  return mapInOrder(read, RECEIPTS_AHEAD, async (each) =>
    'unreadable' in each ? each : { line: each.line, report: await verifyInThread(each.value, given) },
  );
}

/** A hash that does not match its value. */
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

/** @returns the first wrong digest */
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
 * Maps items concurrently and yields the results in the order of the items.
 *
 * @param width number of items in progress at a time
 * @throws the error of an item at its turn; all started work has ended by then
 */
export async function* mapInOrder<Item, Done>(
  items: Iterable<Item>,
  width: number,
  start: (item: Item) => Promise<Done>,
): AsyncGenerator<Done, void, void> {
  const started: Promise<Done>[] = [];
  try {
    for (const item of items) {
      const work = start(item);
      // The error is thrown at the item's turn.
      work.catch(() => {});
      started.push(work);
      if (started.length >= width) yield await started.shift()!;
    }
    while (started.length > 0) yield await started.shift()!;
  } finally {
    await Promise.allSettled(started);
  }
}
