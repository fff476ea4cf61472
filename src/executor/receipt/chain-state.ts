/**
 * The state of a chain, folded from its envelopes. The journal works with it; the verifier checks each envelope against
 * it (invariants.ts) before adding it. Pure.
 */
import { DENIAL_CODES, type IntentStatus } from '../../wire/executor.ts';
import type { Intent } from '../../wire/intent.ts';
import type { ReceiptKind } from '../../wire/intent-receipt.ts';
import type { BoundCall, CallStatus, ReceiptBodies, ReceiptEntry } from './bodies.ts';

export type Gate = {
  readonly asked: ReceiptBodies['gate.asked'];
  /** The tool definition for which the question was asked. */
  readonly definitionSha256: string | undefined;
  /** How often it was asked, including this question. */
  readonly times: number;
  readonly answered?: ReceiptBodies['gate.answered'];
  readonly expired?: true;
  /** An escalate-class call used this consent: one consent, one call. */
  readonly used?: true;
};

/** The recorded facts about one node. */
export type NodeRecord = {
  readonly decided?: ReceiptBodies['call.decided'];
  /** The policy has judged the call since consent was last used up. */
  readonly isJudged?: boolean;
  /** From the first decision or the last start. */
  readonly surface?: 'natural' | 'escalate';
  /** The call of the last decision or start. */
  readonly call?: BoundCall;
  /** It was started as `escalate` once. This stays, even if the tool is declared differently later. */
  readonly escalated?: true;
  readonly tried?: ReceiptBodies['call.tried'];
  readonly gate?: Gate;
  readonly started?: ReceiptBodies['call.started'];
  readonly finished?: ReceiptBodies['call.finished'];
  readonly reconciled?: ReceiptBodies['call.reconciled'];
  readonly readBack?: ReceiptBodies['call.read_back'];
  readonly waitUntil?: string;
  readonly waited?: true;
};

type End = 'intent.completed' | 'intent.failed' | 'intent.cancelled' | 'intent.unknown';
export type Ending = { [Kind in End]: { readonly kind: Kind; readonly body: ReceiptBodies[Kind] } }[End];

export type AnyChainState = {
  /** `undefined` when a chain was ended because even its first envelope was invalid. */
  readonly accepted?: ReceiptBodies['intent.accepted'];
  readonly compiled?: ReceiptBodies['intent.compiled'];
  readonly clarify?: ReceiptBodies['intent.clarify'];
  /** The conversation that is woken when the intent ends. */
  readonly parkedIn?: string;
  /** In the order of their first envelope. */
  readonly nodes: ReadonlyMap<string, NodeRecord>;
  /** Whether an escalate-class call has ever started; from then on the intent cannot be cancelled. */
  readonly escalateStarted: boolean;
  /** Number of refused answers. */
  readonly refusals: number;
  readonly broken?: ReceiptBodies['journal.broken'];
  /** The journal was found tampered with, and the resulting end is not recorded yet. */
  readonly mustEnd?: boolean;
  /** A call was reconciled since the last end. */
  readonly reconciledSinceEnd?: boolean;
  /** The last one counts: an unknown outcome can be reconciled later. */
  readonly ending?: Ending;
  readonly lastKind?: ReceiptKind;
};

/** The state of an intent that was accepted. */
export type ChainState = AnyChainState & { readonly accepted: ReceiptBodies['intent.accepted'] };

export const EMPTY_STATE: AnyChainState = { nodes: new Map(), escalateStarted: false, refusals: 0 };

const STATUS_OF_END: { readonly [Kind in End]: IntentStatus } = {
  'intent.completed': 'completed',
  'intent.failed': 'failed',
  'intent.cancelled': 'cancelled',
  'intent.unknown': 'unknown',
};

export const NO_RECORD: NodeRecord = {};

export function recordOf(state: AnyChainState, nodeId: string): NodeRecord {
  return state.nodes.get(nodeId) ?? NO_RECORD;
}

function decide(record: NodeRecord, decided: ReceiptBodies['call.decided']): NodeRecord {
  return { ...record, decided, isJudged: true, surface: record.surface ?? decided.surface, call: decided.call };
}

/** A repeated call is open again: only the outcome of the last start counts. */
function start(
  { finished: _finished, reconciled: _reconciled, ...record }: NodeRecord,
  started: ReceiptBodies['call.started'],
): NodeRecord {
  const { surface, call } = started;
  if (surface === 'natural') return { ...record, started, surface, call };
  const { gate } = record;
  return {
    ...record,
    started,
    surface,
    call,
    escalated: true,
    isJudged: false,
    ...(gate && { gate: { ...gate, used: true } }),
  };
}

function ask(record: NodeRecord, asked: ReceiptBodies['gate.asked']): NodeRecord {
  const gate: Gate = {
    asked,
    definitionSha256: record.decided?.call.definition_sha256,
    times: (record.gate?.times ?? 0) + 1,
  };
  return { ...record, gate };
}

