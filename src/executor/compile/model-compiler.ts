/** The compiler with a language model. Only output that passes the executor's own checks is accepted. */
import { type Clock, orAborted, within } from '../../kit/clock/clock.ts';
import type { Logger } from '../../kit/log/log.ts';
import type { Model, ModelAnswer, ModelMessage, ModelToolCall } from '../../kit/model/model.ts';
import { generateWithRetries } from '../../kit/model/retry.ts';
import { hiddenCharacters, namesOf, withHiddenShown } from '../../kit/text/hidden-characters.ts';
import { ReveilleError } from '../../wire/errors.ts';
import type { CallNode, Intent } from '../../wire/intent.ts';
import { isObject, parseUntrustedJson } from '../../wire/json.ts';
import { checkPlan } from '../intent/plan.ts';
import { readIntent } from '../intent/read-intent.ts';
import type { Policy } from '../policy/policy.ts';
import type { CompileRead } from '../receipt/bodies.ts';
import { digestOf } from '../receipt/envelope.ts';
import type { RailTool, Toolbox } from '../tools/toolbox.ts';
import type { Compiled, Compiler, Draft } from './compiler.ts';
import { groundingProblems, groundingProblemsOfCall, provenanceOf } from './grounding.ts';
import {
  answerText,
  CLARIFY,
  CLARIFY_SCHEMA,
  lookupFunctions,
  questionOf,
  SUBMIT,
  SUBMIT_SCHEMA,
  SYSTEM_PROMPT,
  schemaOf,
  shownContext,
} from './prompt.ts';
import type { Material } from './sources.ts';

/** Maximum number of rejected answers of the model. */
const ROUNDS_MAX = 4;
/** Lookups for one task, including refused ones. */
const LOOKUPS_MAX = 8;
/** Requests to the model for one task; each ends the compilation, is rejected, or makes a lookup. */
const REQUESTS_MAX = ROUNDS_MAX + LOOKUPS_MAX;
const LOOKUP_TIMEOUT_MS = 30_000;
/** Time limit of one compilation. */
const COMPILE_TIMEOUT_MS = 10 * 60_000;
/** Maximum input and output tokens for one task, as the endpoint reports them. */
const TOKENS_MAX = 1_000_000;
/** Bytes of a lookup's answer that are kept, shown and used for grounding. */
export const SHOWN_BYTES = 16 * 1024;
/** Maximum length of a lookup's arguments, in UTF-16 units. */
export const ARGUMENTS_MAX = 32 * 1024;
/** Maximum length of a question, in characters. */
const QUESTION_MAX = 4000;

/** @param input the arguments of the call, JSON source text */
function readQuestion(input: string): { readonly question: string } | { readonly problem: string } {
  let value: unknown;
  try {
    value = parseUntrustedJson(input);
  } catch {
    return { problem: 'the arguments must be a JSON object with a question' };
  }
  const question = isObject(value) ? value.question : undefined;
  if (typeof question !== 'string' || question.trim() === '') return { problem: 'question must be a text' };
  if (question.length > QUESTION_MAX) {
    return { problem: `question must have at most ${QUESTION_MAX} characters (it has ${question.length})` };
  }
  return { question: withHiddenShown(question.toWellFormed()) };
}

type LookupOptions = {
  readonly toolbox: Toolbox;
  readonly policy: Policy | undefined;
  readonly clock: Clock;
  readonly draft: Draft;
  /** The submitted texts that the model sees. */
  readonly material: Omit<Material, 'reads'>;
  readonly signal: AbortSignal;
};

/** The answer to the model's lookup. */
type LookupAnswer = { readonly text: string; readonly isError: boolean };

const refused = (text: string): LookupAnswer => ({ text, isError: true });

/** The beginning of a text, cut at a word boundary: a cut number would be another number. */
function headOf(text: string): string {
  const bytes = Buffer.from(text);
  if (bytes.length <= SHOWN_BYTES) return text;
  const head = bytes.toString('utf8', 0, SHOWN_BYTES);
  const at = head.search(/\s\S*$/);
  return `${at < 0 ? '' : head.slice(0, at)}\n[the rest is omitted]`;
}

/** The arguments as an intent of one call, so that the same checks apply. */
function readCall(tool: string, input: string): Intent & { plan: CallNode } {
  if (input.length > ARGUMENTS_MAX) {
    throw new ReveilleError('invalid_request', `the arguments must have at most ${ARGUMENTS_MAX} characters`);
  }
  const args = input.trim() === '' ? '{}' : input;
  // Parse the arguments alone first: text that closes the object early would change the surrounding JSON.
  parseUntrustedJson(args);
  const text = `{"verb":"look up","plan":{"id":"lookup","kind":"call","tool":${JSON.stringify(tool)},"args":${args}}}`;
  return readIntent(text) as Intent & { plan: CallNode };
}

