/** Reads a chain from its rows and checks that it is unchanged. Pure. */
import { canonicalJson } from '../../wire/canonical-json.ts';
import { NO_HASH, type ReceiptEnvelope } from '../../wire/intent-receipt.ts';
import type { ReceiptEntry } from '../receipt/bodies.ts';
import type { ChainHead } from '../receipt/chain.ts';
import { apply, begin, type ChainState, EMPTY_STATE, outcomeOf } from '../receipt/chain-state.ts';
import { verifyChain } from '../receipt/verify.ts';

export type EnvelopeRow = { readonly seq: number; readonly text: string };

export type ChainReading = {
  /** The unchanged envelopes. */
  readonly envelopes: readonly ReceiptEnvelope[];
  readonly head: ChainHead;
  /** The state after them; `undefined` when even the first one is invalid. */
  readonly state: ChainState | undefined;
  /** The defect after them. */
  readonly broken: string | undefined;
  /** A row that no longer counts records the start of an escalate-class call, or cannot be read. */
  readonly mayHaveStarted: boolean;
};

function parse(text: string): unknown {
  try {
    const value: unknown = JSON.parse(text);
    // JSON.parse merges duplicate members, but the hash covers the text.
    return canonicalJson(value) === text ? value : undefined;
  } catch {
    return undefined;
  }
}

function foldEnvelopes(envelopes: readonly ReceiptEnvelope[], lostState: ChainState): ChainState | undefined {
  const entries = envelopes as readonly unknown[] as readonly ReceiptEntry[];
  const [first, ...others] = entries;
  if (first?.kind === 'intent.accepted') return others.reduce(apply, begin(first.body));
  // The chain was ended because even its first envelope was invalid.
  return first?.kind === 'journal.broken' ? entries.reduce(apply, lostState) : undefined;
}

function mayBeStart(value: unknown): boolean {
  if (value === undefined) return true;
  const { kind, body } = value as { kind?: unknown; body?: { surface?: unknown } };
  return kind === 'call.started' && body?.surface !== 'natural';
}

/**
 * Whether the first envelope belongs to this intent and user: chains can be swapped, and the user of a row can be
 * changed.
 */
function belongsTo(first: unknown, { intentId, user }: { readonly intentId: string; readonly user: string }): boolean {
  const { kind, body } = (first ?? {}) as {
    kind?: unknown;
    body?: { intent_id?: unknown; principal?: { user?: unknown } };
  };
  return kind !== 'intent.accepted' || (body?.intent_id === intentId && body.principal?.user === user);
}

/**
 * @param chain the intent, the signing key, and the facts in the intent's row: the last envelope, and whether an
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
      return `envelope ${report.broken.seq} is invalid (${report.broken.property}): ${report.broken.message}`;
    if (isMissing) return `${chain.head.seq - rows.length} envelopes are missing at the end of the chain`;
    if (rows.length > chain.head.seq) return 'there are more envelopes than the executor has recorded';
    if (head.hash !== chain.head.hash) return 'the last envelope is not the one that the executor recorded';
    // The chain was cut and its new end written into the row. Continuing would make the call again.
    const isStartGone = chain.escalateStarted && state && !state.escalateStarted && !state.broken;
    return isStartGone ? 'the envelope that records the start of a call is missing' : undefined;
  })();
  return {
    envelopes,
    head,
    state,
    broken,
    mayHaveStarted: broken !== undefined && (isMissing || values.slice(head.seq).some(mayBeStart)),
  };
}

/** The state of an intent without a valid envelope, from its row. */
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

/** The nodes with a started call and no recorded outcome. */
export function nodesInDoubt(state: ChainState): string[] {
  return [...state.nodes].flatMap(([nodeId, record]) => (outcomeOf(record) === 'unknown' ? [nodeId] : []));
}

/**
 * @param state the state after the valid envelopes
 * @param startedByRow whether the intent's row records the start of an escalate-class call
 */
export function breakEntries(
  { head, broken, mayHaveStarted }: ChainReading,
  state: ChainState,
  { startedByRow, at }: { startedByRow: boolean; at: string },
): readonly ReceiptEntry[] {
  const reason = broken!;
  const changed: ReceiptEntry = { kind: 'journal.broken', body: { at, good_seq: head.seq, reason } };
  const summary = `the journal of this intent was tampered with: ${reason}. Envelopes after number ${head.seq} do not count`;
  if (!state.escalateStarted && !startedByRow && !mayHaveStarted) {
    const failed = `${summary}. No escalate-class call had been started`;
    return [changed, { kind: 'intent.failed', body: { at, code: 'journal_broken', reason: failed } }];
  }
  const nodes = nodesInDoubt(state);
  const unknown = `${summary}. An escalate-class call had been started or may have been: check its tool's own records. The rows that do not count are in the table set_aside of journal.db`;
  return [changed, { kind: 'intent.unknown', body: { at, reason: unknown, nodes } }];
}
