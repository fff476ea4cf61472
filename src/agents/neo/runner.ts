/** Neo as an agent of the turn engine: the model answers a turn, and its journal lets a turn continue after a crash. */
import type { Clock } from '../../kit/clock/clock.ts';
import type { Logger } from '../../kit/log/log.ts';
import type { Prices } from '../../kit/model/prices.ts';
import type { Agent, Attempt } from '../../turns/agent.ts';
import { TurnEngine } from '../../turns/engine.ts';
import type { Outcome, RetryPolicy, Turn } from '../../turns/turn.ts';
import type { ConversationStore } from './conversations/store.ts';
import type { NeoModel } from './model.ts';
import type { TurnMemory } from './prompt.ts';
import type { Questions } from './questions.ts';
import { noTools, type ToolSurface } from './tools/surface.ts';

export type NeoAgentOptions = {
  store: ConversationStore;
  model: NeoModel;
  /** For the cost of turns; none by default. */
  prices?: Prices | undefined;
  /** The capabilities of a turn; used by turns of a model that calls tools. No tools by default. */
  surface?: (() => Promise<ToolSurface>) | undefined;
  memory?: TurnMemory | undefined;
  /** The questions of MCP servers to the person; none by default. */
  questions?: Questions | undefined;
  /** The size of the model's context, in tokens; 128,000 by default. */
  contextTokens?: number;
  clock: Clock;
  log: Logger;
};

export type RunnerOptions = NeoAgentOptions & {
  /** Called when a turn has ended. */
  onFinished?: (turn: Turn) => void;
  /** When turns are retried after a temporary failure. */
  retryPolicy?: RetryPolicy | undefined;
  /** The most turns that run at once; 8 by default. */
  concurrency?: number;
};

/** How often a turn is begun before Neo gives it up because the process never survived it. */
export const MAX_ATTEMPTS = 3;

export function neoAgent(options: NeoAgentOptions): Agent {
  const {
    store,
    model,
    memory,
    questions,
    clock,
    log,
    surface = async () => noTools,
    contextTokens = 128_000,
  } = options;
  const { prices = new Map() } = options;

  async function run(attempt: Attempt): Promise<Outcome> {
    const { persist, signal } = attempt;
    // The first turn loads the answering code: the router waits for a woken machine until it listens.
    const { answerTurn } = await import('./answer.ts');
    await persist(() => attempt.begin(true));
    const answering = { store, model, prices, surface, memory, questions, contextTokens, persist, clock, log, signal };
    const { outcome = { status: 'stopped' }, said } = await answerTurn(attempt.turn, answering);
    return { ...outcome, said };
  }

  return {
    outlivesProcess: false,
    check: async () => {},
    run,

    /** Its journal repeats no effect. A turn that the process never survives is given up. */
    async resume(attempt) {
      const { turn } = attempt;
      // Attempts that ended by themselves do not count.
      const interruptions = turn.attempts - turn.retries;
      if (interruptions >= MAX_ATTEMPTS) {
        const error = `Neo was stopped ${interruptions} times while this turn ran; it is not begun again`;
        return { status: 'interrupted', error };
      }
      const next = `attempt ${turn.attempts + 1} of ${MAX_ATTEMPTS}`;
      const text = `Neo was stopped while this turn ran; it runs again (${next})`;
      await attempt.persist(() => store.putBackAfterCrash(turn, text));
      return await run(attempt);
    },

    settled: async () => {},
  };
}

export type Runner = TurnEngine;

/** Makes the engine of Neo's turns; nothing runs before `start`. */
export function createRunner(options: RunnerOptions): Runner {
  const { store, onFinished, retryPolicy, clock, log, concurrency = 8 } = options;
  const agent = neoAgent(options);
  const engine = new TurnEngine({
    ...{ store, concurrency, perUser: false, retryPolicy, owner: 'Neo', clock, log },
    workerOf: ({ message, terms }) =>
      terms?.run === undefined
        ? { agent, name: 'Neo', prompt: message }
        : { status: 'failed', error: 'run: Neo runs no commands of alarms; a router of this version does' },
    onFinished(turn) {
      const tookMs = (turn.finishedAt ?? 0) - (turn.startedAt ?? 0);
      const fields = { turn_id: turn.id, conversation_id: turn.conversationId, fire_id: turn.fireId, tookMs };
      if (turn.status === 'done') log.info(fields, 'turn done');
      else log.warn({ ...fields, reason: turn.error }, `turn ${turn.status}`);
      onFinished?.(turn);
    },
  });
  const { questions } = options;
  if (questions) {
    questions.onAnswered = (turnId) => engine.hurry(turnId);
    // The user may have answered after the last process stopped its work.
    const waiting = store.unfinished(0).map(({ id }) => id);
    for (const turnId of questions.answeredTurns(waiting)) engine.hurry(turnId);
  }
  return engine;
}
