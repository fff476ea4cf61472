/**
 * Finding out what became of a call whose answer got lost, by the tool's own word. The call itself is never repeated.
 */

import { ReveilleError } from '../../wire/errors.ts';
import type { CallNode, PlanNode } from '../../wire/intent.ts';
import type { Rail } from '../../wire/manifest.ts';
import { formatInstant } from '../../wire/rfc3339.ts';
import { callNodes } from '../intent/plan.ts';
import { valueAt } from '../intent/pointer.ts';
import type { CallStatus, ReceiptBodies, ReceiptEntry } from '../receipt/bodies.ts';
import { type ChainState, intentOf, type NodeRecord, outcomeOf, recordOf, statusOf } from '../receipt/chain-state.ts';
import type { CallReport, RailTool } from '../tools/toolbox.ts';
import { callCompanion, receivedOf } from './companion-call.ts';
import { type Course, Stopped } from './course.ts';
import { endingOf, inDoubt } from './ending.ts';

const RECONCILE_MS = 60_000;
/** Pauses between questions. */
const ASK_AGAIN_MS = [100, 250, 500, 1000, 2000, 5000];

/** What a tool's word for it means. */
export function verdictOf(
  status: NonNullable<Rail['status']>,
  report: CallReport,
): { status: CallStatus; reason: string } {
  if (report.status !== 'answered')
    return { status: 'unknown', reason: `its status could not be asked: ${report.message}` };
  if (report.isError) return { status: 'unknown', reason: 'asked for its status, the tool says that it failed' };
  const word = valueAt(report.structured, status.field);
  const shown =
    typeof word === 'string' ? JSON.stringify(word.slice(0, 200).toWellFormed()) : 'nothing that can be read';
  const said = `asked for its status, the tool answers ${shown} at ${status.field}`;
  if (typeof word === 'string' && status.done.includes(word)) return { status: 'succeeded', reason: said };
  if (typeof word === 'string' && status.not_done.includes(word)) return { status: 'not_run', reason: said };
  return { status: 'unknown', reason: said };
}

/** Asks once. `undefined` when the manifest names no status call. */
async function askStatus(course: Course, node: CallNode): Promise<ReceiptBodies['call.reconciled'] | undefined> {
  const { toolbox, clock } = course.parts;
  const status = toolbox.find(node.tool)?.rail?.status;
  if (!status) return undefined;
  const answer = await callCompanion(course, node, status, { signal: course.over });
  const { tool, args_sha256, report } = answer;
  const verdict = verdictOf(status, report);
  return { at: formatInstant(clock.now()), node_id: node.id, tool, args_sha256, ...receivedOf(answer), ...verdict };
}

/**
 * Asks until the tool says how it stands, for a minute or so, and puts down what came of it.
 *
 * @throws Stopped when there is nobody to ask
 */
export async function findOut(course: Course, node: CallNode): Promise<void> {
  const { clock, reconcileMs = RECONCILE_MS } = course.parts;
  const began = clock.monotonic();
  for (let tries = 0; ; tries++) {
    const body = await askStatus(course, node);
    if (!body) throw new Stopped('unknown', `nobody knows what became of ${node.tool} (node ${node.id})`);
    const pause = ASK_AGAIN_MS[Math.min(tries, ASK_AGAIN_MS.length - 1)]!;
    if (body.status !== 'unknown' || clock.monotonic() - began + pause > reconcileMs) {
      await course.record(() => [{ kind: 'call.reconciled', body }]);
      return;
    }
    await course.pause(pause);
  }
}

type Tool = Pick<RailTool, 'surface' | 'sideEffectClass' | 'definition' | 'rail'> | undefined;

/** Whether a call can be made twice without harm. */
export function isRead(tool: Tool): boolean {
  if (tool?.surface !== 'natural') return false;
  const { sideEffectClass, definition } = tool;
  return sideEffectClass === 'read' || (sideEffectClass === undefined && definition.annotations?.readOnlyHint === true);
}

/**
 * Whether a call that was begun may be made once more. What was begun as one that needs consent stays one, whatever its
 * tool is said to be by now; and what has come to need consent since is not begun anew either.
 */
export function mayRepeat({ started }: NodeRecord, tool: Tool): boolean {
  return started?.surface !== 'escalate' && (isRead(tool) || isRepeatable(tool));
}

/** Whether a call changes nothing more when it is made again: its manifest says so, and nobody is asked about it. */
export function isRepeatable(tool: Tool): boolean {
  return tool?.surface === 'natural' && tool.rail?.repeatable === true;
}

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
 * Puts down what the tools say now. Once every call is accounted for the intent ends anew: `completed` when all of its
 * plan was carried out, `failed` otherwise; nothing of the plan is taken up again.
 *
 * @throws ReveilleError `conflict` when the manifest names no call that could tell
 */
export async function reconcileUnknown(course: Course, isRead: (tool: string) => boolean): Promise<void> {
  const { journal, clock } = course.parts;
  const { intentId } = course;
  const before = course.state();
  const calls = callNodes(intentOf(before)?.plan ?? { id: 'none', kind: 'wait', seconds: 1 });
  const doubtful = new Set(inDoubt(before, isRead));
  // As they were sent: references of the plan had been resolved by then.
  const nodes = calls
    .filter(({ id }) => doubtful.has(id))
    .map((node) => ({ ...node, args: recordOf(before, node.id).started!.call.args }));
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
