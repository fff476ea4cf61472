/** The state of an intent: what its envelopes come to, one after the other. Pure. */
import { DENIAL_CODES, type IntentStatus } from '../../wire/executor.ts';
import type { Intent } from '../../wire/intent.ts';
import type { ReceiptKind } from '../../wire/intent-receipt.ts';
import type { CallStatus, ReceiptBodies, ReceiptEntry } from '../receipt/bodies.ts';

export type Gate = {
  readonly asked: ReceiptBodies['gate.asked'];
  /** The definition that the call was judged by when it was asked. */
  readonly definitionSha256: string | undefined;
  /** How often it was asked, this time included. */
  readonly times: number;
  readonly answered?: ReceiptBodies['gate.answered'];
  readonly expired?: true;
};

/** What is on record of one node. */
export type NodeRecord = {
  readonly decided?: ReceiptBodies['call.decided'];
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

export type IntentFold = {
  readonly accepted: ReceiptBodies['intent.accepted'];
  readonly compiled?: ReceiptBodies['intent.compiled'];
  readonly clarify?: ReceiptBodies['intent.clarify'];
  /** The conversation that is woken when the intent is over. */
  readonly parkedIn?: string;
  readonly nodes: ReadonlyMap<string, NodeRecord>;
  /** Whether an escalate-class call has ever been started; from then on there is no way back. */
  readonly escalateStarted: boolean;
  /** Answers that did not count. */
  readonly refusals: number;
  readonly broken?: ReceiptBodies['journal.broken'];
  /** The last one counts: what was unknown can be found out later. */
  readonly ending?: Ending;
};

const STATUS_OF_END: { readonly [Kind in End]: IntentStatus } = {
  'intent.completed': 'completed',
  'intent.failed': 'failed',
  'intent.cancelled': 'cancelled',
  'intent.unknown': 'unknown',
};

export const NO_RECORD: NodeRecord = {};

export function recordOf(state: IntentFold, nodeId: string): NodeRecord {
  return state.nodes.get(nodeId) ?? NO_RECORD;
}

/** A call that is made again after a crash is open again. */
function start({ finished: _, ...record }: NodeRecord, started: ReceiptBodies['call.started']): NodeRecord {
  return { ...record, started };
}

function ask(record: NodeRecord, asked: ReceiptBodies['gate.asked']): NodeRecord {
  const gate: Gate = {
    asked,
    definitionSha256: record.decided?.call.definition_sha256,
    times: (record.gate?.times ?? 0) + 1,
  };
  return { ...record, gate };
}

/** What an envelope adds to its node; `undefined` where it is about none. */
function nodeChange(record: NodeRecord, { kind, body }: ReceiptEntry): NodeRecord | undefined {
  switch (kind) {
    case 'call.decided':
      return { ...record, decided: body };
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

function withNode(state: IntentFold, entry: ReceiptEntry): IntentFold {
  if (!('node_id' in entry.body)) return state;
  const id = entry.body.node_id;
  const changed = nodeChange(recordOf(state, id), entry);
  return changed ? { ...state, nodes: new Map(state.nodes).set(id, changed) } : state;
}

/** The state after the first envelope. */
export function begin(accepted: ReceiptBodies['intent.accepted']): IntentFold {
  return { accepted, nodes: new Map(), escalateStarted: false, refusals: 0 };
}

/** The state after one more envelope. */
export function apply(state: IntentFold, entry: ReceiptEntry): IntentFold {
  const next = withNode(state, entry);
  switch (entry.kind) {
    case 'intent.compiled':
      return { ...next, compiled: entry.body };
    case 'intent.clarify':
      return { ...next, clarify: entry.body };
    case 'intent.parked':
      return { ...next, parkedIn: entry.body.conversation_id };
    case 'gate.refused':
      return { ...next, refusals: next.refusals + 1 };
    case 'call.started':
      return entry.body.surface === 'escalate' ? { ...next, escalateStarted: true } : next;
    case 'journal.broken':
      return { ...next, broken: entry.body };
    case 'intent.completed':
    case 'intent.failed':
    case 'intent.cancelled':
    case 'intent.unknown':
      return { ...next, ending: entry };
    default:
      return next;
  }
}

/** Whether the kind of an envelope is one that ends an intent. */
export function isEnd(kind: ReceiptKind): kind is End {
  return Object.hasOwn(STATUS_OF_END, kind);
}

/** Whether nothing goes on any more by itself: it has come to its end, or the executor has asked back. */
export function isOver({ ending, clarify }: IntentFold): boolean {
  return ending !== undefined || clarify !== undefined;
}

/** The nodes whose gate waits for an answer, in the order in which they were asked. */
export function openGates(state: IntentFold): readonly { readonly nodeId: string; readonly gate: Gate }[] {
  if (isOver(state)) return [];
  return [...state.nodes]
    .flatMap(([nodeId, { gate }]) => (gate && !gate.answered && !gate.expired ? [{ nodeId, gate }] : []))
    .sort((one, other) => (one.gate.asked.at < other.gate.asked.at ? -1 : 1));
}

export function statusOf(state: IntentFold): IntentStatus {
  const { ending } = state;
  // In a receipt a denial is a failure with a code of its own, as it always was: old ones read the same.
  if (ending?.kind === 'intent.failed' && DENIAL_CODES.includes(ending.body.code)) return 'denied';
  if (ending) return STATUS_OF_END[ending.kind];
  if (!state.compiled) return 'drafting';
  if (openGates(state).length > 0) return 'awaiting_approval';
  return state.nodes.size === 0 ? 'planned' : 'executing';
}

/** The plan as it is carried out; `undefined` before it is compiled. */
export function intentOf(state: IntentFold): Intent | undefined {
  return state.compiled?.intent;
}

/** What became of a call, as far as it is on record; `undefined` before it is started. */
export function outcomeOf({ started, finished, reconciled }: NodeRecord): CallStatus | undefined {
  if (!started) return undefined;
  return reconciled?.status ?? finished?.status ?? 'unknown';
}
