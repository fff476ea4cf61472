/** Target `a2a`: an agent that speaks A2A 1.0 over HTTP and JSON. */
import { createHash } from 'node:crypto';
import type { Dispatcher } from 'undici';
import { type Clock, wait } from '../../kit/clock/clock.ts';
import { below } from '../../kit/http/exchange.ts';
import { ReveilleError } from '../../wire/errors.ts';
import { isPathSegment, pathSegment } from '../../wire/identifier.ts';
import type { CommandMachine } from '../machines/machine.ts';
import { MachineUnavailable } from '../providers/provider.ts';
import { type CallResult, call, within } from './call.ts';
import type { PresetOf } from './preset.ts';
import { isObject, textAt } from './readers.ts';
import { type Attempt, Ended, type Outcome, type TargetMaker, type TurnTarget } from './target.ts';
import { boundedReply } from './verdict.ts';

type A2aOptions = { dispatcher: Dispatcher; clock: Clock };

type Preset = PresetOf<'a2a'>;

const DEFAULT_TIMEOUT_SECONDS = 3600;
const ASK_MS = 15_000;
const FIRST_LOOK_MS = 500;
const LONGEST_LOOK_MS = 10_000;
const VERSION_HEADER = 'A2A-Version';
const VERSION = '1.0';

/** The message id of a wake, a UUID that is always the same for a fire: an agent may tell repetitions apart by it. */
export function a2aMessageId(fireId: string): string {
  const hex = createHash('sha256').update(`a2a:${fireId}`).digest('hex');
  // Version 8: made in a way of our own (RFC 9562 §5.8).
  const variant = ((Number.parseInt(hex[16]!, 16) & 0x3) | 0x8).toString(16);
  return [
    hex.slice(0, 8),
    hex.slice(8, 12),
    `8${hex.slice(13, 16)}`,
    `${variant}${hex.slice(17, 20)}`,
    hex.slice(20, 32),
  ].join('-');
}

class A2aTarget implements TurnTarget {
  readonly outlivesRouter = true;
  readonly #options: A2aOptions;
  readonly #preset: Preset;
  readonly #machine: CommandMachine;

  constructor(options: A2aOptions, preset: Preset, machine: CommandMachine) {
    this.#options = options;
    this.#preset = preset;
    this.#machine = machine;
  }

  async check(): Promise<void> {
    const { url } = this.#machine.spec;
    const limit = within(this.#options.clock, ASK_MS, new AbortController().signal);
    const answer = await this.#get(new URL('/.well-known/agent-card.json', url), limit.signal);
    limit.cancel();
    // Whatever it answers, it is there: its card may stand elsewhere.
    if (answer.result === 'answered') return;
    const message = `the agent at ${url} was not reached: ${answer.why}`;
    throw answer.result === 'unsent' ? new MachineUnavailable(message) : new ReveilleError('unavailable', message);
  }

  async run(attempt: Attempt): Promise<Outcome> {
    const { turn, session } = attempt;
    // The conversation's own id is the context, as long as the agent has not given it another.
    const wanted = session ?? (turn.named ? turn.conversationId : undefined);
    await attempt.begin();
    const first = await this.#send(attempt, wanted);
    if (first.result !== 'answered' || first.status < 400 || first.status > 404)
      return await this.#heard(first, wanted, attempt);
    // An agent may refuse a context that it did not make itself: then nothing ran, and it makes one.
    if (session !== undefined || wanted === undefined) return await this.#heard(first, wanted, attempt);
    return await this.#heard(await this.#send(attempt, undefined), undefined, attempt);
  }

  async resume(attempt: Attempt): Promise<Outcome> {
    const { handle, session } = attempt.turn;
    if (handle !== undefined) return await this.#follow(handle, session, attempt);
    return {
      result: 'unknown',
      session,
      error: 'the router ended before it learnt which task the agent made of the message',
    };
  }

  settled(): Promise<void> {
    return Promise.resolve();
  }

  async #send({ turn, words, startedAt, signal }: Attempt, contextId: string | undefined): Promise<CallResult> {
    const limit = within(this.#options.clock, this.#leftMs(startedAt), signal);
    const messageId = a2aMessageId(turn.fireId);
    const message = {
      messageId,
      ...(contextId === undefined ? {} : { contextId }),
      role: 'ROLE_USER',
      parts: [{ text: words }],
    };
    // The agent need not hold the connection until its task is done.
    const body = JSON.stringify({ message, configuration: { returnImmediately: true } });
    const url = below(this.#machine.spec.url!, '/message:send');
    const answer = await call(this.#options.dispatcher, {
      method: 'POST',
      url,
      body,
      ...this.#credentials(),
      signal: limit.signal,
    });
    limit.cancel();
    return answer;
  }

  #get(url: URL, signal: AbortSignal): Promise<CallResult> {
    return call(this.#options.dispatcher, { method: 'GET', url, ...this.#credentials(), signal });
  }

  #credentials(): { headers: Record<string, string>; secrets: string[] } {
    const { token } = this.#machine;
    return { headers: { [VERSION_HEADER]: VERSION, authorization: `Bearer ${token}` }, secrets: [token] };
  }

