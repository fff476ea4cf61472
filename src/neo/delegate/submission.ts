/** Handing a task to the executor, which knows it again by the id of its call: asking twice makes one intent. */
import { createHash } from 'node:crypto';
import type { ExecutorClient } from '../../executor/client.ts';
import { type Clock, wait } from '../../kit/clock/clock.ts';
import { NoAnswer } from '../../kit/http/caller.ts';
import { ReveilleError } from '../../wire/errors.ts';
import type { ContextPiece, IntentRequest } from '../../wire/executor.ts';
import { type ToolCallContext, ToolFailure } from '../tools/surface.ts';

/** Pauses between attempts to submit. */
const SUBMIT_AGAIN_MS = [250, 750, 2000];
/** The longest pause that an executor may ask for while a task is submitted. */
const LONGEST_PAUSE_MS = 30_000;

/** The key under which the executor knows a call again. */
function idempotencyKey(callId: string): string {
  return /^[\x21-\x7e]{1,200}$/.test(callId) ? callId : createHash('sha256').update(callId).digest('hex');
}

/** The request for a task of a turn. */
export function requestOf(prose: string, { turn, callId }: ToolCallContext, context: ContextPiece[]): IntentRequest {
  return {
    prose,
    idempotency_key: idempotencyKey(callId),
    conversation_id: turn.conversationId,
    origin: turn.origin === 'chronos' ? 'chronos' : 'person',
    ...(context.length === 0 ? {} : { context }),
  };
}

/**
 * Submits a task, again and again where that may help. Once a request may have arrived the signal does not stop it: asking again is the
 * only way to learn the id under which the intent can be called off.
 *
 * @returns the id of the intent
 * @throws ReveilleError with what the executor answered, ToolFailure when it did not answer, the signal's reason
 */
export async function submitTask(
  request: IntentRequest,
  { client, clock, signal }: { client: Pick<ExecutorClient, 'submit'>; clock: Clock; signal: AbortSignal },
): Promise<string> {
  let mayHaveRun = false;
  for (let tries = 0; ; tries++) {
    if (!mayHaveRun) signal.throwIfAborted();
    try {
      return await client.submit(request);
    } catch (thrown) {
      if (thrown instanceof NoAnswer) mayHaveRun ||= thrown.mayHaveArrived;
      else if (!(thrown instanceof ReveilleError) || !thrown.retryable) throw thrown;
      const pause = SUBMIT_AGAIN_MS[tries];
      if (pause === undefined) {
        throw new ToolFailure(thrown.message, { mayHaveRun, repeatable: true, cause: thrown });
      }
      await wait(clock, Math.min((thrown.retryAfterSeconds ?? 0) * 1000 || pause, LONGEST_PAUSE_MS), signal);
    }
  }
}
