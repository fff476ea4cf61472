/** Attempts at a turn: chooses its session and folder, runs the agent, and announces the start once it is certain. */
import { randomUUID } from 'node:crypto';
import type { Clock } from '../kit/clock/clock.ts';
import type { Logger } from '../kit/log/log.ts';
import { failSpan, inSpan, type SpanFacts } from '../kit/trace/trace.ts';
import { type TurnUsage, usageBetween } from '../wire/usage.ts';
import type { Attempt, Worker } from './agent.ts';
import type { Outcome, Turn } from './turn.ts';
import type { TurnStore } from './turn-store.ts';

/** The stored sessions of agents that have conversations of their own. */
export type Sessions = {
  /**
   * `session`: none while the next turn must create one. `usage`: the agent's own count after its last turn, if it
   * reports one.
   */
  get(
    turn: Pick<Turn, 'userId' | 'conversationId' | 'preset'>,
  ): { session: string | undefined; cwd: string | undefined; usage?: TurnUsage | undefined } | undefined;
  /** From now on the conversation has this session, or none. */
  keep(turn: Turn, session: string | undefined, cwd: string | undefined): Promise<void>;
};

export type AttemptsOptions = {
  store: Pick<TurnStore, 'begin' | 'recordProcess' | 'name'>;
  sessions?: Sessions | undefined;
  persist: Attempt['persist'];
  /** The name of the process in errors. */
  owner: string;
  /** The start of an attempt is certain, and its report is not stored yet. */
  onStart: (turn: Turn, at: number) => void;
  clock: Clock;
  log: Logger;
};

export type Attempted = {
  /** As the attempt left it. */
  turn: Turn;
  outcome: Outcome;
  /** Absent when no agent ran. */
  worker?: Worker;
  cwd?: string | undefined;
  /** When it began, if no report of its start was stored yet. */
  began?: number | undefined;
  /** Whether the store has counted it. */
  isCounted: boolean;
};

/** A busy program exits quickly: a turn that lasts longer than this has begun, milliseconds. */
const CERTAIN_MS = 5_000;

/** One attempt over the store. @param isResumed whether an earlier process has begun it */
function storedAttempt(
  { store, persist, owner, onStart, clock, log }: AttemptsOptions,
  given: Turn,
  isResumed: boolean,
  about: Pick<Attempt, 'prompt' | 'session' | 'cwd' | 'spawnId' | 'signal'>,
) {
  let turn = given;
  let isBegun = isResumed;
  let isReported = false;
  let isAnnounced = false;
  let cancelAnnouncement = () => {};
  const startedAt = () => (isBegun ? (turn.startedAt ?? turn.createdAt) : clock.now());

  function announce(): void {
    if (!isAnnounced) onStart(turn, startedAt());
    isAnnounced = true;
  }

  /** A turn that runs for a while has certainly begun. */
  function announceLater(): void {
    cancelAnnouncement();
    if (!isAnnounced) cancelAnnouncement = clock.after(CERTAIN_MS, announce);
  }
  if (isResumed) announceLater();

  const attempt: Attempt = {
    ...about,
    persist,
    get turn() {
      return turn;
    },
    get startedAt() {
      return startedAt();
    },
    async begin(isCertain = false) {
      const { session, spawnId } = about;
      turn = await store.begin(turn.id, { session, spawnId, isCertain });
      isBegun = true;
      isReported = isCertain;
      isAnnounced ||= isCertain;
      announceLater();
    },
    recordProcess: (pid, birth) => store.recordProcess(turn.id, pid, birth),
    async storeNames(names) {
      try {
        await store.name(turn.id, names);
        return true;
      } catch (err) {
        log.warn({ err, turn_id: turn.id }, 'the agent’s name of a turn could not be stored');
        return false;
      }
    },
  };

  return {
    attempt,

    async end(work: Promise<Outcome>): Promise<Attempted> {
      let outcome: Outcome;
      try {
        outcome = await work;
      } catch (err) {
        log.error({ err, turn_id: turn.id }, 'an agent failed with an unexpected error');
        const error = `${owner} had an internal error while the turn ran; see its log`;
        outcome = isBegun ? { status: 'unknown', error } : { status: 'not_started', why: error };
      }
      cancelAnnouncement();
      const hasRun = isBegun && RAN.has(outcome.status);
      if (hasRun) announce();
      return { turn, outcome, began: hasRun && !isReported ? startedAt() : undefined, isCounted: isBegun };
    },
  };
}

