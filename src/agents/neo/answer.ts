/** Answers one turn: setup around its loop, streamed text, and its outcome. */
import type { Clock } from '../../kit/clock/clock.ts';
import { orAborted } from '../../kit/clock/clock.ts';
import { formatDuration } from '../../kit/clock/duration.ts';
import type { Logger } from '../../kit/log/log.ts';
import type { Prices } from '../../kit/model/prices.ts';
import { generateWithRetries } from '../../kit/model/retry.ts';
import { TurnCancelled } from '../../turns/agent.ts';
import type { Outcome, Turn } from '../../turns/turn.ts';
import { ReveilleError, toReveilleError } from '../../wire/errors.ts';
import { modelSummarizer } from './context/summary.ts';
import { tokensOfRequest } from './context/tokens.ts';
import { contextWindow, OLDER_TURNS_READ, renderOlder } from './context/window.ts';
import type { ConversationStore } from './conversations/store.ts';
import { runLoop, type SystemBlockInputs } from './loop/loop.ts';
import type { NeoModel } from './model.ts';
import { EARLIER_TURNS, renderHistory, renderQuestion, type TurnMemory } from './prompt.ts';
import type { Questions } from './questions.ts';
import { noTools, StoppedWhileStarting, type ToolNotice, type ToolSurface } from './tools/surface.ts';
import { toolsOfTurn } from './tools/turn-tools.ts';
import { type UsageMeter, usageMeter } from './usage-meter.ts';

/** How long pieces are collected before a write. */
const FLUSH_DELAY_MS = 50;

/** A piece of this many UTF-16 units is written at once. */
const FLUSH_CHARACTERS = 4096;

/** Starts a reply. @param write stores a piece that begins at `offset`; it must not throw */
export function createReplyStream(clock: Clock, write: (offset: number, text: string) => void) {
  let said = '';
  let pending = '';
  let ended = false;
  let cancel = () => {};

  function flush(): void {
    cancel();
    cancel = () => {};
    if (pending === '') return;
    const offset = said.length;
    const text = pending;
    said += text;
    pending = '';
    write(offset, text);
  }

  return {
    /** Adds a piece; pieces after the end are dropped. */
    add(piece: string): void {
      if (ended) return;
      if (pending === '') cancel = clock.after(FLUSH_DELAY_MS, flush);
      pending += piece;
      if (pending.length >= FLUSH_CHARACTERS) flush();
    },

    /** Keeps the text so far; the following text replaces it, from the beginning. */
    nextStep(): void {
      flush();
      said = '';
    },

    /** Discards the text so far; the reply begins again. */
    restart(): void {
      cancel();
      said = '';
      pending = '';
    },

    /** Writes the remaining text. @returns the whole text */
    end(): string {
      flush();
      ended = true;
      return said;
    },
  };
}

export type AnswerOptions = {
  /** The questions of MCP servers to the person. */
  questions?: Pick<Questions, 'waitsFor' | 'notesOf'> | undefined;
  store: Pick<ConversationStore, 'turnsBefore' | 'arrivedAfter' | 'journal' | 'say' | 'status' | 'gate'>;
  model: NeoModel;
  /** For the cost of a turn. */
  prices: Prices;
  /** The capabilities of the turn, once they have started; rejects with {@link StoppedWhileStarting}. */
  surface: () => Promise<ToolSurface>;
  memory?: TurnMemory | undefined;
  /** The size of the model's context, in tokens. */
  contextTokens: number;
  /** Repeats a write until the disk accepts it. */
  persist: <T>(write: () => Promise<T>) => Promise<T>;
  clock: Clock;
  log: Logger;
  /** Stops the turn. It then has no outcome, unless the reason is a cancellation. */
  signal: AbortSignal;
};

/** How many memories a turn is shown without a query. */
const MEMORIES_SHOWN = 12;

/** Possible effects of a turn before it failed, for the reader of the failure. */
function callsNote({ journal }: Pick<ConversationStore, 'journal'>, turn: Turn): string {
  const calls = journal.steps(turn.id).flatMap((step) => step.calls);
  if (calls.length === 0) return '';
  const open = calls.filter(({ answer }) => answer === undefined).map(({ call }) => call.name);
  const unknown = open.length === 0 ? '' : `; the outcome of ${open.join(', ')} is unknown`;
  return ` (the turn had made ${calls.length} tool call${calls.length === 1 ? '' : 's'} by then${unknown})`;
}

/** The model of a turn: the one of its alarm, or the configured one. @throws ReveilleError if Neo does not have it */
function modelOf({ terms }: Turn, model: NeoModel): NeoModel {
  const name = terms?.model;
  if (name === undefined || name === model.name) return model;
  if (model.named) return model.named(name);
  const wanted = `the turn was not begun: its alarm asks for the model ${JSON.stringify(name)}`;
  const remedy = 'set NEO_MODEL_BASE_URL, or set the alarm without a model';
  throw new ReveilleError('invalid_request', `${wanted}, and Neo has only ${model.name}; ${remedy}`);
}

/** The model that the alarm of a failed turn names, if the endpoint may not have it. */
function modelNote({ terms }: Turn, thrown: unknown): string {
  const mayBeUnknown = thrown instanceof ReveilleError && ['not_found', 'invalid_request'].includes(thrown.code);
  if (terms?.model === undefined || !mayBeUnknown) return '';
  return `; the alarm asks for the model ${JSON.stringify(terms.model)}`;
}

/**
 * Answers a turn. Never throws: every error is a failed turn.
 *
 * @returns the outcome, absent when the signal stopped the turn; and the whole text of the turn's `say` events
 */
