/** The compiler behind a language model. Whatever the model says, only what passes our own checks gets out. */
import { type Clock, orAborted, wait } from '../../kit/clock/clock.ts';
import type { Logger } from '../../kit/log/log.ts';
import type { Model, ModelAnswer, ModelMessage, ModelToolCall } from '../../kit/model/model.ts';
import { generateWithRetries } from '../../kit/model/retry.ts';
import { hiddenCharacters, namesOf, withHiddenShown } from '../../kit/text/hidden-characters.ts';
import { ReveilleError } from '../../wire/errors.ts';
import type { CallNode, Intent } from '../../wire/intent.ts';
import { parseForeignJson } from '../../wire/json.ts';
import { checkPlan } from '../intent/plan.ts';
import { readIntent } from '../intent/read-intent.ts';
import type { Policy } from '../policy/policy.ts';
import type { CompileRead } from '../receipt/bodies.ts';
import { digestOf } from '../receipt/envelope.ts';
import type { RailTool, Toolbox } from '../tools/toolbox.ts';
import type { Compiled, Compiler, Draft } from './compiler.ts';
import { CLARIFY, CLARIFY_SCHEMA, lookupFunctions, SUBMIT, SUBMIT_SCHEMA, schemaOf } from './functions.ts';
import { groundingProblems, groundingProblemsOfCall, provenanceOf } from './grounding.ts';
import { answerText, questionOf, SYSTEM_PROMPT, shownContext } from './prompt.ts';
import type { Material } from './sources.ts';

/** How often what the model hands in may be wrong. */
const ROUNDS_MAX = 4;
/** Lookups for one task, those that were refused included. */
const LOOKUPS_MAX = 8;
/** Requests to the model for one task; each makes progress, is wrong, or looks something up. */
const REQUESTS_MAX = ROUNDS_MAX + LOOKUPS_MAX;
/** A lookup is given up after this long. */
const LOOKUP_TIMEOUT_MS = 30_000;
/** All of it together. */
const COMPILE_TIMEOUT_MS = 10 * 60_000;
/** What the endpoint may report to have read and written for one task. */
const TOKENS_MAX = 1_000_000;
/** What is kept, shown and believed of the answer to one lookup. */
export const SHOWN_BYTES = 16 * 1024;
/** Of one lookup, in UTF-16 units. */
export const LONGEST_ARGUMENTS = 32 * 1024;
/** Of a question, in characters. */
const LONGEST_QUESTION = 4000;

type ReadQuestion =
  | { readonly question: string; readonly problem?: never }
  | { readonly question?: never; readonly problem: string };

/** @param input the arguments of the call, JSON source text */
function readQuestion(input: string): ReadQuestion {
  let value: unknown;
  try {
    value = parseForeignJson(input);
  } catch {
    return { problem: 'the arguments must be a JSON object with a question' };
  }
  const question = typeof value === 'object' && value !== null ? (value as { question?: unknown }).question : undefined;
  if (typeof question !== 'string' || question.trim() === '') return { problem: 'question must be a text' };
  if (question.length > LONGEST_QUESTION) {
    return { problem: `question must have at most ${LONGEST_QUESTION} characters (it has ${question.length})` };
  }
  return { question: withHiddenShown(question.toWellFormed()) };
}

type LookupOptions = {
  readonly toolbox: Toolbox;
  readonly policy: Policy | undefined;
  readonly clock: Clock;
  readonly draft: Draft;
  /** What was handed over, as far as it is shown. */
  readonly material: Omit<Material, 'reads'>;
  readonly signal: AbortSignal;
};

/** What the model is told of a lookup. */
type LookupAnswer = { readonly text: string; readonly isError: boolean };

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
function policyProblem(
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
export function createLookups(options: LookupOptions) {
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
        user: options.draft.user ?? '',
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
      const why = policyProblem(tool, intent.plan.args, options);
      return why === undefined ? call(tool, intent.plan.args) : refused(`the lookup was not made: ${why}`);
    },
  };
}

type CompilerOptions = {
  readonly model: Model;
  readonly toolbox: Toolbox;
  /** Holds for lookups as well: what it does not allow by itself is not looked up. */
  readonly policy?: Policy | undefined;
  readonly clock: Clock;
  readonly log: Logger;
};

/** What one call of the model came to: an end, or words that it goes on from. */
type Step =
  | { readonly end: Compiled }
  | { readonly answer: string; readonly isError: boolean; readonly wrong?: readonly string[] };

const refusal = (code: string, reason: string): Compiled => ({ outcome: 'refused', code, reason });

const ANSWER_BY_CALLS = `Answer with one call of ${SUBMIT} or of ${CLARIFY}; words beside calls are not read.`;

const SHOWN_PROBLEMS = 12;
function sentenceOf(problems: readonly string[]): string {
  const left = problems.length - SHOWN_PROBLEMS;
  return [...problems.slice(0, SHOWN_PROBLEMS), ...(left > 0 ? [`and ${left} more`] : [])].join('; ');
}

