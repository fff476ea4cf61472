/**
 * The loop of a turn: query the model, make its calls, return their outcomes, until it answers with text.
 *
 * The journal stores a call before it is made, and its outcome before the model reads it. A turn that runs again
 * continues from there. Finished calls are shown and not made again. An interrupted call is made again if its tool is
 * repeatable; otherwise it is shown as "outcome unknown".
 */
import type { Clock } from '../../../kit/clock/clock.ts';
import type { Logger } from '../../../kit/log/log.ts';
import type { ModelAnswer, ModelMessage, ModelRequest, ModelToolCall } from '../../../kit/model/model.ts';
import type { Outcome, Turn } from '../../../turns/turn.ts';
import { ReveilleError } from '../../../wire/errors.ts';
import { parseUntrustedJson } from '../../../wire/json.ts';
import { systemBlock } from '../context/system-block.ts';
import { tokensOf, tokensOfTools } from '../context/tokens.ts';
import type { ContextWindow } from '../context/window.ts';
import type { NeoModel } from '../model.ts';
import { renderArrival } from '../prompt.ts';
import type { Questions } from '../questions.ts';
import { type ToolAnswer, type ToolNotice, type ToolSurface, textAnswer } from '../tools/surface.ts';
import type { UsageMeter } from '../usage-meter.ts';
import { callIdOf, type Journal, type JournalledCall, type JournalledStep, textOfAnswer } from './journal.ts';
import { makeCall } from './make-call.ts';

/** How often the same call may fail in a turn. */
const FAILURES_OF_A_CALL = 4;

/** Two calls are the same when name and arguments are equal, apart from spacing. */
function keyOf({ name, input }: ModelToolCall): string {
  try {
    return `${name} ${JSON.stringify(parseUntrustedJson(input))}`;
  } catch {
    return `${name} ${input}`;
  }
}

/** Counts the failures of a turn's calls. */
function failureCounter() {
  const failures = new Map<string, number>();
  return {
    /** Records how a call ended. @returns whether it has failed too often */
    note(call: ModelToolCall, failed: boolean): boolean {
      const key = keyOf(call);
      if (!failed) {
        failures.delete(key);
        return false;
      }
      const count = (failures.get(key) ?? 0) + 1;
      failures.set(key, count);
      return count >= FAILURES_OF_A_CALL;
    },
  };
}

/** The reason for stopping a turn that repeats itself. */
function repeatedFailure(name: string): string {
  return `the same call of ${name} failed ${FAILURES_OF_A_CALL} times`;
}

/** How many calls one answer may make. */
export const CALLS_PER_STEP = 64;

type Finished = Required<JournalledCall>;

/** The text for the model about a call that was running when Neo stopped. */
const OUTCOME_UNKNOWN: ToolAnswer = {
  isError: true,
  content: [
    {
      type: 'text',
      text: 'outcome unknown: the program around you was stopped while this call was under way, so it may or may not have taken effect. It has not been made again. Find out what is the case before you repeat it.',
    },
  ],
};

function resultMessage({ call, answer }: Finished): ModelMessage {
  const images = answer.content.filter((part) => part.type === 'image');
  return {
    role: 'tool',
    callId: call.id,
    name: call.name,
    content: textOfAnswer(answer).toWellFormed() || '(the call returned nothing)',
    isError: answer.isError,
    ...(images.length === 0 ? {} : { images: images.map(({ mediaType, data }) => ({ mediaType, data })) }),
  };
}

function leftOutNote(count: number): ModelMessage {
  const calls = count === 1 ? '1 more call of that answer was' : `${count} more calls of that answer were`;
  return { role: 'user', content: `(The program: ${calls} not made; an answer can make ${CALLS_PER_STEP} at most.)` };
}

/** The messages of a step whose calls have all ended: the answer, then the results in the order of the calls. */
function messagesOfStep({
  text,
  omittedCalls,
  calls,
}: JournalledStep & { calls: readonly Finished[] }): ModelMessage[] {
  return [
    { role: 'assistant', content: text, toolCalls: calls.map(({ call }) => call) },
    ...calls.map(resultMessage),
    ...(omittedCalls > 0 ? [leftOutNote(omittedCalls)] : []),
  ];
}

