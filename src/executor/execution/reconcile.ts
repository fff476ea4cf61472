/**
 * Determines the outcome of a call whose answer was lost, by the tool's status call. The call itself is never repeated.
 */
import { ReveilleError } from '../../wire/errors.ts';
import type { CallNode, PlanNode } from '../../wire/intent.ts';
import type { Rail } from '../../wire/manifest.ts';
import { formatInstant } from '../../wire/rfc3339.ts';
import { callNodes } from '../intent/plan.ts';
import { valueAt } from '../intent/pointer.ts';
import type { CallStatus, ReceiptBodies, ReceiptEntry } from '../receipt/bodies.ts';
import {
  apply,
  type ChainState,
  intentOf,
  type NodeRecord,
  outcomeOf,
  recordOf,
  statusOf,
} from '../receipt/chain-state.ts';
import { type CallReport, isRead, type RailTool } from '../tools/toolbox.ts';
import { callCompanion, receivedOf } from './companion-call.ts';
import { endingOf, inDoubt } from './ending.ts';
import { IntentFailure, type IntentRun } from './run.ts';

const RECONCILE_MS = 60_000;
/** Pauses between status queries. */
const QUERY_PAUSES_MS = [100, 250, 500, 1000, 2000, 5000];

/** Maps the answer of a status call to the outcome of the call. */
export function verdictOf(
  status: NonNullable<Rail['status']>,
  report: CallReport,
): { status: CallStatus; reason: string } {
  if (report.status !== 'answered')
    return { status: 'unknown', reason: `its status could not be queried: ${report.message}` };
  if (report.isError) return { status: 'unknown', reason: 'the status call of the tool failed' };
  const value = valueAt(report.structured, status.field);
  const shown = typeof value === 'string' ? JSON.stringify(value.slice(0, 200).toWellFormed()) : 'no readable value';
  const answer = `the status call of the tool answers ${shown} at ${status.field}`;
  if (typeof value === 'string' && status.done.includes(value)) return { status: 'succeeded', reason: answer };
  if (typeof value === 'string' && status.not_done.includes(value)) return { status: 'not_run', reason: answer };
  return { status: 'unknown', reason: answer };
}

/** Queries the status once. `undefined` when the manifest names no status call. */
async function queryStatus(run: IntentRun, node: CallNode): Promise<ReceiptBodies['call.reconciled'] | undefined> {
  const { toolbox, clock } = run.parts;
  const status = toolbox.find(node.tool)?.rail?.status;
  if (!status) return undefined;
  const answer = await callCompanion(run, node, status, { signal: run.shutdownSignal });
  const { tool, args_sha256, report } = answer;
  const verdict = verdictOf(status, report);
  return { at: formatInstant(clock.now()), node_id: node.id, tool, args_sha256, ...receivedOf(answer), ...verdict };
}

/**
 * Queries until the tool reports a final status, for `reconcileMs` at most, and records the outcome.
 *
 * @throws IntentFailure when the manifest names no status call
 */
export async function reconcileCall(run: IntentRun, node: CallNode): Promise<void> {
  const { clock, reconcileMs = RECONCILE_MS } = run.parts;
  const began = clock.monotonic();
  for (let tries = 0; ; tries++) {
    const body = await queryStatus(run, node);
    if (!body) throw new IntentFailure('unknown', `the outcome of ${node.tool} (node ${node.id}) is unknown`);
    const pause = QUERY_PAUSES_MS[Math.min(tries, QUERY_PAUSES_MS.length - 1)]!;
    if (body.status !== 'unknown' || clock.monotonic() - began + pause > reconcileMs) {
      await run.record(() => [{ kind: 'call.reconciled', body }]);
      return;
    }
    await run.pause(pause);
  }
}

type Tool = Pick<RailTool, 'surface' | 'sideEffectClass' | 'definition' | 'rail'> | undefined;

/**
 * Whether a started call may be made again. A call that started as `escalate` is never repeated, whatever its tool is
 * now. A call whose tool has become `escalate` since is not repeated either.
 */
export function mayRepeat({ started }: NodeRecord, tool: Tool): boolean {
  return started?.surface !== 'escalate' && (isRead(tool) || isRepeatable(tool));
}

/** Whether repeating a call has no further effect: its manifest says so, and it needs no approval. */
export function isRepeatable(tool: Tool): boolean {
  return tool?.surface === 'natural' && tool.rail?.repeatable === true;
}

/** The first step of a plan that was not completed. */
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
 * Records the present answers of the tools. Once every outcome is known the intent ends again: `completed` when its
 * whole plan was executed, otherwise `failed`. The plan does not resume.
 *
 * @throws ReveilleError `conflict` when the manifest names no status call
 */
export async function reconcileUnknown(run: IntentRun): Promise<void> {
  const { journal, clock, toolbox } = run.parts;
  const before = run.state();
  const doubtful = new Set(inDoubt(before, toolbox));
  // The arguments as they were sent, with resolved references.
  const nodes = callNodes(intentOf(before)?.plan)
    .filter(({ id }) => doubtful.has(id))
    .map((node) => ({ ...node, args: recordOf(before, node.id).started!.call.args }));
  const asked = await Promise.all(nodes.map((node) => queryStatus(run, node)));
  if (asked.every((answer) => answer === undefined)) {
    const message = 'the manifest names no status call (rail.status) for it; check the tool’s own records';
    throw new ReveilleError('conflict', message);
  }
  const settled = asked.flatMap((body) => (body && body.status !== 'unknown' ? [body] : []));
  if (settled.length === 0) return;
  await journal.change(run.intentId, (state) => {
    if (statusOf(state) !== 'unknown') return [];
    const open = new Set(inDoubt(state, toolbox));
    const fresh = settled.filter(({ node_id }) => open.has(node_id));
    const entries = fresh.map((body): ReceiptEntry => ({ kind: 'call.reconciled', body }));
    if (fresh.length === 0 || fresh.length < open.size) return entries;
    const after = entries.reduce(apply, state);
    const plan = intentOf(after)?.plan;
    const undone = plan && !state.broken ? undoneIn(after, plan) : 'the rest';
    const why = `the outcome of every call is known now; ${undone} was not carried out and is not resumed`;
    const stop = undone === undefined ? undefined : new IntentFailure('interrupted', why);
    return [...entries, endingOf(after, stop, { at: formatInstant(clock.now()), toolbox })];
  });
}
