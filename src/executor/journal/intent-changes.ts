/** The envelopes of the journal as events. */
import type { FeedSource } from '../../kit/http/feed-source.ts';
import type { IntentEvent, IntentEventType } from '../../wire/intent-event.ts';
import type { ReceiptKind } from '../../wire/intent-receipt.ts';
import { formatInstant } from '../../wire/rfc3339.ts';
import type { ReceiptEntry } from '../receipt/bodies.ts';
import type { Journal } from './journal.ts';

/** An envelope of an intent, or `lost`: envelopes may be missing. */
export type IntentChange = { readonly owner: string; readonly at: number } & (
  | { readonly kind: 'lost' }
  | { readonly kind: ReceiptKind; readonly intentId: string; readonly seq: number; readonly nodeId?: string }
);

const EVENT_TYPES: { readonly [Kind in ReceiptKind]?: IntentEventType } = {
  'intent.accepted': 'intent.accepted',
  'intent.compiled': 'intent.planned',
  'intent.parked': 'intent.parked',
  'intent.completed': 'intent.attest',
  'intent.failed': 'intent.fail',
  'intent.unknown': 'intent.fail',
  'intent.clarify': 'intent.fail',
  'intent.cancelled': 'intent.cancel',
  'gate.asked': 'gate.invoked',
  'gate.answered': 'gate.answered',
  'gate.expired': 'gate.expired',
  'call.started': 'step.started',
  'call.finished': 'step.finished',
  'call.reconciled': 'step.finished',
  'wait.started': 'step.started',
  'wait.finished': 'step.finished',
};

/** The change that an envelope records; `undefined` for a kind without an event. */
function changeOf(owner: string, intentId: string, seq: number, entry: ReceiptEntry): IntentChange | undefined {
  const { kind, body } = entry;
  if (EVENT_TYPES[kind] === undefined) return undefined;
  const nodeId = 'node_id' in body ? { nodeId: body.node_id } : {};
  return { owner, at: Date.parse(body.at), kind, intentId, seq, ...nodeId };
}

function eventOf(change: IntentChange): IntentEvent {
  const at = formatInstant(change.at);
  if (change.kind === 'lost') return { type: 'reset', at };
  const { kind, intentId, nodeId } = change;
  return { type: EVENT_TYPES[kind]!, at, intent_id: intentId, ...(nodeId !== undefined && { node_id: nodeId }) };
}

/** The journal's changes, for an event feed. */
export function intentFeedSource(
  journal: Pick<Journal, 'onChange' | 'changesSince'>,
): FeedSource<IntentChange, IntentEvent> {
  return {
    async follow({ owners, onChanges }) {
      journal.onChange(({ row, head }, entries) => {
        if (!owners.has(row.user)) return;
        const first = head.seq - entries.length + 1;
        const changes = entries.flatMap((entry, index) => changeOf(row.user, row.id, first + index, entry) ?? []);
        if (changes.length > 0) onChanges(changes);
      });
      return { refresh: async () => {} };
    },
    changesSince: async (owner, since) =>
      journal
        .changesSince(owner, since)
        ?.flatMap(({ intentId, seq, entry }) => changeOf(owner, intentId, seq, entry) ?? [])
        .sort((one, other) => one.at - other.at),
    lost: (owner, at) => ({ kind: 'lost', owner, at }),
    keyOf: (change) => (change.kind === 'lost' ? `lost ${change.at}` : `${change.intentId} ${change.seq}`),
    eventOf,
    typeOf: (change) => (change.kind === 'lost' ? 'reset' : EVENT_TYPES[change.kind]!),
  };
}
