/**
 * Embeddings from any endpoint with OpenAI's `/embeddings` interface. One request, no retries. The provider package is
 * loaded with the first request.
 */
import { type Clock, within } from '../../../kit/clock/clock.ts';
import { endpointError, streamError } from '../../../kit/model/endpoint-error.ts';
import { ReveilleError, thrownText } from '../../../wire/errors.ts';
import { unitVector } from './sketch.ts';

export type EmbeddingConfig = {
  /** The endpoint's address up to and without `/embeddings`. */
  readonly baseUrl: string;
  readonly model: string;
  readonly apiKey: string | undefined;
};

export type EmbedOptions = { readonly signal: AbortSignal; readonly timeoutMs: number };

/**
 * Makes a vector of length 1 of each text, all of the same number of dimensions.
 *
 * @throws ReveilleError whose message may be shown to people; retryable when the same request may succeed later
 */
export type Embed = (texts: readonly string[], options: EmbedOptions) => Promise<Float32Array[]>;

/** More than any model has; the sketch of a vector must stay small. */
const DIMENSIONS_MAX = 16_384;

/** A redirect would send memories to a host that is not configured. */
const fetchWithoutRedirects: typeof fetch = (input, init) => fetch(input, { ...init, redirect: 'manual' });

/** The error messages for the model endpoint are adapted to this one. */
function ofEmbeddings({ code, message, retryable, retryAfterSeconds: wait }: ReveilleError): ReveilleError {
  const text = message
    .replace('the model endpoint', 'the embedding endpoint')
    .replace('check NEO_MODEL and', 'check NEO_EMBED_MODEL and');
  return new ReveilleError(code, text, { retryable, ...(wait === undefined ? {} : { retryAfterSeconds: wait }) });
}

function checked(embeddings: readonly (readonly number[])[], wanted: number): Float32Array[] {
  const invalidAnswer = (what: string) => new ReveilleError('unavailable', `the embedding endpoint ${what}`);
  if (embeddings.length !== wanted) throw invalidAnswer(`answered ${embeddings.length} vectors for ${wanted} texts`);
  const dimensions = embeddings[0]?.length ?? 0;
  if (dimensions === 0 || dimensions > DIMENSIONS_MAX)
    throw invalidAnswer(`answered vectors of ${dimensions} dimensions`);
  return embeddings.map((numbers) => {
    const vector = numbers.length === dimensions ? unitVector(numbers) : undefined;
    if (!vector) throw invalidAnswer('answered vectors of different lengths, or without a direction');
    return vector;
  });
}

/** Makes the function. No request is sent until it is called. */
export function embeddingEndpoint({ baseUrl, model, apiKey }: EmbeddingConfig, clock: Clock): Embed {
  let loaded: ReturnType<typeof load> | undefined;
  const load = async () => {
    const [{ createOpenAICompatible }, { APICallError, embedMany }] = await Promise.all([
      import('@ai-sdk/openai-compatible'),
      import('ai'),
    ]);
    const provider = createOpenAICompatible({
      name: 'endpoint',
      baseURL: baseUrl,
      fetch: fetchWithoutRedirects,
      ...(apiKey === undefined ? {} : { apiKey }),
    });
    return { embedMany, APICallError, model: provider.embeddingModel(model) };
  };

  return async (texts, { signal, timeoutMs }) => {
    loaded ??= load();
    const { embedMany, APICallError, model: embeddingModel } = await loaded;
    return await within(clock, timeoutMs, signal, async (limited) => {
      try {
        const { embeddings } = await embedMany({
          model: embeddingModel,
          values: [...texts],
          maxRetries: 0,
          abortSignal: limited,
        });
        return checked(embeddings, texts.length);
      } catch (thrown) {
        if (signal.aborted) throw signal.reason;
        if (limited.aborted)
          throw new ReveilleError('unavailable', `the embedding endpoint did not answer within ${timeoutMs / 1000} s`);
        if (thrown instanceof ReveilleError) throw thrown;
        if (APICallError.isInstance(thrown) && (thrown.statusCode === undefined || thrown.statusCode >= 300))
          throw ofEmbeddings(endpointError(thrown, { now: clock.now(), apiKey, prefix: 'NEO' }));
        throw ofEmbeddings(streamError(thrownText(thrown), apiKey));
      }
    });
  };
}