  /** What the answer to the message says, and what comes after it. */
  async #heard(answer: CallResult, context: string | undefined, attempt: Attempt): Promise<Outcome> {
    const session = context;
    if (answer.result === 'unsent') return { result: 'not_started', why: `the agent was not reached: ${answer.why}` };
    if (answer.result === 'unknown') {
      return { result: 'unknown', session, error: `the agent took the message and did not answer: ${answer.why}` };
    }
    const { status, json, said, retryAfterSeconds } = answer;
    if (status === 429 || status === 503) {
      const retryAfterMs = retryAfterSeconds === undefined ? undefined : retryAfterSeconds * 1000;
      return { result: 'not_started', why: `the agent answered ${said}`, retryAfterMs };
    }
    if (status === 502 || status === 504)
      return { result: 'unknown', session, error: `something before the agent answered ${said}` };
    if (status > 299) return { result: 'failed', session, error: `the agent refused the message: ${said}` };
    const direct = answerOf(json?.message);
    if (direct) return { result: 'done', session: direct.contextId ?? session, reply: boundedReply(direct.text) };
    const task = taskOf(json?.task);
    if (!task)
      return { result: 'unknown', session, error: `the agent's answer is neither a task nor a message: ${said}` };
    const known = outcomeOfTask(task, session);
    if (known) return known;
    await attempt.name({ handle: task.id, ...namedSession(task, session) });
    return await this.#follow(task.id, task.contextId ?? session, attempt);
  }

  /** Asks about a task until it is over. */
  async #follow(taskId: string, context: string | undefined, attempt: Attempt): Promise<Outcome> {
    const { clock } = this.#options;
    const { signal } = attempt;
    const unknown = (error: string): Outcome => ({ result: 'unknown', session: context, error });
    let trouble = 'it works on';
    for (let pauseMs = FIRST_LOOK_MS; ; pauseMs = Math.min(2 * pauseMs, LONGEST_LOOK_MS)) {
      await wait(clock, pauseMs, signal);
      if (signal.aborted) return unknown(`the agent's task may still run: it was given up when it ${reasonIn(signal)}`);
      const limit = within(clock, ASK_MS, signal);
      const answer = await this.#get(below(this.#machine.spec.url!, `/tasks/${pathSegment(taskId)}`), limit.signal);
      limit.cancel();
      if (answer.result === 'answered') {
        if (answer.status === 404) return unknown(`the agent does not know the task any more (${answer.said})`);
        const task = answer.status <= 299 ? taskOf(answer.json?.task ?? answer.json) : undefined;
        const outcome = task && outcomeOfTask(task, context);
        if (outcome) return outcome;
        trouble = task ? `it is ${task.state}` : `the agent answered ${answer.said}`;
      } else {
        trouble = answer.why;
      }
      if (this.#leftMs(attempt.startedAt) <= 0)
        return unknown(`the agent's task did not end within the time for a turn (${trouble})`);
    }
  }

  #leftMs(startedAt: number): number {
    const seconds = this.#machine.spec.timeout_seconds ?? this.#preset.timeout_seconds ?? DEFAULT_TIMEOUT_SECONDS;
    return startedAt + seconds * 1000 - this.#options.clock.now();
  }
}