/** Why a policy does not allow a lookup; lookups never ask for an approval. */
function policyProblem(
  tool: RailTool,
  args: CallNode['args'],
  { policy, draft, clock }: LookupOptions,
): string | undefined {
  if (policy === undefined) return undefined;
  const { user = '', unattended = false } = draft;
  const call = { user, unattended, tool: tool.name, args, surface: tool.surface };
  const { effect, rule, reason } = policy.decide({ ...call, amount: undefined, spends: [], now: clock.now() });
  if (effect === 'allow') return undefined;
  const what = effect === 'deny' ? 'denies it' : 'requires an approval, so it can only be a step of the plan';
  return `the policy ${what} (${rule}: ${reason})`;
}

export function createLookups(options: LookupOptions) {
  const { toolbox, clock, material, signal } = options;
  const reads: CompileRead[] = [];
  let count = 0;

  async function call(tool: RailTool, args: CallNode['args']): Promise<LookupAnswer> {
    return await within(clock, LOOKUP_TIMEOUT_MS, signal, async (limited) => {
      const report = await toolbox.call(tool.name, args, {
        signal: limited,
        definitionSha256: tool.definitionSha256,
        user: options.draft.user ?? '',
      });
      signal.throwIfAborted();
      if (report.status !== 'answered') return refused(`${tool.name} gave no answer: ${report.message}`);
      const text = headOf(report.text.toWellFormed());
      const { isError, rawSha256, rawBytes } = report;
      const received = { is_error: isError, response_sha256: rawSha256, response_bytes: rawBytes, text };
      reads.push({ tool: tool.name, args, args_sha256: digestOf(args), ...received });
      return { text: answerText(tool.name, text, isError), isError };
    });
  }

  return {
    /** The answers so far. */
    reads: reads as readonly CompileRead[],

    /** Makes a lookup, or returns why it is refused. Rejects when the compilation is aborted. */
    async make(tool: RailTool, input: string): Promise<LookupAnswer> {
      if (count >= LOOKUPS_MAX) return refused(`at most ${LOOKUPS_MAX} lookups are allowed for one task`);
      count++;
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
      const why = policyProblem(tool, intent.plan.args, options);
      return why === undefined ? call(tool, intent.plan.args) : refused(`the lookup was not made: ${why}`);
    },
  };
}

type CompilerOptions = {
  readonly model: Model;
  readonly toolbox: Toolbox;
  /** Applies to lookups as well: a lookup that it does not allow without an approval is refused. */
  readonly policy?: Policy | undefined;
  readonly clock: Clock;
  readonly log: Logger;
};

/** The result of one call of the model: the end, or an answer to continue from. */
type Step =
  | { readonly end: Compiled }
  | { readonly answer: string; readonly isError: boolean; readonly wrong?: readonly string[] };

const refusal = (code: string, reason: string): Compiled => ({ outcome: 'refused', code, reason });

const ANSWER_BY_CALLS = `Answer with one call of ${SUBMIT} or of ${CLARIFY}; text beside calls is ignored.`;

const SHOWN_PROBLEMS = 12;
function sentenceOf(problems: readonly string[]): string {
  const left = problems.length - SHOWN_PROBLEMS;
  return [...problems.slice(0, SHOWN_PROBLEMS), ...(left > 0 ? [`and ${left} more`] : [])].join('; ');
}

/** The problem of an answer as a whole; its calls are then ignored. */
function answerProblem({ toolCalls = [], cutOff }: ModelAnswer): string | undefined {
  if (toolCalls.length === 0) return cutOff ?? 'the answer has no call';
  const ends = toolCalls.filter(({ name }) => name === SUBMIT || name === CLARIFY);
  if (ends.length > 1) return `the answer has ${ends.length} calls of ${SUBMIT} and ${CLARIFY}; there must be one`;
  if (ends.length === 1 && toolCalls.length > 1) return `${ends[0]!.name} must be the only call of an answer`;
  return undefined;
}

