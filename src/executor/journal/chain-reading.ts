/** Reading a chain from its rows, and finding out whether it is the one that was written. Pure. */
import { canonicalJson } from '../../wire/canonical-json.ts';
import { NO_HASH, type ReceiptEnvelope } from '../../wire/intent-receipt.ts';
import type { ReceiptEntry } from '../receipt/bodies.ts';
import type { ChainHead } from '../receipt/chain.ts';
import { apply, begin, type ChainState, EMPTY_STATE, outcomeOf } from '../receipt/chain-state.ts';
import { verifyChain } from '../receipt/verify.ts';

export type EnvelopeRow = { readonly seq: number; readonly text: string };

export type ChainReading = {
  /** The envelopes that are as they were written. */
  readonly envelopes: readonly ReceiptEnvelope[];
  readonly head: ChainHead;
  /** What they come to; `undefined` when not even the first one holds. */
  readonly state: ChainState | undefined;
  /** What is wrong after them. */
  readonly broken: string | undefined;
  /** A row that does not count any more tells of an escalate-class call, or cannot be read. */
  readonly mayHaveStarted: boolean;
};

function parse(text: string): unknown {
  try {
    const value: unknown = JSON.parse(text);
    // Two members of one name would be read as one, and a hash is over the text.
    return canonicalJson(value) === text ? value : undefined;
  } catch {
    return undefined;
  }
}

function foldEnvelopes(envelopes: readonly ReceiptEnvelope[], lost: ChainState): ChainState | undefined {
  const entries = envelopes as readonly unknown[] as readonly ReceiptEntry[];
  const [first, ...others] = entries;
  if (first?.kind === 'intent.accepted') return others.reduce(apply, begin(first.body));
  // The chain was ended when not even its first envelope held.
  return first?.kind === 'journal.broken' ? entries.reduce(apply, lost) : undefined;
}

function mayBeStart(value: unknown): boolean {
  if (value === undefined) return true;
  const { kind, body } = value as { kind?: unknown; body?: { surface?: unknown } };
  return kind === 'call.started' && body?.surface !== 'natural';
}

/**
 * Whether the first envelope is that of this intent and user: a chain can be put in another one's place, and a row be
 * given away.
 */
function belongsTo(first: unknown, { intentId, user }: { readonly intentId: string; readonly user: string }): boolean {
  const { kind, body } = (first ?? {}) as {
    kind?: unknown;
    body?: { intent_id?: unknown; principal?: { user?: unknown } };
  };
  return kind !== 'intent.accepted' || (body?.intent_id === intentId && body.principal?.user === user);
}

/**
 * @param chain whose chain it is, by which key, and what its row says of it: its last envelope, and whether an
 *   escalate-class call was started
 */
export function readChain(
  rows: readonly EnvelopeRow[],
  chain: {
    readonly publicKey: string;
    readonly intentId: string;
    readonly user: string;
    readonly head: ChainHead;
    readonly escalateStarted: boolean;
  },
): ChainReading {
  const values = rows.map(({ seq, text }, index) => (seq === index + 1 ? parse(text) : undefined));
  const report = verifyChain(belongsTo(values[0], chain) ? values : [undefined], chain);
  const { head } = report;
  const envelopes = values.slice(0, head.seq) as ReceiptEnvelope[];
  const state = foldEnvelopes(envelopes, lostIntent(chain.intentId, chain.user));
  const isMissing = rows.length < chain.head.seq;
  const broken = (() => {
    if (report.broken)
      return `envelope ${report.broken.seq} does not hold (${report.broken.property}): ${report.broken.message}`;
    if (isMissing) return `${chain.head.seq - rows.length} envelopes are missing at the end of the chain`;
    if (rows.length > chain.head.seq) return 'there are more envelopes than the executor has put down';
    if (head.hash !== chain.head.hash) return 'the last envelope is not the one that the executor put down';
    // Somebody cut the chain and wrote its new end into the row: going on would make the call again.
    const isStartGone = chain.escalateStarted && state && !state.escalateStarted && !state.broken;
    return isStartGone ? 'the envelope is missing that says that a call was started' : undefined;
  })();
  return {
    envelopes,
    head,
    state,
    broken,
    mayHaveStarted: broken !== undefined && (isMissing || values.slice(head.seq).some(mayBeStart)),
  };
}

/** All that its row can still say. */
export function lostIntent(intentId: string, user: string): ChainState {
  return {
    ...EMPTY_STATE,
    accepted: {
      at: '1970-01-01T00:00:00.000Z',
      intent_id: intentId,
      principal: { user, origin: 'person' },
      manifest_sha256: NO_HASH,
      policy_sha256: NO_HASH,
    },
  };
}

/** The nodes whose call has been started and has no recorded outcome. */
export function nodesInDoubt(state: ChainState): string[] {
  return [...state.nodes].flatMap(([nodeId, record]) => (outcomeOf(record) === 'unknown' ? [nodeId] : []));
}

/**
 * @param state what the envelopes that hold come to
 * @param startedByRow whether the intent's row says that an escalate-class call was started
 */
export function breakEntries(
  { head, broken, mayHaveStarted }: ChainReading,
  state: ChainState,
  { startedByRow, at }: { startedByRow: boolean; at: string },
): readonly ReceiptEntry[] {
  const reason = broken!;
  const changed: ReceiptEntry = { kind: 'journal.broken', body: { at, good_seq: head.seq, reason } };
  const words = `the journal of this intent was changed behind the executor's back: ${reason}. What stood after envelope ${head.seq} does not count`;
  if (!state.escalateStarted && !startedByRow && !mayHaveStarted) {
    const failed = `${words}. No call that moves or commits something had been started`;
    return [changed, { kind: 'intent.failed', body: { at, code: 'journal_broken', reason: failed } }];
  }
  const nodes = nodesInDoubt(state);
  const unknown = `${words}. A call that moves or commits something had been started or may have been: look at its tool's own records; the rows that do not count are kept in the table set_aside of journal.db`;
  return [changed, { kind: 'intent.unknown', body: { at, reason: unknown, nodes } }];
}
