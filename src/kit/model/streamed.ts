/** A streamed model from one of the provider packages. One request, no retries (`retry.ts` has those). */
import { APICallError, type LanguageModelV4, type LanguageModelV4StreamPart } from '@ai-sdk/provider';
import { ReveilleError } from '../../wire/errors.ts';
import type { Clock } from '../clock/clock.ts';
import { endpointError, streamError } from './endpoint-error.ts';
import type { Model, ModelAnswer, ModelRequest, ModelToolCall } from './model.ts';
import { type ProviderTraits, promptOf, toolOptionsOf } from './provider-prompt.ts';

/** Limit of an answer's text, in UTF-16 units, so that an endless answer cannot fill the disk. */
const LONGEST_ANSWER = 256 * 1024;

/** Limit of the arguments of all calls of one answer together, in UTF-16 units. */
const LONGEST_INPUT = 1024 * 1024;

/** Fixed size of a call besides its arguments, so that endless empty calls reach the limit too. */
const CALL_WEIGHT = 256;

const SHOWN_CHARACTERS = 200;

type Finish = Extract<LanguageModelV4StreamPart, { type: 'finish' }>;

function cutOffReason({ unified, raw }: Finish['finishReason']): string | undefined {
  if (unified === 'stop' || unified === 'tool-calls') return undefined;
  if (unified === 'length') return 'the model reached its output limit before it finished';
  if (unified === 'content-filter') return "the endpoint's content filter ended the answer";
  return `the model stopped with finish reason ${JSON.stringify(raw ?? unified)}`;
}

const faulty = (calls: readonly ModelToolCall[], fault: string): ModelToolCall[] =>
  calls.map((call) => ({ ...call, fault }));

/** A stream that ended without a finish reason. */
class IncompleteStream extends Error {}

/** Starts to read an answer. @param configuredModel the model's name until the endpoint sends its own */
function readStream(configuredModel: string, onText: (piece: string) => void) {
  const begun = new Map<string, { name: string; head: string }>();
  const calls: ModelToolCall[] = [];
  let inputSize = 0;
  let text = '';
  let model = configuredModel;
  let finish: Finish | undefined;

  function addText(piece: string): void {
    if (piece === '') return;
    text += piece;
    if (text.length > LONGEST_ANSWER) {
      const message = `the model's answer is longer than ${LONGEST_ANSWER} characters`;
      throw new ReveilleError('unavailable', message, { retryable: false });
    }
    onText(piece);
  }

  function add(part: LanguageModelV4StreamPart): void {
    switch (part.type) {
      case 'text-delta':
        addText(part.delta);
        return;
      case 'tool-input-start':
        inputSize += CALL_WEIGHT;
        begun.set(part.id, { name: part.toolName.slice(0, SHOWN_CHARACTERS), head: '' });
        return;
      case 'tool-input-delta': {
        inputSize += part.delta.length;
        const call = begun.get(part.id);
        if (call && call.head.length < SHOWN_CHARACTERS) call.head += part.delta.slice(0, SHOWN_CHARACTERS);
        return;
      }
      case 'tool-call':
        calls.push({
          id: part.toolCallId,
          name: part.toolName,
          input: part.input,
          ...(part.providerMetadata === undefined ? {} : { opaque: part.providerMetadata }),
        });
        return;
      case 'response-metadata':
        model = part.modelId?.slice(0, 200) || model;
        return;
      case 'finish':
        finish = part;
        return;
      case 'error':
        throw part.error;
    }
  }

  function overflow(): ModelAnswer {
    const requested = [...begun].map(([id, { name, head }]) => ({ id, name, input: head }));
    const fault = `the arguments of this answer's calls were longer than ${LONGEST_INPUT} characters together; none of the calls was made. Request less at once`;
    return { text, model, toolCalls: faulty(requested, fault) };
  }

  return {
    /** Whether the limit is reached, so that reading stops. */
    get full() {
      return inputSize > LONGEST_INPUT;
    },

    add,

    /** @throws IncompleteStream if the stream ended early or is empty */
    end(): ModelAnswer {
      if (inputSize > LONGEST_INPUT) return overflow();
      if (finish === undefined) throw new IncompleteStream('the stream ended early');
      const cutOff = cutOffReason(finish.finishReason);
      if (text === '' && calls.length === 0) {
        throw new IncompleteStream(`the answer is empty${cutOff ? `: ${cutOff}` : ''}`);
      }
      const { inputTokens, outputTokens } = finish.usage;
      const answer = {
        text,
        model,
        usage: {
          ...(inputTokens.total === undefined ? {} : { inputTokens: inputTokens.total }),
          ...(outputTokens.total === undefined ? {} : { outputTokens: outputTokens.total }),
        },
      };
      if (calls.length === 0) {
        return cutOff === undefined ? answer : { ...answer, cutOff };
      }
      // Half of a call's arguments can be valid JSON, so no call of a cut answer is trusted.
      const toolCalls = cutOff === undefined ? calls : faulty(calls, `${cutOff}; none of its calls was made`);
      return { ...answer, toolCalls };
    },
  };
}

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
