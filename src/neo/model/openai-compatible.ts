/**
 * Any endpoint that speaks OpenAI's chat completions, streamed. One request, no retries (`retry.ts` has those). This file is
 * loaded with the first request: the provider packages would slow every start down.
 */
import { createOpenAICompatible } from '@ai-sdk/openai-compatible';
import { APICallError, streamText } from 'ai';
import type { Clock } from '../../clock/clock.ts';
import { ReveilleError } from '../../wire/errors.ts';
import { endpointError, streamError } from './endpoint-error.ts';
import type { Model, ModelAnswer, ModelRequest } from './model.ts';

export type OpenAICompatibleOptions = {
  /** The endpoint's address up to and without `/chat/completions`. */
  baseUrl: string;
  model: string;
  apiKey: string | undefined;
  clock: Clock;
  /** A request in which nothing arrives for this long has failed; 5 minutes unless told, which slow local models need. */
  silenceMs?: number;
  /** A request may take this long in all; 30 minutes unless told. */
  totalMs?: number;
};

/** Nobody reads more than this, and an endpoint that never stops must not fill the disk. In UTF-16 units. */
const LONGEST_ANSWER = 256 * 1024;

/** A redirect is an answer like any other: following it would hand the conversation to a host that nobody configured. */
const fetchWithoutRedirects: typeof fetch = (input, init) => fetch(input, { ...init, redirect: 'manual' });

function cutOffReason(finishReason: string, rawFinishReason: string | undefined): string | undefined {
  if (finishReason === 'stop') return undefined;
  if (finishReason === 'length') return 'the model reached its output limit before it had finished';
  if (finishReason === 'content-filter') return "the endpoint's content filter ended the answer";
  return `the model stopped with finish reason ${JSON.stringify(rawFinishReason ?? finishReason)}`;
}

/** An answer that began well and could not be read to its end is thrown with its status, 200. */
const isSuccess = (status: number | undefined) => status !== undefined && status >= 200 && status < 300;

/** What a thrown value says: the innermost cause knows best. */
function wordsOf(thrown: unknown): string {
  if (!(thrown instanceof Error)) return JSON.stringify(thrown) ?? String(thrown);
  return thrown.cause instanceof Error ? wordsOf(thrown.cause) : thrown.message;
}

/** An abort signal that fires with the caller's, or when the endpoint is silent or takes too long. */
function deadline(signal: AbortSignal, clock: Clock, silenceMs: number, totalMs: number) {
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
    /** The request is over; what is still under way of it ends too. */
    end() {
      cancelSilence();
      cancelTotal();
      overdue.abort();
    },
  };
}

/** Makes the model. Nothing is asked of the endpoint until the first request. */
export function openAICompatibleModel(options: OpenAICompatibleOptions): Model {
  const { clock, silenceMs = 5 * 60_000, totalMs = 30 * 60_000, apiKey } = options;
  const provider = createOpenAICompatible({
    name: 'endpoint',
    baseURL: options.baseUrl,
    fetch: fetchWithoutRedirects,
    includeUsage: true,
    ...(apiKey === undefined ? {} : { apiKey }),
  });

  async function read({ system, messages, onText }: ModelRequest, limit: ReturnType<typeof deadline>) {
    const result = streamText({
      model: provider.chatModel(options.model),
      instructions: system,
      messages: messages.map(({ role, content }) => ({ role, content })),
      abortSignal: limit.signal,
      maxRetries: 0,
      // Errors come as parts of the stream as well; without a listener they would be printed.
      onError: () => {},
    });
    let text = '';
    let answer: ModelAnswer | undefined;
    let model = options.model;
    for await (const part of result.stream) {
      limit.heard();
      if (part.type === 'text-delta' && part.text !== '') {
        text += part.text;
        if (text.length > LONGEST_ANSWER) {
          const message = `the model's answer is longer than ${LONGEST_ANSWER} characters`;
          throw new ReveilleError('unavailable', message, { retryable: false });
        }
        onText(part.text);
      } else if (part.type === 'finish-step') {
        model = part.response.modelId.slice(0, 200) || model;
      } else if (part.type === 'finish') {
        const { inputTokens, outputTokens } = part.totalUsage;
        const cutOff = cutOffReason(part.finishReason, part.rawFinishReason);
        answer = {
          text,
          model,
          usage: {
            ...(inputTokens === undefined ? {} : { inputTokens }),
            ...(outputTokens === undefined ? {} : { outputTokens }),
          },
          ...(cutOff === undefined ? {} : { cutOff }),
        };
      } else if (part.type === 'error') {
        throw part.error;
      } else if (part.type === 'abort') {
        throw limit.signal.reason;
      }
    }
    if (answer === undefined) throw streamError('the stream ended early', apiKey);
    if (answer.text === '')
      throw streamError(`the answer is empty${answer.cutOff ? `: ${answer.cutOff}` : ''}`, apiKey);
    return answer;
  }

  return {
    name: options.model,
    async generate(request) {
      const limit = deadline(request.signal, clock, silenceMs, totalMs);
      try {
        return await read(request, limit);
      } catch (thrown) {
        if (limit.signal.aborted) throw limit.signal.reason;
        if (thrown instanceof ReveilleError) throw thrown;
        if (APICallError.isInstance(thrown) && !isSuccess(thrown.statusCode))
          throw endpointError(thrown, clock.now(), apiKey);
        throw streamError(wordsOf(thrown), apiKey);
      } finally {
        limit.end();
      }
    },
  };
}
