/** A model behind one of the provider packages, streamed. One request, no retries (`retry.ts` has those). */
import { APICallError, type LanguageModelV4 } from '@ai-sdk/provider';
import { ReveilleError } from '../../wire/errors.ts';
import type { Clock } from '../clock/clock.ts';
import { endpointError, streamError } from './endpoint-error.ts';
import type { Model, ModelAnswer, ModelRequest } from './model.ts';
import { type ProviderManners, promptOf, toolOptionsOf } from './provider-prompt.ts';
import { BrokenOff, readStream } from './stream-reading.ts';

// When a request to a model endpoint is given up.

type Deadline = {
  /** Fires with the caller's signal, or when the endpoint is silent or takes too long. */
  readonly signal: AbortSignal;
  /** Something arrived. */
  heard(): void;
  /** The request is over; what is still under way of it ends too. */
  end(): void;
};

/**
 * Starts to wait for an endpoint.
 *
 * @param silenceMs how long nothing may arrive
 * @param totalMs how long all of it may take
 */
function startDeadline(signal: AbortSignal, clock: Clock, silenceMs: number, totalMs: number): Deadline {
  const overdue = new AbortController();
  const giveUp = (what: string) => () => overdue.abort(new ReveilleError('unavailable', `the model endpoint ${what}`));
  const cancelTotal = clock.after(totalMs, giveUp(`had not finished after ${totalMs / 1000} s`));
  const silent = giveUp(`sent nothing for ${silenceMs / 1000} s`);
  let cancelSilence = clock.after(silenceMs, silent);
  return {
    signal: AbortSignal.any([signal, overdue.signal]),
    heard() {
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

/** What every endpoint needs. */
export type EndpointOptions = {
  /** The endpoint's address up to and without the path of its operation. */
  baseUrl: string;
  model: string;
  apiKey: string | undefined;
  /** Of the variables that all this comes from: `NEO`, `EXECUTOR`. */
  prefix: string;
  clock: Clock;
  /**
   * A request in which nothing arrives for this long has failed; 5 minutes unless told, which slow local models need.
   */
  silenceMs?: number;
  /** A request may take this long in all; 30 minutes unless told. */
  totalMs?: number;
};

/**
 * A redirect is an answer like any other: following it would hand the conversation to a host that nobody configured.
 */
export const fetchWithoutRedirects: typeof fetch = (input, init) => fetch(input, { ...init, redirect: 'manual' });

/** An answer that began well and could not be read to its end is thrown with its status, 200. */
const isSuccess = (status: number | undefined) => status !== undefined && status >= 200 && status < 300;

/** What a thrown value says: the innermost cause knows best. */
function wordsOf(thrown: unknown): string {
  if (!(thrown instanceof Error)) return JSON.stringify(thrown) ?? String(thrown);
  return thrown.cause instanceof Error ? wordsOf(thrown.cause) : thrown.message;
}

/** Makes a model over a provider's. Nothing is asked of the endpoint until the first request. */
export function streamedModel(language: LanguageModelV4, manners: ProviderManners, options: EndpointOptions): Model {
  const { clock, silenceMs = 5 * 60_000, totalMs = 30 * 60_000, apiKey, prefix } = options;

  async function read(request: ModelRequest, limit: Deadline): Promise<ModelAnswer> {
    const { stream } = await language.doStream({
      prompt: promptOf(request, manners),
      ...toolOptionsOf(request, manners),
      abortSignal: limit.signal,
    });
    const reader = readStream(options.model, request.onText);
    for await (const part of stream) {
      limit.heard();
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
        throw streamError(thrown instanceof BrokenOff ? thrown.message : wordsOf(thrown), apiKey);
      } finally {
        limit.end();
      }
    },
  };
}
