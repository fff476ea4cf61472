/** Executes a plan: sequences in order, parallels concurrently, waits by the wall clock. */
import { failSpan, inSpan, toolSpan } from '../../kit/trace/trace.ts';
import { canonicalJson } from '../../wire/canonical-json.ts';
import type { CallNode, GroupNode, PlanNode, WaitNode } from '../../wire/intent.ts';
import { formatInstant, parseInstant } from '../../wire/rfc3339.ts';
import { referencesOf } from '../intent/stake.ts';
import type { CallStatus, ReceiptBodies } from '../receipt/bodies.ts';
import { recordOf } from '../receipt/chain-state.ts';
import { isUnicode } from '../receipt/envelope.ts';
import { strictnessProblem } from '../receipt/receipt-text.ts';
import { type CallReport, isRead, type RailTool } from '../tools/toolbox.ts';
import { callCompanion, receivedOf, statusOfReport } from './companion-call.ts';
import { resolveCall, startCall } from './consent.ts';
import { isRepeatable, mayRepeat, reconcileCall } from './reconcile.ts';
import { IntentFailure, type IntentRun, RunStopped } from './run.ts';

/** Pauses before a repeatable call is made again after its answer was lost. */
const REPEAT_PAUSES_MS = [250, 1000, 4000];
/** Concurrent branches of one parallel. */
const PARALLEL_BRANCHES = 8;

async function runWait(run: IntentRun, { id, seconds, until: planned }: WaitNode): Promise<void> {
  const { clock } = run.parts;
  let record = recordOf(run.state(), id);
  if (record.waitUntil === undefined) {
    const state = await run.begin(() => {
      const now = clock.now();
      const until = formatInstant(planned === undefined ? now + seconds! * 1000 : parseInstant(planned)!);
      return [{ kind: 'wait.started', body: { at: formatInstant(now), node_id: id, until } }];
    });
    record = recordOf(state, id);
  }
  if (record.waited) return;
  const until = parseInstant(record.waitUntil!)!;
  while (clock.now() < until) await run.waitForChange(until);
  await run.begin(() => [{ kind: 'wait.finished', body: { at: formatInstant(clock.now()), node_id: id } }]);
}

/** Selects the reason to report: an unexpected error, then an IntentFailure, then RunStopped. */
function mostSevere(reasons: readonly unknown[]): unknown {
  const failures = reasons.filter((reason) => !(reason instanceof RunStopped));
  return failures.find((reason) => !(reason instanceof IntentFailure)) ?? failures[0] ?? reasons[0];
}

async function runParallel(run: IntentRun, { nodes }: GroupNode): Promise<void> {
  const rest = [...nodes];
  const reasons: unknown[] = [];
  const branch = async () => {
    for (let node = rest.shift(); node !== undefined; node = rest.shift()) {
      try {
        await executePlan(run, node);
      } catch (thrown) {
        reasons.push(thrown);
        // The other branches start nothing new; their calls in progress complete.
        run.stop();
        return;
      }
    }
  };
  await Promise.all(Array.from({ length: Math.min(PARALLEL_BRANCHES, rest.length) }, branch));
  if (reasons.length > 0) throw mostSevere(reasons);
}

/**
 * Executes the rest of a plan. Nodes with a recorded result are skipped.
 *
 * @throws IntentFailure when the intent cannot continue, {@link RunStopped} when the run was stopped
 */
export async function executePlan(run: IntentRun, node: PlanNode): Promise<void> {
  if (run.stopSignal.aborted) throw new RunStopped();
  switch (node.kind) {
    case 'call':
      return runCall(run, node);
    case 'wait':
      return runWait(run, node);
    case 'sequence':
      for (const child of node.nodes) await executePlan(run, child);
      return;
    case 'parallel':
      return runParallel(run, node);
  }
}

type Answered = CallReport & { readonly status: 'answered' };

function isRecordable(source: string | undefined): source is string {
  return source !== undefined && source.length <= RESULT_TEXT_CHARACTERS && source.isWellFormed();
}

/** A longer structured result is not stored in the receipt. */
const RESULT_CHARACTERS = 8 * 1024;

/**
 * Whether a structured result is stored. A result with numbers that JavaScript rounded is not; its text has all digits.
 */
function isStorable({ structured, source }: Answered): boolean {
  if (structured === undefined || (source !== undefined && strictnessProblem(source) !== undefined)) return false;
  const text = canonicalJson(structured);
  return text.length <= RESULT_CHARACTERS && isUnicode(text);
}

