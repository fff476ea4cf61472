/** The compiler behind a language model. Whatever the model says, only what passes our own checks gets out. */
import { type Clock, wait } from '../../kit/clock/clock.ts';
import { orAborted } from '../../kit/clock/or-aborted.ts';
import type { Logger } from '../../kit/log/log.ts';
import type { Model, ModelAnswer, ModelMessage, ModelToolCall } from '../../kit/model/model.ts';
import { generateWithRetries } from '../../kit/model/retry.ts';
import { hiddenCharacters, namesOf } from '../../kit/text/hidden-characters.ts';
import { ReveilleError } from '../../wire/errors.ts';
import type { Intent } from '../../wire/intent.ts';
import { checkPlan } from '../intent/check-plan.ts';
import { readIntent } from '../intent/read-intent.ts';
import type { Policy } from '../policy/policy.ts';
import type { RailTool, Toolbox } from '../tools/toolbox.ts';
import { COMPILE_TIMEOUT_MS, REQUESTS_MAX, ROUNDS_MAX, TOKENS_MAX } from './bounds.ts';
import { readQuestion } from './clarify.ts';
import type { Compiled, Compiler, Draft } from './compiler.ts';
import { CLARIFY, CLARIFY_SCHEMA, lookupFunctions, SUBMIT, SUBMIT_SCHEMA, schemaOf } from './functions.ts';
import { groundingProblems, provenanceOf } from './grounding.ts';
import { lookups } from './lookups.ts';
import { CHARTER, questionOf, shownContext } from './prompt.ts';

export type CompilerOptions = {
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
function disorder({ toolCalls = [], cutOff }: ModelAnswer): string | undefined {
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
  const material = { prose: draft.prose, context: shownContext(draft.context) };
  const looked = lookups({ toolbox, policy, clock, draft, material, signal });
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
    const request = { system: CHARTER, messages, tools: schemas, signal, onText: () => {} };
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
    const fault = disorder(answer);
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