const namedSession = ({ contextId }: Task, context: string | undefined) => {
  const session = contextId ?? context;
  return session === undefined ? {} : { session };
};

const reasonIn = ({ reason }: AbortSignal) => (reason instanceof Ended ? reason.message : String(reason));

export function a2aTarget(options: A2aOptions): TargetMaker<Preset, TurnTarget> {
  return (preset, machine) => new A2aTarget(options, preset, machine);
}

export type Task = {
  id: string;
  contextId: string | undefined;
  state: string;
  words: string | undefined;
  said: string | undefined;
};

function textOf(parts: unknown): string | undefined {
  if (!Array.isArray(parts)) return undefined;
  const texts = parts.flatMap((part) => (isObject(part) ? (textAt(part, 'text') ?? []) : []));
  return texts.length === 0 ? undefined : texts.join('\n');
}

/** What the agent made, in the order in which it made it. */
function artifactsOf(task: Record<string, unknown>): string | undefined {
  if (!Array.isArray(task.artifacts)) return undefined;
  const texts = task.artifacts.flatMap((artifact) => (isObject(artifact) ? (textOf(artifact.parts) ?? []) : []));
  return texts.length === 0 ? undefined : texts.join('\n\n');
}

/** Reads a task: the answer to `GET /tasks/{id}`, or the `task` of the answer to a message. */
export function taskOf(value: unknown): Task | undefined {
  if (!isObject(value) || !isObject(value.status)) return undefined;
  const id = textAt(value, 'id');
  const state = textAt(value.status, 'state');
  if (id === undefined || !isPathSegment(id) || state === undefined) return undefined;
  const said = isObject(value.status.message) ? textOf(value.status.message.parts) : undefined;
  return { id, contextId: textAt(value, 'contextId'), state: normalState(state), words: artifactsOf(value), said };
}

/** `TASK_STATE_INPUT_REQUIRED`, and `input-required` as older agents have it, become `input_required`. */
const normalState = (state: string) =>
  state
    .replace(/^TASK_STATE_/, '')
    .replaceAll('-', '_')
    .toLowerCase();

/** A direct answer without a task. */
export function answerOf(value: unknown): { contextId: string | undefined; text: string } | undefined {
  if (!isObject(value)) return undefined;
  const text = textOf(value.parts);
  return text === undefined ? undefined : { contextId: textAt(value, 'contextId'), text };
}

const UNFINISHED = new Set(['submitted', 'working', 'unspecified']);

/** What became of the turn; `undefined` while the task works on. */
function outcomeOfTask(task: Task, context: string | undefined): Outcome | undefined {
  if (UNFINISHED.has(task.state)) return undefined;
  const session = task.contextId ?? context;
  const reply = boundedReply([task.words, task.said].filter((text) => text !== undefined).join('\n\n') || undefined);
  const because = task.said === undefined ? '' : `: ${task.said}`;
  switch (task.state) {
    case 'completed':
      return { result: 'done', session, reply };
    case 'input_required':
      return {
        result: 'failed',
        session,
        reply,
        error: `the agent asks for something, and nobody is there to answer${because}`,
      };
    case 'auth_required':
      return {
        result: 'failed',
        session,
        reply,
        error: `the agent asks for credentials, and nobody is there to give them${because}`,
      };
    case 'failed':
    case 'rejected':
    case 'canceled':
    case 'cancelled':
      return {
        result: 'failed',
        session,
        reply,
        error: `the agent's task was ${task.state === 'failed' ? 'not done: it failed' : task.state}${because}`,
      };
    default:
      return { result: 'unknown', session, error: `the agent's task is in a state that is not known: ${task.state}` };
  }
}
