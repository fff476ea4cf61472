/** The views of an intent that its user reads. Pure. */
import type { z } from 'zod';
import type { gateSchema } from '../../wire/executor.ts';
import type { PlanNode } from '../../wire/intent.ts';
import { pathOf } from '../../wire/route.ts';
import { EXECUTOR_ROUTES } from '../http/routes.ts';
import type { LoadedIntent } from '../journal/chains.ts';
import type { IntentState, IntentView, NodeState } from '../rail.ts';
import {
  type ChainState,
  intentOf,
  isFinal,
  type NodeRecord,
  openGates,
  outcomeOf,
  recordOf,
  statusOf,
} from '../receipt/chain-state.ts';

function errorOf(state: ChainState): IntentState['error'] {
  const { ending } = state;
  if (ending === undefined || ending.kind === 'intent.completed') return undefined;
  return { code: ending.kind === 'intent.failed' ? ending.body.code : statusOf(state), message: ending.body.reason };
}

/** The pointer to the receipt of an ended intent. */
function receiptOf({ state, head }: Pick<LoadedIntent, 'state' | 'head'>): IntentState['receipt'] {
  if (state.ending === undefined) return undefined;
  const path = pathOf(EXECUTOR_ROUTES.getReceipt, { id: state.accepted.intent_id });
  return { sha256: head.hash, envelopes: head.seq, path };
}

/** @param queuedBehind the intent before it in its owner's queue */
export function stateView(loaded: Pick<LoadedIntent, 'state' | 'head'>, queuedBehind: string | undefined): IntentState {
  const { state } = loaded;
  const receipt = receiptOf(loaded);
  const { ending, clarify, parkedIn } = state;
  const error = errorOf(state);
  const parked = parkedIn !== undefined && !isFinal(state);
  return {
    status: statusOf(state),
    ...(ending?.kind === 'intent.completed' && { result: ending.body.result }),
    ...(clarify && { clarify: clarify.question }),
    ...(error && { error }),
    ...(queuedBehind !== undefined && { queued_behind: queuedBehind }),
    ...(parked && { parked }),
    ...(receipt && { receipt }),
  };
}

type NodeStatus = Pick<NodeState, 'state' | 'detail'>;

function callNodeStatus(record: NodeRecord, isIntentOver: boolean): NodeStatus {
  const { decided, gate, started, finished, reconciled } = record;
  const status = outcomeOf(record);
  const detail = reconciled?.reason ?? finished?.reason;
  const detailed = detail === undefined ? {} : { detail };
  if (status === 'succeeded') return { state: 'done', ...detailed };
  if (status === 'failed' || status === 'not_run') return { state: status, ...detailed };
  if (started) return { state: isIntentOver ? 'unknown' : 'running', ...detailed };
  if (gate?.answered?.approved === false) return { state: 'denied', detail: `denied by ${gate.answered.by}` };
  if (gate?.expired) return { state: 'expired', detail: `no answer before ${gate.asked.expires_at}` };
  if (decided?.effect === 'deny') return { state: 'denied', detail: `denied by the policy: ${decided.reason}` };
  if (isIntentOver) return { state: 'skipped' };
  if (gate && !gate.answered) return { state: 'awaiting_approval', detail: `until ${gate.asked.expires_at}` };
  return { state: 'waiting' };
}

function waitNodeStatus({ waitUntil, waited }: NodeRecord, isIntentOver: boolean): NodeStatus {
  if (waited) return { state: 'done' };
  if (isIntentOver) return { state: 'skipped' };
  return waitUntil === undefined ? { state: 'waiting' } : { state: 'running', detail: `until ${waitUntil}` };
}

/** The calls and waits of a plan, in the order in which they are written. */
function nodesOf(state: ChainState, node: PlanNode): NodeState[] {
  if (node.kind === 'sequence' || node.kind === 'parallel') return node.nodes.flatMap((child) => nodesOf(state, child));
  const record = recordOf(state, node.id);
  const status = node.kind === 'call' ? callNodeStatus(record, isFinal(state)) : waitNodeStatus(record, isFinal(state));
  return [{ node_id: node.id, ...status, ...answeredOf(record) }];
}

function answeredOf({ gate }: NodeRecord): Pick<NodeState, 'answered'> {
  if (!gate?.answered) return {};
  const { approved, at, name, approver } = gate.answered;
  return {
    answered: { approved, at, ...(name !== undefined && { name }), ...(approver !== undefined && { approver }) },
  };
}

export function intentView(loaded: Pick<LoadedIntent, 'state' | 'head'>, queuedBehind: string | undefined): IntentView {
  const { state } = loaded;
  const { intent_id, at, principal, prose } = state.accepted;
  const intent = intentOf(state);
  return {
    ...stateView(loaded, queuedBehind),
    intent_id,
    created_at: at,
    ...(state.ending && { ended_at: state.ending.body.at }),
    ...(principal.conversation_id !== undefined && { conversation_id: principal.conversation_id }),
    origin: principal.origin,
    ...(prose !== undefined && { prose }),
    ...(intent && { intent }),
    nodes: intent ? nodesOf(state, intent.plan) : [],
  };
}

/** The pending questions. */
export function gateViews(state: ChainState): z.output<typeof gateSchema>[] {
  return openGates(state).map(({ nodeId, gate }) => {
    const { tool, args } = recordOf(state, nodeId).decided!.call;
    return {
      node_id: nodeId,
      question: gate.asked.displayed,
      options: ['approve', 'deny'],
      call: { tool, args, call_sha256: gate.asked.call_sha256 },
      displayed_sha256: gate.asked.displayed_sha256,
      expires_at: gate.asked.expires_at,
    };
  });
}
