/** Going through a plan: sequences in their order, parallels side by side, waits by the wall clock. */

import { canonicalJson } from '../../wire/canonical-json.ts';
import type { CallNode, GroupNode, PlanNode, WaitNode } from '../../wire/intent.ts';
import { formatInstant, parseInstant } from '../../wire/rfc3339.ts';
import { referencesOf } from '../intent/stake.ts';
import type { CallStatus, ReceiptBodies } from '../receipt/bodies.ts';
import { recordOf } from '../receipt/chain-state.ts';
import { isUnicode } from '../receipt/envelope.ts';
import { strictnessProblem } from '../receipt/receipt-text.ts';
import type { CallReport, RailTool } from '../tools/toolbox.ts';
import { callCompanion, receivedOf, statusOfReport } from './companion-call.ts';
import { startCall, wholeCall } from './consent.ts';
import { type Course, Halted, Stopped } from './course.ts';
import { findOut, isRead, isRepeatable, mayRepeat } from './reconcile.ts';

/** Pauses before a call that may be made again is, while its answers get lost. */
const REPEAT_MS = [250, 1000, 4000];
/** Branches of one parallel that are under way at the same time. */
const SIDE_BY_SIDE = 8;

async function runWait(course: Course, { id, seconds, until: planned }: WaitNode): Promise<void> {
  const { clock } = course.parts;
  let record = recordOf(course.state(), id);
  if (record.waitUntil === undefined) {
    const state = await course.begin(() => {
      const now = clock.now();
      const until = formatInstant(planned === undefined ? now + seconds! * 1000 : parseInstant(planned)!);
      return [{ kind: 'wait.started', body: { at: formatInstant(now), node_id: id, until } }];
    });
    record = recordOf(state, id);
  }
  if (record.waited) return;
  const until = parseInstant(record.waitUntil!)!;
  while (clock.now() < until) await course.changeBefore(until);
  await course.begin(() => [{ kind: 'wait.finished', body: { at: formatInstant(clock.now()), node_id: id } }]);
}

/** Of several reasons to end, one that says something comes before one that does not. */
function weightiest(reasons: readonly unknown[]): unknown {
  const stops = reasons.filter((reason) => !(reason instanceof Halted));
  return stops.find((reason) => !(reason instanceof Stopped)) ?? stops[0] ?? reasons[0];
}

async function runParallel(course: Course, { nodes }: GroupNode): Promise<void> {
  const rest = [...nodes];
  const reasons: unknown[] = [];
  const branch = async () => {
    for (let node = rest.shift(); node !== undefined; node = rest.shift()) {
      try {
        await walkPlan(course, node);
      } catch (thrown) {
        reasons.push(thrown);
        // The others begin nothing more, and what they have begun is waited for.
        course.halt();
        return;
      }
    }
  };
  await Promise.all(Array.from({ length: Math.min(SIDE_BY_SIDE, rest.length) }, branch));
  if (reasons.length > 0) throw weightiest(reasons);
}

/**
 * Carries out what is left of a plan. Nodes with a recorded result are passed over.
 *
 * @throws Stopped when it cannot go on, {@link Halted} when it was called off
 */
export async function walkPlan(course: Course, node: PlanNode): Promise<void> {
  if (course.halted.aborted) throw new Halted();
  switch (node.kind) {
    case 'call':
      return runCall(course, node);
    case 'wait':
      return runWait(course, node);
    case 'sequence':
      for (const child of node.nodes) await walkPlan(course, child);
      return;
    case 'parallel':
      return runParallel(course, node);
  }
}

type Answered = CallReport & { readonly status: 'answered' };

function isRecordable(source: string | undefined): source is string {
  return source !== undefined && source.length <= RESULT_TEXT_CHARACTERS && source.isWellFormed();
}

/** A structured result that is longer than this does not stand in the receipt. */
const RESULT_CHARACTERS = 8 * 1024;

/** One whose digits JavaScript has rounded is not: its text has them. */
function keepable({ structured, source }: Answered): boolean {
  if (structured === undefined || (source !== undefined && strictnessProblem(source, true) !== undefined)) return false;
  const text = canonicalJson(structured);
  return text.length <= RESULT_CHARACTERS && isUnicode(text);
}

/** A result that another call refers to is kept up to this length, as the text that the tool wrote. */
const RESULT_TEXT_CHARACTERS = 64 * 1024;

function finishedBody(
  node: CallNode,
  tool: RailTool,
  report: CallReport,
  { at, isReferredTo }: { at: number; isReferredTo: boolean },
): ReceiptBodies['call.finished'] {
  const body = { at: formatInstant(at), node_id: node.id, status: statusOfReport(report) };
  if (report.status !== 'answered') return { ...body, reason: receivedOf({ report }).text! };
  const references = referencesOf(tool, report.structured);
  return {
    ...body,
    ...receivedOf({ report }),
    ...(report.isError && { reason: 'the tool says that it failed' }),
    ...(references && { references }),
    ...(keepable(report) && { result: report.structured }),
    ...(isReferredTo && isRecordable(report.source) && { result_text: report.source }),
  };
}

/** Makes the call that was put down as started, once, and puts down what came of it. */
async function perform(course: Course, node: CallNode, tool: RailTool): Promise<void> {
  const { toolbox, clock } = course.parts;
  // Whoever calls an intent off does not wait for a read; anything else is brought to its end.
  const isHarmless = isRead(tool);
  const signal = isHarmless ? AbortSignal.any([course.halted, course.over]) : course.over;
  const { definitionSha256 } = tool;
  const { user } = course.state().accepted.principal;
  const report = await toolbox.call(node.tool, node.args, { signal, definitionSha256, user });
  // Without a recorded end a read is made again, if the intent is ever taken up again.
  if (isHarmless && report.status !== 'answered' && course.halted.aborted) throw new Halted();
  const isReferredTo = course.state().compiled?.references?.some(({ from }) => from === node.id) ?? false;
  const body = finishedBody(node, tool, report, { at: clock.now(), isReferredTo });
  await course.record(() => [{ kind: 'call.finished', body }]);
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
async function runCall(course: Course, planned: CallNode): Promise<void> {
  const node = wholeCall(course.state(), planned);
  let repeats = 0;
  for (;;) {
    if (course.over.aborted) throw new Halted();
    const record = recordOf(course.state(), node.id);
    const { started, finished, reconciled } = record;
    const status = reconciled?.status ?? finished?.status;
    if (status !== undefined && status !== 'unknown') return conclude(course, node, status);
    // A read whose answer got lost moved nothing: it failed, and is made again only by a new process.
    const found = course.parts.toolbox.find(node.tool);
    const canRepeat = mayRepeat(record, found);
    if (finished && canRepeat && isRepeatable(found)) {
      const pause = REPEAT_MS[repeats++];
      if (pause === undefined) return conclude(course, node, 'unknown');
      await course.pause(pause);
      const again = await startCall(course, node);
      if (again) await perform(course, node, again);
      continue;
    }
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