function hiddenIn(prose: string): Compiled | undefined {
  const hidden = hiddenCharacters(prose);
  if (hidden.length === 0) return undefined;
  return refusal(
    'invalid_request',
    `the task holds characters that cannot be seen: ${namesOf(hidden)}; write it without them, so that what is read is what is done`,
  );
}

/** What is wrong with an answer as a whole; its calls are then not looked at. */
function answerProblem({ toolCalls = [], cutOff }: ModelAnswer): string | undefined {
  if (toolCalls.length === 0) return cutOff ?? 'the answer has no call';
  const ends = toolCalls.filter(({ name }) => name === SUBMIT || name === CLARIFY);
  if (ends.length > 1) return `the answer has ${ends.length} calls of ${SUBMIT} and ${CLARIFY}; there must be one`;
  if (ends.length === 1 && toolCalls.length > 1) return `${ends[0]!.name} must be the only call of an answer`;
  return undefined;
}

/** Compiles one task; everything about it ends with the signal. */
async function compileOne(draft: Draft, options: CompilerOptions, signal: AbortSignal): Promise<Compiled> {
  const { model, toolbox, policy, clock, log } = options;
  const hidden = hiddenIn(draft.prose);
  if (hidden !== undefined) return hidden;

  await orAborted(toolbox.ready?.() ?? Promise.resolve(), signal);
  const tools = toolbox.tools();
  const looking: ReadonlyMap<string, RailTool> = lookupFunctions(tools);
  const { prose, conversationId } = draft;
  const material = { prose, conversationId, context: shownContext(draft.context) };
  const looked = createLookups({ toolbox, policy, clock, draft, material, signal });
  const schemas = [...[...looking].map(([name, tool]) => schemaOf(name, tool)), SUBMIT_SCHEMA, CLARIFY_SCHEMA];
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
    const whole = { ...material, reads: looked.reads };
    const problems = [...checkPlan(intent, toolbox).problems, ...groundingProblems(intent, whole, toolbox)];
    if (problems.length > 0) return wrong(problems);
    const provenance = provenanceOf(intent, whole, toolbox);
    return { end: { outcome: 'intent', intent, compiler, reads: looked.reads, provenance } };
  }

  function asked(input: string): Step {
    const { question, problem } = readQuestion(input);
    if (question === undefined) return wrong([problem]);
    return { end: { outcome: 'clarify', question, compiler, reads: looked.reads } };
  }

  async function stepOf(call: ModelToolCall): Promise<Step> {
    if (call.fault !== undefined) return wrong([call.fault]);
    if (call.name === SUBMIT) return submitted(call.input);
    if (call.name === CLARIFY) return asked(call.input);
    const tool = looking.get(call.name);
    if (tool === undefined) {
      return wrong([
        `there is no function ${JSON.stringify(call.name.slice(0, 100))}; tools that change something are steps of the plan`,
      ]);
    }
    const { text, isError } = await looked.make(tool, call.input);
    return { answer: text, isError };
  }

  async function ask(): Promise<ModelAnswer> {
    const request = { system: SYSTEM_PROMPT, messages, tools: schemas, signal, onText: () => {} };
    const answer = await generateWithRetries(model, request, {
      clock,
      onRetry: ({ error }) => log.warn({ reason: error.message }, 'the model did not compile; asking again'),
    });
    const { inputTokens = 0, outputTokens = 0 } = answer.usage ?? {};
    tokens += inputTokens + outputTokens;
    compiler = answer.model;
    return answer;
  }

  const wrongs: (readonly string[])[] = [];
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
    if (faults.length > 0) wrongs.push(faults);
    if (wrongs.length === ROUNDS_MAX) break;
  }
  log.info({ model: compiler, rounds: wrongs.length, tokens }, 'a task could not be compiled');
  const last = wrongs.at(-1);
  const why = last === undefined ? 'the model came to no end' : sentenceOf(last);
  return refusal('invalid_request', `no sound plan was made of the task: ${why}`);
}

function wrong(problems: readonly string[]): Step & { answer: string } {
  const answer = `Not accepted: ${sentenceOf(problems)}. Mend it, or call ${CLARIFY} if the task does not say enough.`;
  return { answer, isError: true, wrong: problems };
}

/** Makes a compiler. Nothing is asked of the model until the first task. */
export function createCompiler(options: CompilerOptions): Compiler {
  return {
    async compile(draft) {
      const over = new AbortController();
      const overdue = wait(options.clock, COMPILE_TIMEOUT_MS, over.signal).then(() => over.abort());
      try {
        return await compileOne(draft, options, AbortSignal.any([draft.signal, over.signal]));
      } catch (thrown) {
        draft.signal.throwIfAborted();
        if (over.signal.aborted) {
          return refusal('unavailable', `the task was not compiled within ${COMPILE_TIMEOUT_MS / 60_000} minutes`);
        }
        if (!(thrown instanceof ReveilleError) || thrown.retryable) throw thrown;
        return refusal(thrown.code, thrown.message);
      } finally {
        over.abort();
        await overdue;
      }
    },
  };
}
