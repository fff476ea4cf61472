/**
 * One call: consent, a line in the journal, the call, another line. A call that was started and has no recorded result is made again only
 * when it is a read; what became of any other is asked, or not known.
 */
import { canonicalJson } from '../../wire/canonical-json.ts';
import type { CallNode } from '../../wire/intent.ts';
import { formatInstant } from '../../wire/rfc3339.ts';
import { referencesOf } from '../intent/stake.ts';
import type { CallStatus, ReceiptBodies } from '../receipt/bodies.ts';
import { recordOf } from '../receipt/chain-state.ts';
import { isUnicode } from '../receipt/envelope.ts';
import type { CallReport, RailTool } from '../tools/toolbox.ts';
import { callCompanion, receivedOf, statusOfReport } from './companion-call.ts';
import { startCall } from './consent.ts';
import type { Course } from './course.ts';
import { Halted, Stopped } from './halt.ts';
import { findOut } from './reconcile.ts';
import { isRead, mayRepeat } from './repetition.ts';

/** A structured result that is longer than this does not stand in the receipt. */
const RESULT_CHARACTERS = 8 * 1024;

function keepable(result: unknown): boolean {
  if (result === undefined) return false;
  const text = canonicalJson(result);
  return text.length <= RESULT_CHARACTERS && isUnicode(text);
}

function finishedBody(node: CallNode, tool: RailTool, report: CallReport, at: number): ReceiptBodies['call.finished'] {
  const body = { at: formatInstant(at), node_id: node.id, status: statusOfReport(report) };
  if (report.status !== 'answered') return { ...body, reason: receivedOf({ report }).text! };
  const references = referencesOf(tool, report.structured);
  return {
    ...body,
    ...receivedOf({ report }),
    ...(report.isError && { reason: 'the tool says that it failed' }),
    ...(references && { references }),
    ...(keepable(report.structured) && { result: report.structured }),
  };
}

/** Makes the call that was put down as started, once, and puts down what came of it. */
async function perform(course: Course, node: CallNode, tool: RailTool): Promise<void> {
  const { toolbox, clock } = course.parts;
  // Whoever calls an intent off does not wait for a read; anything else is brought to its end.
  const isHarmless = isRead(tool);
  const signal = isHarmless ? AbortSignal.any([course.halted, course.over]) : course.over;
  const { definitionSha256 } = tool;
  const report = await toolbox.call(node.tool, node.args, { signal, definitionSha256 });
  // Without a recorded end a read is made again, if the intent is ever taken up again.
  if (isHarmless && report.status !== 'answered' && course.halted.aborted) throw new Halted();
  await course.record(() => [{ kind: 'call.finished', body: finishedBody(node, tool, report, clock.now()) }]);
}

/** Reads back what a call has changed. That it cannot be read back does not undo it. */
async function readBack(course: Course, node: CallNode): Promise<void> {
  const { toolbox, clock } = course.parts;
  const companion = toolbox.find(node.tool)?.rail?.read_back;
  const { readBack: before, finished } = recordOf(course.state(), node.id);
  if (!companion || before) return;
  const answer = await callCompanion(course, node, companion, { result: finished?.result, signal: course.over });
  const { tool, args_sha256, status } = answer;
  await course.record(() => [
    {
      kind: 'call.read_back',
      body: { at: formatInstant(clock.now()), node_id: node.id, tool, args_sha256, status, ...receivedOf(answer) },
    },
  ]);
}

const REASON_OF: { readonly [Status in 'failed' | 'not_run']: string } = {
  failed: 'failed',
  not_run: 'was not carried out',
};

/** @throws Stopped when the call did not work out */
async function conclude(course: Course, node: CallNode, status: CallStatus): Promise<void> {
  if (status === 'succeeded') return readBack(course, node);
  const { finished, reconciled } = recordOf(course.state(), node.id);
  if (status === 'unknown') throw new Stopped('unknown', `nobody knows what became of ${node.tool} (node ${node.id})`);
  const why = reconciled?.reason ?? [finished?.reason, finished?.text].filter((part) => part !== undefined).join(': ');
  const code = status === 'failed' ? 'tool_failed' : 'not_run';
  throw new Stopped(code, `${node.tool} (node ${node.id}) ${REASON_OF[status]}: ${why}`);
}

/**
 * Brings a node to its recorded end, wherever an earlier process left it.
 *
 * @throws Stopped when the intent cannot go on, Halted when it was called off
 */
export async function runCall(course: Course, node: CallNode): Promise<void> {
  for (;;) {
    if (course.over.aborted) throw new Halted();
    const record = recordOf(course.state(), node.id);
    const { started, finished, reconciled } = record;
    const status = reconciled?.status ?? finished?.status;
    if (status !== undefined && status !== 'unknown') return conclude(course, node, status);
    // A read whose answer got lost moved nothing: it failed, and is made again only by a new process.
    const canRepeat = mayRepeat(record, course.parts.toolbox.find(node.tool));
    if (finished && canRepeat) return conclude(course, node, 'failed');
    if (reconciled) return conclude(course, node, 'unknown');
    if (started && (finished || !canRepeat)) {
      await findOut(course, node);
      continue;
    }
    const tool = await startCall(course, node);
    if (tool) await perform(course, node, tool);
  }
}
