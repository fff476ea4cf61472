/** From what was submitted to a plan that can be carried out, or to the reason why there is none. */

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
import { type Course, Halted, Stopped } from './course.ts';

/** Pauses before a model that did not answer is asked again. */
const MODEL_AGAIN_MS = [1000, 5000, 20_000];

type Outcome = Exclude<Compiled, { outcome: 'refused' }>;

/** Compiles prose, again and again where the model does not answer. */
async function compileProse(course: Course, prose: string): Promise<Outcome> {
  const { compiler, journal, clock, log } = course.parts;
  const { row, state } = journal.held(course.intentId);
  const said = state.accepted.context;
  const context = row.context ?? [];
  if (said && sha256Hex(canonicalJson(context)) !== said.sha256) {
    throw new Stopped(
      'journal_broken',
      'the conversation that the task was handed over with was changed in the journal',
    );
  }
  for (let tries = 0; ; tries++) {
    if (course.halted.aborted) throw new Halted();
    try {
      const { user, origin, conversation_id: conversationId } = state.accepted.principal;
      const unattended = origin === 'chronos';
      const signal = course.halted;
      const compiled = await compiler.compile({
        prose,
        context,
        now: clock.now(),
        signal,
        user,
        unattended,
        conversationId,
      });
      if (compiled.outcome === 'refused') throw new Stopped(compiled.code, compiled.reason);
      return compiled;
    } catch (thrown) {
      if (course.halted.aborted) throw new Halted();
      if (!(thrown instanceof ReveilleError)) throw thrown;
      const pause = MODEL_AGAIN_MS[tries];
      if (!thrown.retryable || pause === undefined) {
        throw new Stopped('model_unavailable', `the task could not be compiled: ${thrown.message}`);
      }
      log.warn({ intent: course.intentId, reason: thrown.message }, 'the model did not answer; it is asked again');
      await course.pause(pause);
    }
  }
}

/** Waits until instants that are too far ahead, counted from the acceptance so that each attempt says the same. */
function farWaits(course: Course, plan: PlanNode): string[] {
  if (plan.kind === 'sequence' || plan.kind === 'parallel') return plan.nodes.flatMap((node) => farWaits(course, node));
  if (plan.kind !== 'wait' || plan.until === undefined) return [];
  const latest = parseInstant(course.state().accepted.at)! + WAIT_SECONDS_MAX * 1000;
  if (parseInstant(plan.until)! <= latest) return [];
  return [`node ${plan.id}: until must be at ${formatInstant(latest)} at the latest (got ${plan.until})`];
}

/** A plan with all that the executor adds to it. @throws Stopped when it cannot be carried out */
function completed(
  course: Course,
  intent: Intent,
): Pick<ReceiptBodies['intent.compiled'], 'intent' | 'tools' | 'references'> {
  const { toolbox } = course.parts;
  const problems = [...checkPlan(intent, toolbox).problems, ...farWaits(course, intent.plan)];
  if (problems.length > 0) throw new Stopped('invalid_plan', `the plan cannot be carried out: ${problems.join('; ')}`);
  try {
    const filled = fillIdempotencyKeys(intent, course.intentId, toolbox);
    const names = new Set(callNodes(filled.plan).map(({ tool }) => tool));
    const tools = Object.fromEntries([...names].map((name) => [name, toolbox.find(name)!.definitionSha256]));
    const { references } = readReferences(filled.plan);
    return { intent: filled, tools, ...(references.length > 0 && { references }) };
  } catch (thrown) {
    if (!(thrown instanceof ReveilleError)) throw thrown;
    throw new Stopped('invalid_plan', `the plan cannot be carried out: ${thrown.message}`);
  }
}

const fitReads = (reads: readonly CompileRead[]) =>
  reads.map((read) => (read.text === undefined ? read : { ...read, text: clip(read.text, 4000) }));

async function entryOf(course: Course): Promise<ReceiptEntry> {
  const { clock } = course.parts;
  const { prose, intent } = course.state().accepted;
  const compiled: Outcome =
    prose === undefined
      ? { outcome: 'intent', intent: readIntent(intent!), compiler: 'none', reads: [] }
      : await compileProse(course, prose);
  const at = () => formatInstant(clock.now());
  const { compiler } = compiled;
  const reads = fitReads(compiled.reads);
  if (compiled.outcome === 'clarify') {
    return { kind: 'intent.clarify', body: { at: at(), question: clip(compiled.question, 4000), compiler, reads } };
  }
  const { provenance } = compiled;
  const plan = completed(course, compiled.intent);
  return { kind: 'intent.compiled', body: { at: at(), ...plan, compiler, reads, ...(provenance && { provenance }) } };
}

/**
 * Puts down what the task was compiled to: a plan, a question, or why it failed.
 *
 * @throws Halted when it was called off
 */
export async function draft(course: Course): Promise<void> {
  try {
    const entry = await entryOf(course);
    await course.begin(() => [entry]);
  } catch (thrown) {
    if (!(thrown instanceof Stopped)) throw thrown;
    const { code, message } = thrown;
    const at = formatInstant(course.parts.clock.now());
    await course.record(() => [{ kind: 'intent.failed', body: { at, code, reason: clip(message, 4000) } }]);
  }
}
