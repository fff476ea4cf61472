/** Answering one turn: what the model is shown, what it says on the way, and how the turn ends. */
import type { Clock } from '../clock/clock.ts';
import type { Logger } from '../log/log.ts';
import { ReveilleError, toReveilleError } from '../wire/errors.ts';
import type { ConversationStore } from './conversations/store.ts';
import { formatDuration } from './duration.ts';
import type { Model, ModelAnswer } from './model/model.ts';
import { generateWithRetries } from './model/retry.ts';
import { EARLIER_TURNS, renderPrompt } from './prompt.ts';
import { beginSpeech } from './speech.ts';
import type { Outcome, Turn } from './turn.ts';

export type AnswerOptions = {
  store: Pick<ConversationStore, 'turnsBefore' | 'say' | 'status'>;
  model: Model;
  clock: Clock;
  log: Logger;
  /** Stops the turn; it then has no outcome. */
  signal: AbortSignal;
};

/** Rejects as soon as the signal aborts, even when the promise never settles. */
function orAborted<T>(promise: Promise<T>, signal: AbortSignal): Promise<T> {
  return new Promise((resolve, reject) => {
    const abort = () => reject(signal.reason);
    if (signal.aborted) abort();
    signal.addEventListener('abort', abort);
    promise.then(resolve, reject).finally(() => signal.removeEventListener('abort', abort));
  });
}

function outcomeOf(answer: ModelAnswer): Outcome {
  const { model, cutOff } = answer;
  // An endpoint can send half of a surrogate pair, which no file can hold.
  const reply = answer.text.toWellFormed();
  return cutOff === undefined ? { status: 'done', reply, model } : { status: 'failed', error: cutOff, model, reply };
}

/**
 * Answers a turn. Never throws: whatever goes wrong is a failed turn.
 *
 * @returns the outcome, absent when the signal stopped the turn; and all that the turn's `say` events have said
 */
export async function answerTurn(
  turn: Turn,
  { store, model, clock, log, signal }: AnswerOptions,
): Promise<{ outcome?: Outcome; said: string }> {
  // Events are how people watch; a turn does not fail because they could not be stored.
  const unwatched = (err: unknown) => log.warn({ err, turn_id: turn.id }, 'an event could not be stored');
  const speech = beginSpeech(clock, (offset, text) => void store.say(turn, offset, text).catch(unwatched));
  try {
    const prompt = renderPrompt(turn, store.turnsBefore(turn, EARLIER_TURNS + 1), clock.now());
    const asked = generateWithRetries(
      model,
      { ...prompt, occasion: turn, signal, onText: speech.add },
      {
        clock,
        onRetry({ error, delayMs, tries }) {
          speech.restart();
          log.warn({ turn_id: turn.id, tries, reason: error.message }, 'the model did not answer; asking again');
          const text = `${error.message}; asking again in ${formatDuration(delayMs)}`;
          store.status(turn, text).catch(unwatched);
        },
      },
    );
    const answer = await orAborted(asked, signal);
    log.debug({ turn_id: turn.id, model: answer.model, ...answer.usage }, 'the model answered');
    return { outcome: outcomeOf(answer), said: speech.end() };
  } catch (thrown) {
    const said = speech.end();
    if (signal.aborted) return { said };
    if (!(thrown instanceof ReveilleError)) log.error({ err: thrown, turn_id: turn.id }, 'a turn failed on our side');
    return { outcome: { status: 'failed', error: toReveilleError(thrown).message, model: model.name }, said };
  }
}