export async function answerTurn(turn: Turn, options: AnswerOptions): Promise<{ outcome?: Outcome; said: string }> {
  const { store, clock, log, signal } = options;
  const model = { name: turn.terms?.model ?? options.model.name };
  // Events are only for watching; a turn does not fail because one could not be stored.
  const onEventLost = (err: unknown) => log.warn({ err, turn_id: turn.id }, 'an event could not be stored');
  const status = (text: string) => void store.status(turn, text).catch(onEventLost);
  const notify = (notice: ToolNotice) => {
    if (notice.type === 'status') status(notice.text);
    else store.gate(turn, notice.gate).catch(onEventLost);
  };
  const replyStream = createReplyStream(clock, (offset, text) => void store.say(turn, offset, text).catch(onEventLost));
  const endpoint: Endpoint = {};
  const meter = usageMeter(turn, store.journal.steps(turn.id), options.prices);
  try {
    const outcome = await orAborted(runTurn(turn, options, { replyStream, status, notify, endpoint, meter }), signal);
    return { outcome: { ...outcome, usage: meter.used() }, said: replyStream.end() };
  } catch (thrown) {
    const said = replyStream.end();
    if (thrown instanceof StoppedWhileStarting) return { said };
    if (signal.aborted && !(signal.reason instanceof TurnCancelled)) return { said };
    if (signal.aborted) {
      const error = `cancelled on request${callsNote(store, turn)}`;
      const reply = said === '' ? {} : { reply: said };
      return { outcome: { status: 'failed', error, model: model.name, usage: meter.used(), ...reply }, said };
    }
    if (!(thrown instanceof ReveilleError))
      log.error({ err: thrown, turn_id: turn.id }, 'a turn failed by an internal error');
    const note = `${endpoint.wasAsked ? modelNote(turn, thrown) : ''}${callsNote(store, turn)}`;
    const error = `${toReveilleError(thrown).message}${note}`;
    const temporary =
      thrown instanceof ReveilleError && thrown === endpoint.failure ? { temporary: requestedDelay(thrown) } : {};
    return { outcome: { status: 'failed', error, model: model.name, usage: meter.used(), ...temporary }, said };
  }
}

/** Whether the model's endpoint was asked, and its temporary failure that ended a turn, if one did. */
type Endpoint = { wasAsked?: boolean; failure?: ReveilleError };

const requestedDelay = ({ retryAfterSeconds }: ReveilleError) =>
  retryAfterSeconds === undefined ? {} : { afterSeconds: retryAfterSeconds };

type TurnOutputs = {
  endpoint: Endpoint;
  meter: UsageMeter;
  replyStream: ReturnType<typeof createReplyStream>;
  status: (text: string) => void;
  notify: (notice: ToolNotice) => void;
};

async function runTurn(turn: Turn, options: AnswerOptions, outputs: TurnOutputs): Promise<Outcome> {
  const { replyStream, status, notify, endpoint, meter } = outputs;
  const { store, memory, clock, log, signal, contextTokens } = options;
  const model = meter.metered(modelOf(turn, options.model));
  const earlier = store.turnsBefore(turn, OLDER_TURNS_READ + EARLIER_TURNS);
  const history = renderHistory(earlier, ({ id }) => store.journal.steps(id));
  const surface = toolsOfTurn(turn, model.callsTools ? await options.surface() : noTools);
  const window = contextWindow({
    limit: contextTokens,
    earlier: history.messages,
    question: renderQuestion(turn, earlier.at(-1), clock.now()),
    summarize: modelSummarizer({ model, turn, clock, signal, onWait: status }),
    onFailure(err) {
      if (signal.aborted) throw signal.reason;
      log.warn({ err, turn_id: turn.id }, 'a part of the context could not be summarized; it is cut');
    },
  });
  // Once per turn: recall may cost a request of its own.
  let memories: Promise<string | undefined> | undefined;
  const systemBlockInputs: SystemBlockInputs = {
    isComplete: history.isComplete,
    older: history.isComplete ? undefined : renderOlder(turn, earlier.slice(0, -EARLIER_TURNS)),
    profile: () => memory?.profile(),
    memories() {
      memories ??= memory?.relevantTo(turn, MEMORIES_SHOWN) ?? Promise.resolve(undefined);
      return memories;
    },
  };
  return runLoop(turn, {
    model,
    surface,
    window,
    systemBlockInputs,
    journal: store.journal,
    meter,
    questions: options.questions,
    arrived: (limit) => store.arrivedAfter(turn, limit),
    nextReply: () => replyStream.nextStep(),
    notify,
    persist: options.persist,
    clock,
    log,
    signal,
    async queryModel(request) {
      endpoint.wasAsked = true;
      const fullRequest = { ...request, turn, signal, onText: replyStream.add };
      const answer = await generateWithRetries(model, fullRequest, {
        clock,
        onRetry({ error, delayMs, tries }) {
          replyStream.restart();
          log.warn({ turn_id: turn.id, tries, reason: error.message }, 'the model did not answer; asking again');
          status(`${error.message}; asking again in ${formatDuration(delayMs)}`);
        },
      }).catch((thrown: unknown) => {
        if (thrown instanceof ReveilleError && thrown.retryable) endpoint.failure = thrown;
        throw thrown;
      });
      window.learn(tokensOfRequest(request), answer.usage?.inputTokens);
      log.debug({ turn_id: turn.id, model: answer.model, ...answer.usage }, 'the model answered');
      return answer;
    },
  });
}
