/** Asking the tools again about an intent that ended with an unknown outcome. */
import { ReveilleError } from '../../wire/errors.ts';
import type { PlanNode } from '../../wire/intent.ts';
import { formatInstant } from '../../wire/rfc3339.ts';
import { callNodes } from '../intent/plan.ts';
import type { ReceiptEntry } from '../receipt/bodies.ts';
import { type ChainState, intentOf, outcomeOf, recordOf, statusOf } from '../receipt/chain-state.ts';
import type { Course } from './course.ts';
import { endingOf, inDoubt } from './ending.ts';
import { Stopped } from './halt.ts';
import { askStatus } from './reconcile.ts';

/** The first step of a plan that was not carried out. */
function undoneIn(state: ChainState, node: PlanNode): string | undefined {
  const record = recordOf(state, node.id);
  if (node.kind === 'call') return outcomeOf(record) === 'succeeded' ? undefined : `${node.tool} (node ${node.id})`;
  if (node.kind === 'wait') return record.waited ? undefined : `the wait ${node.id}`;
  for (const child of node.nodes) {
    const undone = undoneIn(state, child);
    if (undone !== undefined) return undone;
  }
  return undefined;
}

/**
 * Puts down what the tools say now. Once every call is accounted for the intent ends anew: `completed` when all of its plan was carried
 * out, `failed` otherwise; nothing of the plan is taken up again.
 *
 * @throws ReveilleError `conflict` when the manifest names no call that could tell
 */
export async function reconcileUnknown(course: Course, isRead: (tool: string) => boolean): Promise<void> {
  const { journal, clock } = course.parts;
  const { intentId } = course;
  const before = course.state();
  const calls = callNodes(intentOf(before)?.plan ?? { id: 'none', kind: 'wait', seconds: 1 });
  const doubtful = new Set(inDoubt(before, isRead));
  const nodes = calls.filter(({ id }) => doubtful.has(id));
  const asked = await Promise.all(nodes.map((node) => askStatus(course, node)));
  if (asked.every((answer) => answer === undefined)) {
    const message =
      'the manifest names no call that tells what became of it (rail.status); look for it in the tool’s own records';
    throw new ReveilleError('conflict', message);
  }
  const told = asked.flatMap((body) => (body && body.status !== 'unknown' ? [body] : []));
  if (told.length === 0) return;
  await journal.change(intentId, (state) => {
    if (statusOf(state) !== 'unknown') return [];
    const open = new Set(inDoubt(state, isRead));
    const news = told.filter(({ node_id }) => open.has(node_id));
    if (news.length === 0) return [];
    const entries = news.map((body): ReceiptEntry => ({ kind: 'call.reconciled', body }));
    const known = new Map(news.map(({ node_id, status }) => [node_id, status]));
    if ([...open].some((id) => !known.has(id))) return entries;
    const nodesAfter = new Map(state.nodes);
    for (const body of news) nodesAfter.set(body.node_id, { ...nodesAfter.get(body.node_id)!, reconciled: body });
    const after = { ...state, nodes: nodesAfter };
    const plan = intentOf(after)?.plan;
    const undone = plan && !state.broken ? undoneIn(after, plan) : 'the rest';
    const stop =
      undone === undefined
        ? undefined
        : new Stopped(
            'interrupted',
            `it was found out what became of every call; ${undone} was not carried out, and is not taken up again`,
          );
    const at = formatInstant(clock.now());
    return [...entries, endingOf(after, stop, { at, isRead })];
  });
}