/** The record of a node after an envelope; `undefined` when the envelope has no node. */
function nodeChange(record: NodeRecord, { kind, body }: ReceiptEntry): NodeRecord | undefined {
  switch (kind) {
    case 'call.decided':
      return decide(record, body);
    case 'call.tried':
      return { ...record, tried: body };
    case 'gate.asked':
      return ask(record, body);
    case 'gate.answered':
      return record.gate ? { ...record, gate: { ...record.gate, answered: body } } : record;
    case 'gate.expired':
      return record.gate ? { ...record, gate: { ...record.gate, expired: true } } : record;
    case 'call.started':
      return start(record, body);
    case 'call.finished':
      return { ...record, finished: body };
    case 'call.reconciled':
      return { ...record, reconciled: body };
    case 'call.read_back':
      return { ...record, readBack: body };
    case 'wait.started':
      return { ...record, waitUntil: body.until };
    case 'wait.finished':
      return { ...record, waited: true };
    default:
      return undefined;
  }
}

function nodesAfter(nodes: AnyChainState['nodes'], entry: ReceiptEntry): AnyChainState['nodes'] {
  if (!('node_id' in entry.body)) return nodes;
  const id = entry.body.node_id;
  const changed = nodeChange(nodes.get(id) ?? NO_RECORD, entry);
  return changed ? new Map(nodes).set(id, changed) : nodes;
}

/** The changes of an envelope to the state besides its node. */
function changeOf(state: AnyChainState, { kind, body }: ReceiptEntry): Partial<AnyChainState> {
  switch (kind) {
    case 'intent.accepted':
      return { accepted: body };
    case 'intent.compiled':
      return { compiled: body };
    case 'intent.clarify':
      return { clarify: body };
    case 'intent.parked':
      return { parkedIn: body.conversation_id };
    case 'gate.refused':
      return { refusals: state.refusals + 1 };
    case 'call.started':
      return body.surface === 'escalate' ? { escalateStarted: true } : {};
    case 'call.reconciled':
      return { reconciledSinceEnd: true };
    case 'journal.broken':
      return { broken: body, mustEnd: true };
    case 'intent.completed':
    case 'intent.failed':
    case 'intent.cancelled':
    case 'intent.unknown':
      return { ending: { kind, body } as Ending, mustEnd: false, reconciledSinceEnd: false };
    default:
      return {};
  }
}

/** The state after one more envelope. */
export function apply<State extends AnyChainState>(state: State, entry: ReceiptEntry): State {
  const nodes = nodesAfter(state.nodes, entry);
  return { ...state, ...changeOf(state, entry), nodes, lastKind: entry.kind };
}

/** The state after the first envelope. */
export function begin(accepted: ReceiptBodies['intent.accepted']): ChainState {
  return { ...EMPTY_STATE, accepted, lastKind: 'intent.accepted' };
}

/** Whether an envelope of this kind ends an intent. */
export function isEnd(kind: ReceiptKind): kind is End {
  return Object.hasOwn(STATUS_OF_END, kind);
}

/** Whether the intent is final: it has ended, or the executor has asked for clarification. */
export function isFinal({ ending, clarify }: AnyChainState): boolean {
  return ending !== undefined || clarify !== undefined;
}

/** The nodes with a pending question, in the order in which the questions were asked. */
export function openGates(state: AnyChainState): readonly { readonly nodeId: string; readonly gate: Gate }[] {
  if (isFinal(state)) return [];
  return [...state.nodes]
    .flatMap(([nodeId, { gate }]) => (gate && !gate.answered && !gate.expired ? [{ nodeId, gate }] : []))
    .sort((one, other) => (one.gate.asked.at < other.gate.asked.at ? -1 : 1));
}

export function statusOf(state: AnyChainState): IntentStatus {
  const { ending } = state;
  // In a receipt a denial is a failure with its own code, so old receipts keep their meaning.
  if (ending?.kind === 'intent.failed' && DENIAL_CODES.includes(ending.body.code)) return 'denied';
  if (ending) return STATUS_OF_END[ending.kind];
  if (!state.compiled) return 'drafting';
  if (openGates(state).length > 0) return 'awaiting_approval';
  return state.nodes.size === 0 ? 'planned' : 'executing';
}

/** The compiled intent; `undefined` before the compilation. */
export function intentOf(state: AnyChainState): Intent | undefined {
  return state.compiled?.intent;
}

/** The recorded outcome of a call; `undefined` before it is started. */
export function outcomeOf({ started, finished, reconciled }: NodeRecord): CallStatus | undefined {
  if (!started) return undefined;
  return reconciled?.status ?? finished?.status ?? 'unknown';
}

/** As {@link outcomeOf}, but `started` while no outcome is recorded. */
export function callStateOf({ started, finished, reconciled }: NodeRecord): CallStatus | 'started' | undefined {
  return reconciled?.status ?? finished?.status ?? (started ? 'started' : undefined);
}

export function callsOf({ nodes }: AnyChainState): readonly { readonly nodeId: string; readonly record: NodeRecord }[] {
  return [...nodes].flatMap(([nodeId, record]) => (record.waitUntil === undefined ? [{ nodeId, record }] : []));
}

/** The end of the intent; `undefined` when there is none, or a tampered journal has revoked it. */
export function endOf({ ending, mustEnd }: AnyChainState): Ending | undefined {
  return mustEnd ? undefined : ending;
}

/**
 * The key of the approver of a call's last start; `undefined` when the policy allowed it or the answer names no key.
 */
export function approverOf({ decided, gate }: NodeRecord): string | undefined {
  return decided?.effect === 'ask' ? gate?.answered?.approver : undefined;
}
