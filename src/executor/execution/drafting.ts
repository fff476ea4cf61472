/** Turns a submitted task into a plan that can be executed, or into the reason why there is none. */
import { clip } from '../../kit/text/excerpt.ts';
import { canonicalJson } from '../../wire/canonical-json.ts';
import { ReveilleError } from '../../wire/errors.ts';
import { type Intent, type PlanNode, WAIT_SECONDS_MAX } from '../../wire/intent.ts';
import { formatInstant, parseInstant } from '../../wire/rfc3339.ts';
import type { Compiled } from '../compile/compiler.ts';
import { callNodes, checkPlan, fillIdempotencyKeys } from '../intent/plan.ts';
import { readIntent } from '../intent/read-intent.ts';
import { readReferences } from '../intent/reference.ts';
import type { CompileRead, ReceiptBodies, ReceiptEntry } from '../receipt/bodies.ts';
import { sha256Hex } from '../receipt/envelope.ts';
import { IntentFailure, type IntentRun, RunStopped } from './run.ts';

/** Pauses before a request to a model that did not answer is repeated. */
const MODEL_RETRY_MS = [1000, 5000, 20_000];

type Outcome = Exclude<Compiled, { outcome: 'refused' }>;

/** Compiles prose; retries while the model does not answer. */
async function compileProse(run: IntentRun, prose: string): Promise<Outcome> {
  const { compiler, journal, clock, log } = run.parts;
  const { row, state } = journal.loadAny(run.intentId);
  const recordedContext = state.accepted.context;
  const context = row.context ?? [];
  if (recordedContext && sha256Hex(canonicalJson(context)) !== recordedContext.sha256) {
    throw new IntentFailure(
      'journal_broken',
      'the conversation that was submitted with the task was changed in the journal',
    );
  }
  for (let tries = 0; ; tries++) {
    if (run.stopSignal.aborted) throw new RunStopped();
    try {
      const { user, origin, conversation_id: conversationId } = state.accepted.principal;
      const about = { user, unattended: origin === 'chronos', conversationId };
      const compiled = await compiler.compile({ prose, context, now: clock.now(), signal: run.stopSignal, ...about });
      if (compiled.outcome === 'refused') throw new IntentFailure(compiled.code, compiled.reason);
      return compiled;
    } catch (thrown) {
      if (run.stopSignal.aborted) throw new RunStopped();
      if (!(thrown instanceof ReveilleError)) throw thrown;
      const pause = MODEL_RETRY_MS[tries];
      if (!thrown.retryable || pause === undefined) {
        throw new IntentFailure('model_unavailable', `the task could not be compiled: ${thrown.message}`);
      }
      log.warn({ intent: run.intentId, reason: thrown.message }, 'the model did not answer; trying again');
      await run.pause(pause);
    }
  }
}

/**
 * Problems of waits whose instant is too far ahead. The bound counts from the acceptance, so every attempt gives the
 * same answer.
 */
function farWaits(run: IntentRun, plan: PlanNode): string[] {
  if (plan.kind === 'sequence' || plan.kind === 'parallel') return plan.nodes.flatMap((node) => farWaits(run, node));
  if (plan.kind !== 'wait' || plan.until === undefined) return [];
  const latest = parseInstant(run.state().accepted.at)! + WAIT_SECONDS_MAX * 1000;
  if (parseInstant(plan.until)! <= latest) return [];
  return [`node ${plan.id}: until must be at ${formatInstant(latest)} at the latest (got ${plan.until})`];
}

/** A plan with the executor's additions. @throws IntentFailure when it cannot be executed */
function completePlan(
  run: IntentRun,
  intent: Intent,
): Pick<ReceiptBodies['intent.compiled'], 'intent' | 'tools' | 'references'> {
  const { toolbox } = run.parts;
  const problems = [...checkPlan(intent, toolbox).problems, ...farWaits(run, intent.plan)];
  if (problems.length > 0)
    throw new IntentFailure('invalid_plan', `the plan cannot be executed: ${problems.join('; ')}`);
  try {
    const filled = fillIdempotencyKeys(intent, run.intentId, toolbox);
    const names = new Set(callNodes(filled.plan).map(({ tool }) => tool));
    const tools = Object.fromEntries([...names].map((name) => [name, toolbox.find(name)!.definitionSha256]));
    const { references } = readReferences(filled.plan);
    return { intent: filled, tools, ...(references.length > 0 && { references }) };
  } catch (thrown) {
    if (!(thrown instanceof ReveilleError)) throw thrown;
    throw new IntentFailure('invalid_plan', `the plan cannot be executed: ${thrown.message}`);
  }
}

const fitReads = (reads: readonly CompileRead[]) =>
  reads.map((read) => (read.text === undefined ? read : { ...read, text: clip(read.text, 4000) }));

async function entryOf(run: IntentRun): Promise<ReceiptEntry> {
  const { clock } = run.parts;
  const { prose, intent } = run.state().accepted;
  const compiled: Outcome =
    prose === undefined
      ? { outcome: 'intent', intent: readIntent(intent!), compiler: 'none', reads: [] }
      : await compileProse(run, prose);
  const { compiler } = compiled;
  const body = { at: formatInstant(clock.now()), compiler, reads: fitReads(compiled.reads) };
  if (compiled.outcome === 'clarify')
    return { kind: 'intent.clarify', body: { ...body, question: clip(compiled.question, 4000) } };
  const { provenance } = compiled;
  const plan = completePlan(run, compiled.intent);
  return { kind: 'intent.compiled', body: { ...body, ...plan, ...(provenance && { provenance }) } };
}

/**
 * Records the result of the compilation: a plan, a question, or a failure.
 *
 * @throws RunStopped when the run was stopped
 */
export async function draft(run: IntentRun): Promise<void> {
  try {
    const entry = await entryOf(run);
    await run.begin(() => [entry]);
  } catch (thrown) {
    if (!(thrown instanceof IntentFailure)) throw thrown;
    const { code, message } = thrown;
    const at = formatInstant(run.parts.clock.now());
    await run.record(() => [{ kind: 'intent.failed', body: { at, code, reason: clip(message, 4000) } }]);
  }
}