const invoking =
  ({ conversationId, terms }: Turn, { name, agent }: Worker) =>
  (): SpanFacts => ({
    ...(agent.outlivesProcess && { kind: 'client' }),
    attributes: {
      'gen_ai.operation.name': 'invoke_agent',
      'gen_ai.agent.name': name,
      'gen_ai.conversation.id': conversationId,
      'gen_ai.request.model': terms?.model,
    },
  });

/** Runs agents for turns. */
export class Attempts {
  readonly #options: AttemptsOptions;

  constructor(options: AttemptsOptions) {
    this.#options = options;
  }

  /**
   * Begins a turn that is due, or finds the outcome of one that an earlier process began. Waits for its end.
   *
   * @throws ReveilleError `unavailable` when the store fails
   */
  async make(
    turn: Turn,
    worker: Worker,
    signal: AbortSignal,
    isResumed = turn.status === 'running',
  ): Promise<Attempted> {
    const { agent, prompt, guessedSession } = worker;
    const kept = this.#options.sessions?.get(turn);
    const cwd = kept?.cwd ?? worker.cwd;
    const session = isResumed ? turn.session : kept ? kept.session : guessedSession;
    const spawnId = isResumed ? (turn.spawnId ?? '') : randomUUID();
    const { attempt, end } = storedAttempt(this.#options, turn, isResumed, { prompt, session, cwd, spawnId, signal });
    const ended = await end(
      inSpan(`invoke_agent ${worker.name}`, invoking(turn, worker), async (span) => {
        const outcome = await (isResumed ? agent.resume(attempt) : agent.run(attempt));
        span?.setAttributes({
          'gen_ai.response.model': outcome.model,
          'gen_ai.usage.input_tokens': outcome.usage?.input_tokens,
          'gen_ai.usage.output_tokens': outcome.usage?.output_tokens,
        });
        if (outcome.status !== 'done') failSpan(span, outcome.status);
        return outcome;
      }),
    );
    const attempted = { ...ended, outcome: withOwnUsage(ended.outcome, session, kept?.usage), worker, cwd };
    if (ended.outcome.status !== 'no_session') return attempted;
    // A missing session: a guessed one never existed, a stored one is lost.
    if (session === undefined || !(kept ? worker.replacesLostSession : guessedSession !== undefined)) {
      return { ...attempted, outcome: lostSession(turn, worker, ended.outcome.why) };
    }
    // Without a session the next attempt cannot find one missing, so this happens once.
    await this.#options.sessions!.keep(turn, undefined, cwd);
    return await this.make(attempt.turn, worker, signal, false);
  }
}

/** The usage of one turn, where the agent counts its whole conversation. @param before its last count */
function withOwnUsage(outcome: Outcome, session: string | undefined, before: TurnUsage | undefined): Outcome {
  const { sessionUsage } = outcome;
  if (sessionUsage === undefined) return outcome;
  if (session === undefined) return { ...outcome, usage: sessionUsage };
  return { ...outcome, usage: before && usageBetween(before, sessionUsage) };
}

/** The outcomes of an attempt that has run. */
const RAN: ReadonlySet<Outcome['status']> = new Set(['done', 'failed', 'unknown']);

function lostSession({ conversationId }: Turn, { name }: Worker, why: string): Outcome {
  const remedy = `give the alarm another conversation_id, or use a preset with "when_gone": "begin_anew"`;
  const error = `${name} does not have the conversation ${conversationId} any more, and no other was begun in its place (${why}); ${remedy}`;
  return { status: 'failed', error };
}
