/** The envelope that ends an intent, derived from its other envelopes. Pure. */
import { clip } from '../../kit/text/excerpt.ts';
import { canonicalJson } from '../../wire/canonical-json.ts';
import { callNodes } from '../intent/plan.ts';
import { nodesInDoubt } from '../journal/chain-reading.ts';
import { type ChainState, type Ending, intentOf, outcomeOf, recordOf } from '../receipt/chain-state.ts';
import { isRead, type Toolbox } from '../tools/toolbox.ts';

const ARGUMENT_CHARACTERS = 1000;

/** The results of the calls: `{nodes: {id: {status, references?, result? or text?}}}`. */
export function resultOf(state: ChainState): { readonly nodes: Readonly<Record<string, unknown>> } {
  const nodes = callNodes(intentOf(state)?.plan).flatMap(({ id }) => {
    const record = recordOf(state, id);
    const status = outcomeOf(record);
    if (status === undefined) return [];
    const { references, result, text } = record.finished ?? {};
    const output = result !== undefined ? { result } : text !== undefined ? { text } : {};
    return [[id, { status, ...(references && { references }), ...output }] as const];
  });
  return { nodes: Object.fromEntries(nodes) };
}

/** Names the calls that took effect, for the reason of an intent that failed. */
function completedCalls(state: ChainState): string {
  const done = callNodes(intentOf(state)?.plan).filter(({ id }) => outcomeOf(recordOf(state, id)) === 'succeeded');
  if (done.length === 0) return '';
  return ` Completed before: ${done.map(({ id, tool }) => `${tool} (node ${id})`).join(', ')}; no later call was started.`;
}

type Tools = Pick<Toolbox, 'find'>;

/**
 * Calls with an unknown outcome that make the outcome of the intent unknown. A read whose answer was lost needs no
 * reconciliation.
 */
export function inDoubt(state: ChainState, toolbox: Tools): string[] {
  return nodesInDoubt(state).filter((id) => {
    const { surface, call } = recordOf(state, id).started!;
    return surface === 'escalate' || !isRead(toolbox.find(call.tool));
  });
}

function unknownReason(state: ChainState, nodes: readonly string[]): string {
  const calls = nodes.map((id) => {
    const { started, reconciled, finished } = recordOf(state, id);
    const { tool, args } = started!.call;
    const why = reconciled?.reason ?? finished?.reason ?? 'the executor ended before an answer came';
    return `${tool} (node ${id}) with ${clip(canonicalJson(args), ARGUMENT_CHARACTERS)}, started at ${started!.at}: ${why}`;
  });
  const id = state.accepted.intent_id;
  return `It is unknown whether these calls were carried out: ${calls.join('; ')}. Check the tool's own records before you repeat a call. "reveille intent reconcile ${id}" queries the tools again.${completedCalls(state)}`;
}

/** The envelope that ends an intent. @param stop why it cannot continue; `undefined` when its plan was executed */
export function endingOf(
  state: ChainState,
  stop: { readonly code: string; readonly message: string } | undefined,
  { at, toolbox }: { at: string; toolbox: Tools },
): Ending {
  const nodes = inDoubt(state, toolbox);
  if (nodes.length > 0) return { kind: 'intent.unknown', body: { at, reason: unknownReason(state, nodes), nodes } };
  if (!stop) return { kind: 'intent.completed', body: { at, result: resultOf(state) } };
  const reason = `${clip(stop.message, 4000)}${/[.!?]$/.test(stop.message) ? '' : '.'}${completedCalls(state)}`;
  return { kind: 'intent.failed', body: { at, code: stop.code, reason } };
}
