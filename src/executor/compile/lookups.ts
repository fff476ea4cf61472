/** Lookups that are made while compiling: few, short, only with tools that change nothing, and only with values that nobody made up. */
import { type Clock, wait } from '../../kit/clock/clock.ts';
import { ReveilleError } from '../../wire/errors.ts';
import type { CallNode, Intent } from '../../wire/intent.ts';
import { parseForeignJson } from '../../wire/json.ts';
import { checkPlan } from '../intent/check-plan.ts';
import { readIntent } from '../intent/read-intent.ts';
import type { Policy } from '../policy/policy.ts';
import type { CompileRead } from '../receipt/bodies.ts';
import { digestOf } from '../receipt/envelope.ts';
import type { RailTool, Toolbox } from '../tools/toolbox.ts';
import { LONGEST_ARGUMENTS, LOOKUP_TIMEOUT_MS, LOOKUPS_MAX, SHOWN_BYTES } from './bounds.ts';
import type { Draft } from './compiler.ts';
import { groundingProblemsOfCall } from './grounding.ts';
import { answerText } from './prompt.ts';
import type { Material } from './sources.ts';

export type LookupOptions = {
  readonly toolbox: Toolbox;
  readonly policy: Policy | undefined;
  readonly clock: Clock;
  readonly draft: Draft;
  /** What was handed over, as far as it is shown. */
  readonly material: Omit<Material, 'reads'>;
  readonly signal: AbortSignal;
};

/** What the model is told of a lookup. */
export type LookupAnswer = { readonly text: string; readonly isError: boolean };

const refused = (text: string): LookupAnswer => ({ text, isError: true });

/** The beginning of a text, cut where a word ends: half a number would be another number. */
function headOf(text: string): string {
  const bytes = Buffer.from(text);
  if (bytes.length <= SHOWN_BYTES) return text;
  const head = bytes.toString('utf8', 0, SHOWN_BYTES);
  const at = head.search(/\s\S*$/);
  return `${at < 0 ? '' : head.slice(0, at)}\n[what follows is left out]`;
}

/** The arguments as an intent of one call, which the same checks hold for. */
function readCall(tool: string, input: string): Intent & { plan: CallNode } {
  if (input.length > LONGEST_ARGUMENTS) {
    throw new ReveilleError('invalid_request', `the arguments must have at most ${LONGEST_ARGUMENTS} characters`);
  }
  const args = input.trim() === '' ? '{}' : input;
  // Parsed alone first: whatever closes the object too early would change what is around it.
  parseForeignJson(args);
  const text = `{"verb":"look up","plan":{"id":"lookup","kind":"call","tool":${JSON.stringify(tool)},"args":${args}}}`;
  return readIntent(text) as Intent & { plan: CallNode };
}

/** Why a policy stands in the way of a lookup; nobody is asked about one. */
function objection(
  tool: RailTool,
  args: CallNode['args'],
  { policy, draft, clock }: LookupOptions,
): string | undefined {
  if (policy === undefined) return undefined;
  const { effect, rule, reason } = policy.decide({
    user: draft.user ?? '',
    tool: tool.name,
    args,
    surface: tool.surface,
    amount: undefined,
    unattended: draft.unattended ?? false,
    spends: [],
    now: clock.now(),
  });
  if (effect === 'allow') return undefined;
  const what = effect === 'deny' ? 'denies it' : 'wants a person asked first, so it can only be a step of the plan';
  return `the policy ${what} (${rule}: ${reason})`;
}

/** Starts to make lookups for one task. */
export function lookups(options: LookupOptions) {
  const { toolbox, clock, material, signal } = options;
  const reads: CompileRead[] = [];
  let made = 0;

  async function call(tool: RailTool, args: CallNode['args']): Promise<LookupAnswer> {
    const over = new AbortController();
    const overdue = wait(clock, LOOKUP_TIMEOUT_MS, over.signal).then(() => over.abort());
    try {
      const report = await toolbox.call(tool.name, args, {
        signal: AbortSignal.any([signal, over.signal]),
        definitionSha256: tool.definitionSha256,
      });
      signal.throwIfAborted();
      if (report.status !== 'answered') return refused(`${tool.name} gave no answer: ${report.message}`);
      const text = headOf(report.text.toWellFormed());
      reads.push({
        tool: tool.name,
        args,
        args_sha256: digestOf(args),
        is_error: report.isError,
        response_sha256: report.rawSha256,
        response_bytes: report.rawBytes,
        text,
      });
      return { text: answerText(tool.name, text, report.isError), isError: report.isError };
    } finally {
      over.abort();
      await overdue;
    }
  }

  return {
    /** What has been answered so far. */
    reads: reads as readonly CompileRead[],

    /** Makes a lookup, or says why it is not made. Rejects when the task is given up. */
    async make(tool: RailTool, input: string): Promise<LookupAnswer> {
      if (made >= LOOKUPS_MAX) return refused(`no more than ${LOOKUPS_MAX} lookups are made for one task`);
      made++;
      let intent: Intent & { plan: CallNode };
      try {
        intent = readCall(tool.name, input);
      } catch (thrown) {
        if (thrown instanceof ReveilleError || thrown instanceof SyntaxError) return refused(thrown.message);
        throw thrown;
      }
      const problems = [
        ...checkPlan(intent, toolbox).problems,
        ...groundingProblemsOfCall(intent.plan, { ...material, reads }, toolbox),
      ];
      if (problems.length > 0) return refused(`the lookup was not made: ${problems.join('; ')}`);
      const why = objection(tool, intent.plan.args, options);
      return why === undefined ? call(tool, intent.plan.args) : refused(`the lookup was not made: ${why}`);
    },
  };
}