/** How many requests a turn may make, besides the one for its last text when it does not end. */
export const STEPS_PER_TURN = 50;

/** How many messages that arrived meanwhile a turn is shown. */
export const ARRIVALS_SHOWN = 20;

/** A longer result is cut, whatever its source; the host limits tool servers to much less. In UTF-16 units. */
const LONGEST_RESULT = 1024 * 1024;

/** The inputs of the system block besides those of the loop itself. */
export type SystemBlockInputs = {
  /** Whether the conversation is shown from its beginning. */
  readonly isComplete: boolean;
  readonly older?: string | undefined;
  profile(): string | undefined;
  /** Memories that may be relevant to the turn. Never throws. */
  memories(): Promise<string | undefined>;
};

export type LoopOptions = {
  model: NeoModel;
  surface: ToolSurface;
  window: ContextWindow;
  systemBlockInputs: SystemBlockInputs;
  journal: Journal;
  /** The questions of MCP servers to the person; none by default. */
  questions?: Pick<Questions, 'waitsFor' | 'notesOf'> | undefined;
  /** Messages of the conversation that were accepted after the turn, oldest first. */
  arrived: (limit: number) => readonly Turn[];
  /** Queries the model; waits and retries where that may help. */
  queryModel: (request: Omit<ModelRequest, 'turn' | 'signal' | 'onText'>) => Promise<ModelAnswer>;
  /** Counts what the turn uses, and ends it at its limit. */
  meter: Pick<UsageMeter, 'used' | 'exhausted'>;
  /** The model's following text is a new answer, which replaces its text so far. */
  nextReply: () => void;
  notify: (notice: ToolNotice) => void;
  /** Repeats a write until the disk accepts it. */
  persist: <T>(write: () => Promise<T>) => Promise<T>;
  clock: Clock;
  log: Logger;
  signal: AbortSignal;
};

function bounded(answer: ToolAnswer): ToolAnswer {
  let left = LONGEST_RESULT;
  const content = answer.content.map((part) => {
    if (part.type !== 'text') return part;
    const text = part.text.length > left ? `${part.text.slice(0, Math.max(left, 0))}\n(cut: too long)` : part.text;
    left -= part.text.length;
    return { type: 'text', text: text.toWellFormed() } as const;
  });
  return { content, isError: answer.isError };
}

const finalRequest = (reason: string): ModelMessage => ({
  role: 'user',
  content: `The program stops this turn here: ${reason}. Make no call any more. Say in a few sentences what has been done and confirmed, what has not, and what would be needed to go on. This turn is recorded as not finished.`,
});

