/** A streamed model from one of the provider packages. One request, no retries (`retry.ts` has those). */
import { APICallError, type LanguageModelV4 } from '@ai-sdk/provider';
import { ReveilleError } from '../../wire/errors.ts';
import type { Clock } from '../clock/clock.ts';
import { endpointError, streamError } from './endpoint-error.ts';
import type { Model, ModelAnswer, ModelRequest } from './model.ts';
import { type ProviderTraits, promptOf, toolOptionsOf } from './provider-prompt.ts';
import { IncompleteStream, readStream } from './stream-reading.ts';

// Timeouts of a request to a model endpoint.

type Deadline = {
  /** Aborts with the caller's signal, or when the endpoint is silent or takes too long. */
  readonly signal: AbortSignal;
  /** Call it when data arrives. */
  received(): void;
  /** Ends the request, including data still in transit. */
  end(): void;
};

/**
 * Starts the timeouts of a request.
 *
 * @param silenceMs maximum time without data
 * @param totalMs maximum time of the whole request
 */
function startDeadline(signal: AbortSignal, clock: Clock, silenceMs: number, totalMs: number): Deadline {
  const overdue = new AbortController();
  const abortWith = (what: string) => () =>
    overdue.abort(new ReveilleError('unavailable', `the model endpoint ${what}`));
  const cancelTotal = clock.after(totalMs, abortWith(`did not finish within ${totalMs / 1000} s`));
  const silent = abortWith(`sent nothing for ${silenceMs / 1000} s`);
  let cancelSilence = clock.after(silenceMs, silent);
  return {
    signal: AbortSignal.any([signal, overdue.signal]),
    received() {
      cancelSilence();
      cancelSilence = clock.after(silenceMs, silent);
    },
    end() {
      cancelSilence();
      cancelTotal();
      overdue.abort();
    },
  };
}

/** Options of every endpoint. */
export type EndpointOptions = {
  /** The endpoint's address without the path of its operation. */
  baseUrl: string;
  model: string;
  apiKey: string | undefined;
  /** Prefix of the variables: `NEO`, `EXECUTOR`. */
  prefix: string;
  clock: Clock;
  /** Maximum time without data. Default 5 minutes, which slow local models need. */
  silenceMs?: number;
  /** Maximum time of a whole request. Default 30 minutes. */
  totalMs?: number;
};

/** Redirects are not followed: they would send the conversation to a host that is not configured. */
export const fetchWithoutRedirects: typeof fetch = (input, init) => fetch(input, { ...init, redirect: 'manual' });

/** An answer that could not be read to its end is thrown with its status, 200. */
const isSuccess = (status: number | undefined) => status !== undefined && status >= 200 && status < 300;

/** The message of the innermost cause. */
function messageOf(thrown: unknown): string {
  if (!(thrown instanceof Error)) return JSON.stringify(thrown) ?? String(thrown);
  return thrown.cause instanceof Error ? messageOf(thrown.cause) : thrown.message;
}

/** Creates a model from a provider's. The endpoint is not called before the first request. */
export function streamedModel(language: LanguageModelV4, traits: ProviderTraits, options: EndpointOptions): Model {
  const { clock, silenceMs = 5 * 60_000, totalMs = 30 * 60_000, apiKey, prefix } = options;

  async function read(request: ModelRequest, limit: Deadline): Promise<ModelAnswer> {
    const { stream } = await language.doStream({
      prompt: promptOf(request, traits),
      ...toolOptionsOf(request, traits),
      abortSignal: limit.signal,
    });
    const reader = readStream(options.model, request.onText);
    for await (const part of stream) {
      limit.received();
      reader.add(part);
      if (reader.full) break;
    }
    limit.signal.throwIfAborted();
    return reader.end();
  }

  return {
    name: options.model,
    callsTools: true,
    async generate(request) {
      const limit = startDeadline(request.signal, clock, silenceMs, totalMs);
      try {
        return await read(request, limit);
      } catch (thrown) {
        if (limit.signal.aborted) throw limit.signal.reason;
        if (thrown instanceof ReveilleError) throw thrown;
        if (APICallError.isInstance(thrown) && !isSuccess(thrown.statusCode)) {
          throw endpointError(thrown, { now: clock.now(), apiKey, prefix });
        }
        throw streamError(thrown instanceof IncompleteStream ? thrown.message : messageOf(thrown), apiKey);
      } finally {
        limit.end();
      }
    },
  };
}
