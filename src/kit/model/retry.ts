/** Repeats requests to a model after temporary errors. Pure except for the clock. */
import { ReveilleError } from '../../wire/errors.ts';
import { backoff } from '../clock/backoff.ts';
import { type Clock, wait } from '../clock/clock.ts';
import type { Model, ModelAnswer, ModelRequest } from './model.ts';

/** Maximum of tries per request. */
const TRIES = 4;
/** If an endpoint requests a longer wait, the turn fails and reports it. */
const LONGEST_DELAY_MS = 60_000;
const delayAfter = backoff({ first: 1000, longest: LONGEST_DELAY_MS });

/** The wait after failed try number `n` (1 for the first): 1 s, 2 s, 4 s, or the endpoint's `Retry-After`. */
export function retryDelayMs(n: number, error: ReveilleError): number {
  if (error.retryAfterSeconds !== undefined) return error.retryAfterSeconds * 1000;
  return delayAfter(n);
}

/** Reported to the caller between two tries. */
export type Retry = { readonly error: ReveilleError; readonly delayMs: number; readonly tries: number };

/**
 * Answers a request like `model`, and retries after retryable errors.
 *
 * @param onRetry called before each wait; earlier text of `onText` is then void
 * @throws ReveilleError the last error, with the number of tries in its message
 */
export async function generateWithRetries<Request extends ModelRequest>(
  model: Model<Request>,
  request: Request,
  { clock, onRetry }: { clock: Clock; onRetry: (retry: Retry) => void },
): Promise<ModelAnswer> {
  for (let n = 1; ; n++) {
    try {
      return await model.generate(request);
    } catch (thrown) {
      if (request.signal.aborted || !(thrown instanceof ReveilleError) || !thrown.retryable) throw thrown;
      const delayMs = retryDelayMs(n, thrown);
      if (n === TRIES) throw again(thrown, `tried ${n} times`);
      if (delayMs > LONGEST_DELAY_MS) {
        throw again(thrown, `it requests a wait of ${Math.ceil(delayMs / 1000)} s, which is too long for a turn`);
      }
      onRetry({ error: thrown, delayMs, tries: n });
      await wait(clock, delayMs, request.signal);
      request.signal.throwIfAborted();
    }
  }
}

function again(error: ReveilleError, what: string): ReveilleError {
  const { code, message, retryable, retryAfterSeconds } = error;
  return new ReveilleError(code, `${message} (${what})`, {
    retryable,
    cause: error,
    ...(retryAfterSeconds === undefined ? {} : { retryAfterSeconds }),
  });
}