/** Runs the loop. Throws the signal's reason when it aborts, and the errors of `ask`. */
export async function runLoop(turn: Turn, options: LoopOptions): Promise<Outcome> {
  const { model, surface, window, systemBlockInputs, journal, meter, clock, log, signal, persist } = options;
  const failureCounts = failureCounter();
  const shownArrivals = new Set<string>();
  const shownNotes = new Set<string>();
  const callIds = new Set<string>();
  let imagesRefused = false;
  /** The model's text beside its last calls. */
  let lastText = '';

  /** Makes calls concurrently; resolves with all of them in their order when the last has ended. */
  function finishCalls(step: JournalledStep): Promise<Finished[]> {
    return Promise.all(
      step.calls.map(async (journalled): Promise<Finished> => {
        if (journalled.answer) return journalled as Finished;
        const { index, call } = journalled;
        const begunAt = clock.monotonic();
        const context = { turn, callId: callIdOf(turn.id, step.step, index), signal, notify: options.notify };
        const finished = {
          index,
          call,
          answer: bounded(await makeCall(call, context, { surface, clock, log })),
        };
        await persist(() => journal.finishCall(turn, step.step, finished, clock.monotonic() - begunAt));
        return finished;
      }),
    );
  }

  /** The reason not to continue after a step, if any. */
  function addStep(step: JournalledStep, calls: readonly Finished[]): string | undefined {
    window.add(messagesOfStep({ ...step, calls }));
    lastText = step.text;
    if (imagesRefused) window.dropImages();
    for (const { call } of calls) callIds.add(call.id);
    const repeated = calls.filter(({ call, answer }) => failureCounts.note(call, answer.isError));
    return repeated[0] && repeatedFailure(repeated[0].call.name);
  }

  /** A step of an interrupted attempt: unfinished calls are made again where that is harmless. */
  function resumed(step: JournalledStep): JournalledStep {
    const calls = step.calls.map((journalled) => {
      if (journalled.answer || surface.repeatable(journalled.call.name)) return journalled;
      return { ...journalled, answer: OUTCOME_UNKNOWN };
    });
    return { ...step, calls };
  }

  async function resumeSteps(): Promise<{ steps: number; obstacle?: string | undefined }> {
    const steps = journal.steps(turn.id);
    let obstacle: string | undefined;
    for (const step of steps) {
      const again = resumed(step);
      for (const { index, call, answer } of again.calls) {
        if (answer !== OUTCOME_UNKNOWN) continue;
        await persist(() => journal.finishCall(turn, step.step, { index, call, answer }, 0));
      }
      obstacle = addStep(again, await finishCalls(again)) ?? obstacle;
    }
    return { steps: steps.length, obstacle };
  }

  function showArrivals(): void {
    for (const arrival of options.arrived(ARRIVALS_SHOWN)) {
      if (shownArrivals.has(arrival.id)) continue;
      shownArrivals.add(arrival.id);
      window.add([{ role: 'user', content: renderArrival(arrival) }]);
    }
  }

  /** The end of an attempt that waits for the user's answer. */
  function parked(): Outcome | undefined {
    const waits = options.questions?.waitsFor(turn);
    if (!waits) return undefined;
    const temporary = { afterSeconds: waits.afterSeconds, isAnswer: true };
    return { status: 'failed', error: waits.error, model: model.name, temporary };
  }

  async function showNotes(): Promise<void> {
    for (const { id, text } of (await options.questions?.notesOf(turn)) ?? []) {
      if (shownNotes.has(id)) continue;
      shownNotes.add(id);
      window.add([{ role: 'user', content: text }]);
    }
  }

  /** The request of a step; compacts the context first. */
  async function requestOf(step: number): Promise<{ request?: Omit<ModelRequest, 'turn' | 'signal' | 'onText'> }> {
    const tools = model.callsTools ? surface.schemas() : [];
    const memories = await systemBlockInputs.memories();
    const block = (contextUsed: number) =>
      systemBlock({
        turn,
        now: clock.now(),
        isComplete: systemBlockInputs.isComplete,
        tools,
        warnings: model.callsTools ? surface.warnings() : [],
        guide: surface.guide,
        profile: systemBlockInputs.profile(),
        memories,
        older: systemBlockInputs.older,
        step,
        steps: STEPS_PER_TURN,
        contextUsed,
      });
    const fixedTokens = tokensOf(block(1)) + tokensOfTools(tools);
    const fit = await window.fit(fixedTokens);
    signal.throwIfAborted();
    if (fit === 'compacted') log.info({ turn_id: turn.id, step }, 'the older part of the context has been summarized');
    if (fit === 'full') return {};
    return { request: { system: block(window.partTaken(fixedTokens)), messages: window.messages(), tools } };
  }

  /** Queries the model; if it refuses images, queries it again without them. */
  async function queryModel(request: Omit<ModelRequest, 'turn' | 'signal' | 'onText'>): Promise<ModelAnswer> {
    try {
      return await options.queryModel(request);
    } catch (thrown) {
      const refused = thrown instanceof ReveilleError && thrown.code === 'invalid_request';
      if (signal.aborted || !refused || imagesRefused || !window.dropImages()) throw thrown;
      imagesRefused = true;
      log.warn(
        { turn_id: turn.id, reason: thrown.message },
        'the model refused a request with images; going on without',
      );
      return options.queryModel({ ...request, messages: window.messages() });
    }
  }

  /** Endpoints may reuse the id of an earlier call; results could then be confused. */
  function withOwnId(call: ModelToolCall, step: number, index: number): ModelToolCall {
    return callIds.has(call.id) || call.id === '' ? { ...call, id: `s${step}c${index}`.padEnd(9, 'x') } : call;
  }

  async function takeStep(step: number, { text, toolCalls = [] }: ModelAnswer): Promise<string | undefined> {
    const stepToStore: JournalledStep = {
      step,
      text: text.toWellFormed(),
      omittedCalls: Math.max(0, toolCalls.length - CALLS_PER_STEP),
      usage: meter.used(),
      calls: toolCalls.slice(0, CALLS_PER_STEP).map((call, index) => {
        const own = withOwnId(call, step, index);
        const whole = { ...own, input: own.input.toWellFormed(), name: own.name.toWellFormed() };
        // A call that must not be made is settled first, so that it never looks like one that may have run.
        return {
          index,
          call: whole,
          ...(call.fault === undefined ? {} : { answer: textAnswer(call.fault, true) }),
        };
      }),
    };
    await persist(() => journal.beginStep(turn, stepToStore));
    return addStep(stepToStore, await finishCalls(stepToStore));
  }

  /** The end of a turn at a limit, with the text that the model has written so far. */
  function stopped(reason: string): Outcome & { status: 'failed' } {
    const reply = lastText.trim() === '' ? {} : { reply: lastText };
    return { status: 'failed', error: `the turn was stopped: ${reason}`, model: model.name, ...reply };
  }

  /**
   * The end of a turn that cannot continue: the model is queried for its last text, and the turn is failed in any case.
   */
  async function giveUp(reason: string, step: number): Promise<Outcome> {
    const failed = stopped(reason);
    // The last text would cost another request with the whole context.
    if (meter.exhausted() !== undefined) return failed;
    window.add([finalRequest(reason)]);
    options.nextReply();
    try {
      const { request } = await requestOf(step);
      if (!request) return failed;
      const { text, model: name } = await queryModel({ ...request, textOnly: true });
      const reply = text.trim() === '' ? {} : { reply: text.toWellFormed() };
      return { ...failed, model: name, ...reply };
    } catch (thrown) {
      if (signal.aborted) throw thrown;
      log.warn({ err: thrown, turn_id: turn.id }, 'the model gave no last text');
      return failed;
    }
  }

  const { steps, obstacle } = await resumeSteps();
  if (obstacle !== undefined) return giveUp(obstacle, steps + 1);
  for (let step = steps + 1; ; step++) {
    signal.throwIfAborted();
    const waits = parked();
    if (waits) return waits;
    await showNotes();
    // Messages that waited before the turn began have their own turn next; only later ones can change this turn.
    if (step > 1) showArrivals();
    const exhausted = meter.exhausted();
    if (exhausted !== undefined) return stopped(`${exhausted}; what it did is in its conversation`);
    if (step > STEPS_PER_TURN) return giveUp(`it has taken all of its ${STEPS_PER_TURN} steps`, step);
    const { request } = await requestOf(step);
    if (!request) {
      const error =
        'the turn was stopped: what it has to keep in mind does not fit into the model (NEO_CONTEXT_TOKENS)';
      return { status: 'failed', error, model: model.name };
    }
    options.nextReply();
    const answer = await queryModel(request);
    if ((answer.toolCalls ?? []).length === 0) return outcomeOf(answer);
    const stop = await takeStep(step, answer);
    if (stop !== undefined) return giveUp(stop, step + 1);
  }
}

function outcomeOf(answer: ModelAnswer): Outcome {
  const { model, cutOff } = answer;
  // An endpoint can send half of a surrogate pair, which a file cannot contain.
  const reply = answer.text.toWellFormed();
  return cutOff === undefined ? { status: 'done', reply, model } : { status: 'failed', error: cutOff, model, reply };
}