/** Compiles one task until the signal aborts. */
async function compileOne(draft: Draft, options: CompilerOptions, signal: AbortSignal): Promise<Compiled> {
  const { model, toolbox, policy, clock, log } = options;
  const hidden = hiddenCharacters(draft.prose);
  if (hidden.length > 0)
    return refusal(
      'invalid_request',
      `the task contains invisible characters: ${namesOf(hidden)}; write it without them`,
    );
  await orAborted(toolbox.ready?.() ?? Promise.resolve(), signal);
  const tools = toolbox.tools();
  const lookupTools: ReadonlyMap<string, RailTool> = lookupFunctions(tools);
  const { prose, conversationId } = draft;
  const material = { prose, conversationId, context: shownContext(draft.context) };
  const lookups = createLookups({ toolbox, policy, clock, draft, material, signal });
  const schemas = [...[...lookupTools].map(([name, tool]) => schemaOf(name, tool)), SUBMIT_SCHEMA, CLARIFY_SCHEMA];
  const messages: ModelMessage[] = [{ role: 'user', content: questionOf(draft, material.context, tools) }];
  let tokens = 0;
  let compiler = model.name;

  function submitted(input: string): Step {
    let intent: Intent;
    try {
      intent = readIntent(input);
    } catch (thrown) {
      if (!(thrown instanceof ReveilleError)) throw thrown;
      return wrong([thrown.message]);
    }
    const fullMaterial = { ...material, reads: lookups.reads };
    const problems = [...checkPlan(intent, toolbox).problems, ...groundingProblems(intent, fullMaterial, toolbox)];
    if (problems.length > 0) return wrong(problems);
    const provenance = provenanceOf(intent, fullMaterial, toolbox);
    return { end: { outcome: 'intent', intent, compiler, reads: lookups.reads, provenance } };
  }

  function clarified(input: string): Step {
    const read = readQuestion(input);
    if ('problem' in read) return wrong([read.problem]);
    return { end: { outcome: 'clarify', ...read, compiler, reads: lookups.reads } };
  }

  async function stepOf(call: ModelToolCall): Promise<Step> {
    if (call.fault !== undefined) return wrong([call.fault]);
    if (call.name === SUBMIT) return submitted(call.input);
    if (call.name === CLARIFY) return clarified(call.input);
    const tool = lookupTools.get(call.name);
    if (tool === undefined) {
      return wrong([
        `there is no function ${JSON.stringify(call.name.slice(0, 100))}; tools that change something are steps of the plan`,
      ]);
    }
    const { text, isError } = await lookups.make(tool, call.input);
    return { answer: text, isError };
  }

  async function ask(): Promise<ModelAnswer> {
    const request = { system: SYSTEM_PROMPT, messages, tools: schemas, signal, onText: () => {} };
    const answer = await generateWithRetries(model, request, {
      clock,
      onRetry: ({ error }) => log.warn({ reason: error.message }, 'the request to the model failed; trying again'),
    });
    const { inputTokens = 0, outputTokens = 0 } = answer.usage ?? {};
    tokens += inputTokens + outputTokens;
    compiler = answer.model;
    return answer;
  }

  const rejections: (readonly string[])[] = [];
  for (let requests = 0; requests < REQUESTS_MAX && tokens <= TOKENS_MAX; requests++) {
    const answer = await ask();
    const { text, toolCalls = [] } = answer;
    messages.push({ role: 'assistant', content: text, ...(toolCalls.length === 0 ? {} : { toolCalls }) });
    const fault = answerProblem(answer);
    const faults: string[] = fault === undefined ? [] : [fault];
    if (toolCalls.length === 0) messages.push({ role: 'user', content: `${fault}. ${ANSWER_BY_CALLS}` });
    for (const call of toolCalls) {
      const step = fault === undefined ? await stepOf(call) : wrong([fault]);
      if ('end' in step) return step.end;
      if (fault === undefined) faults.push(...(step.wrong ?? []));
      messages.push({ role: 'tool', callId: call.id, name: call.name, content: step.answer, isError: step.isError });
    }
    if (faults.length > 0) rejections.push(faults);
    if (rejections.length === ROUNDS_MAX) break;
  }
  log.info({ model: compiler, rounds: rejections.length, tokens }, 'a task could not be compiled');
  const last = rejections.at(-1);
  const why = last === undefined ? 'the model reached no end' : sentenceOf(last);
  return refusal('invalid_request', `the task could not be compiled to a valid plan: ${why}`);
}

function wrong(problems: readonly string[]): Step & { answer: string } {
  const answer = `Not accepted: ${sentenceOf(problems)}. Correct it, or call ${CLARIFY} if the task does not say enough.`;
  return { answer, isError: true, wrong: problems };
}

/** Creates a compiler. The first request to the model is made for the first task. */
export function createCompiler(options: CompilerOptions): Compiler {
  return {
    async compile(draft) {
      return await within(options.clock, COMPILE_TIMEOUT_MS, draft.signal, async (signal) => {
        try {
          return await compileOne(draft, options, signal);
        } catch (thrown) {
          draft.signal.throwIfAborted();
          if (signal.aborted) {
            return refusal('unavailable', `the task was not compiled within ${COMPILE_TIMEOUT_MS / 60_000} minutes`);
          }
          if (!(thrown instanceof ReveilleError) || thrown.retryable) throw thrown;
          return refusal(thrown.code, thrown.message);
        }
      });
    },
  };
}