/** Maximum length of a result that another call refers to; it is stored as the text that the tool wrote. */
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
    ...(isStorable(report) && { result: report.structured }),
    ...(isReferredTo && isRecordable(report.source) && { result_text: report.source }),
  };
}

/** Makes the call that is recorded as started, once, and records its outcome. */
async function makeCall(run: IntentRun, node: CallNode, tool: RailTool): Promise<void> {
  const { toolbox, clock } = run.parts;
  // Cancelling an intent does not wait for a read; any other call completes.
  const isHarmless = isRead(tool);
  const signal = isHarmless ? AbortSignal.any([run.stopSignal, run.shutdownSignal]) : run.shutdownSignal;
  const { definitionSha256 } = tool;
  const { user } = run.state().accepted.principal;
  const { name, facts } = toolSpan(node.tool);
  const report = await inSpan(name, facts, async (span) => {
    const called = await toolbox.call(node.tool, node.args, { signal, definitionSha256, user });
    if (called.status !== 'answered') failSpan(span, called.status);
    else if (called.isError) failSpan(span, 'tool_error');
    return called;
  });
  // Without a recorded end the read is made again when the intent resumes.
  if (isHarmless && report.status !== 'answered' && run.stopSignal.aborted) throw new RunStopped();
  const isReferredTo = run.state().compiled?.references?.some(({ from }) => from === node.id) ?? false;
  const body = finishedBody(node, tool, report, { at: clock.now(), isReferredTo });
  await run.record(() => [{ kind: 'call.finished', body }]);
}

/** Reads back the effect of a call. A failed read-back does not change the outcome of the call. */
async function readBack(run: IntentRun, node: CallNode): Promise<void> {
  const { toolbox, clock } = run.parts;
  const companion = toolbox.find(node.tool)?.rail?.read_back;
  const { readBack: before, finished } = recordOf(run.state(), node.id);
  if (!companion || before) return;
  const answer = await callCompanion(run, node, companion, { result: finished?.result, signal: run.shutdownSignal });
  const { tool, args_sha256, status } = answer;
  const body = { at: formatInstant(clock.now()), node_id: node.id, tool, args_sha256, status, ...receivedOf(answer) };
  await run.record(() => [{ kind: 'call.read_back', body }]);
}

/** @throws IntentFailure when the call did not succeed */
async function finishCall(run: IntentRun, node: CallNode, status: CallStatus): Promise<void> {
  if (status === 'succeeded') return readBack(run, node);
  const { finished, reconciled } = recordOf(run.state(), node.id);
  if (status === 'unknown')
    throw new IntentFailure('unknown', `the outcome of ${node.tool} (node ${node.id}) is unknown`);
  const why = reconciled?.reason ?? [finished?.reason, finished?.text].filter((part) => part !== undefined).join(': ');
  const [code, how] = status === 'failed' ? ['tool_failed', 'failed'] : ['not_run', 'was not carried out'];
  throw new IntentFailure(code!, `${node.tool} (node ${node.id}) ${how}: ${why}`);
}

/**
 * Brings a node to its recorded end, from the state in which an earlier process left it.
 *
 * @throws IntentFailure when the intent cannot continue, RunStopped when the run was stopped
 */
async function runCall(run: IntentRun, planned: CallNode): Promise<void> {
  const node = resolveCall(run.state(), planned);
  let repeats = 0;
  for (;;) {
    if (run.shutdownSignal.aborted) throw new RunStopped();
    const record = recordOf(run.state(), node.id);
    const { started, finished, reconciled } = record;
    const status = reconciled?.status ?? finished?.status;
    if (status !== undefined && status !== 'unknown') return finishCall(run, node, status);
    // A read whose answer was lost changed nothing: it counts as failed, and only a new process makes it again.
    const found = run.parts.toolbox.find(node.tool);
    const canRepeat = mayRepeat(record, found);
    if (finished && canRepeat && isRepeatable(found)) {
      const pause = REPEAT_PAUSES_MS[repeats++];
      if (pause === undefined) return finishCall(run, node, 'unknown');
      await run.pause(pause);
      const tool = await startCall(run, node);
      if (tool) await makeCall(run, node, tool);
      continue;
    }
    if (finished && canRepeat) return finishCall(run, node, 'failed');
    if (reconciled) return finishCall(run, node, 'unknown');
    if (started && (finished || !canRepeat)) {
      await reconcileCall(run, node);
      continue;
    }
    const tool = await startCall(run, node);
    if (tool) await makeCall(run, node, tool);
  }
}
