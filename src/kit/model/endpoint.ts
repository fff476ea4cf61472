/**
 * A model endpoint: the model, for each supported interface, and the settings, which are the same for every daemon,
 * each under its own prefix (docs/reference/settings.md).
 */
import { z } from 'zod';
import { ReveilleError } from '../../wire/errors.ts';
import {
  isOnThisComputer,
  parsePrefixed,
  prefixed,
  type Settings,
  secretType,
  stopStart,
  urlSetting,
} from '../../wire/settings.ts';
import type { Clock } from '../clock/clock.ts';
import { failSpan, inSpan, measure, type SpanFacts } from '../trace/trace.ts';
import type { Model, ModelAnswer } from './model.ts';

/** A model endpoint. */
export type EndpointConfig = {
  readonly kind: 'endpoint';
  /** The endpoint's interface; OpenAI's chat completions if absent. */
  readonly provider?: 'anthropic';
  readonly baseUrl: string;
  readonly model: string;
  readonly apiKey: string | undefined;
};

/** Without an endpoint, a daemon works with its offline functions only. */
export type ModelConfig = { readonly kind: 'offline' } | EndpointConfig;

const shape = {
  /** The name of the language model at the endpoint; `offline` for none. */
  MODEL: z.string().max(200).optional(),
  /** The endpoint's interface: chat completions, or Anthropic's. Derived from the address if unset. */
  MODEL_PROVIDER: z.enum(['openai', 'anthropic']).optional(),
  /** The address of the endpoint. There is no default. */
  MODEL_BASE_URL: urlSetting.optional(),
  /** The key of the endpoint. */
  MODEL_API_KEY: secretType(
    z.string().regex(/^[\x21-\x7e]{1,4096}$/, 'must be printable ASCII without spaces'),
  ).optional(),
};
/** The variables as members of a daemon's schema. */
export const modelSettings = <Prefix extends string>(prefix: Prefix) => prefixed(prefix, shape);

/** An address that may be shown: secrets are only in the key's own variable. */
function addressOf(prefix: string, baseUrl: string): URL {
  const address = new URL(baseUrl);
  const { username, password, search } = address;
  if (username === '' && password === '' && search === '') return address;
  return stopStart(
    `${prefix}_MODEL_BASE_URL must be an address without a user name, password or query; a key goes into ${prefix}_MODEL_API_KEY`,
  );
}

/**
 * The configured model. There is no default address, so a key is only sent to an address from the settings. An
 * incomplete configuration stops the start.
 *
 * @param prefix of the variables: `NEO`, `EXECUTOR`
 * @returns the model, and warnings for the log
 * @throws ReveilleError `invalid_request`
 */
export function parseModelConfig(prefix: string, settings: Settings): { model: ModelConfig; warnings: string[] } {
  const read = parsePrefixed(prefix, shape, settings);
  const { MODEL: model, MODEL_BASE_URL: baseUrl, MODEL_API_KEY: apiKey } = read;
  if (model === 'offline' || (model === undefined && baseUrl === undefined && apiKey === undefined)) {
    return { model: { kind: 'offline' }, warnings: [] };
  }
  if (baseUrl === undefined) {
    const given = model === undefined ? `${prefix}_MODEL_API_KEY` : `${prefix}_MODEL`;
    stopStart(
      `${prefix}_MODEL_BASE_URL is not set, but ${given} is: give the endpoint's address, such as https://api.openai.com/v1`,
    );
  }
  if (model === undefined) {
    stopStart(
      `${prefix}_MODEL is not set, but ${prefix}_MODEL_BASE_URL is: give the name of a model that the endpoint serves`,
    );
  }
  const address = addressOf(prefix, baseUrl);
  // Anthropic's own address identifies the interface; a gateway to it needs the setting.
  const provider = read.MODEL_PROVIDER ?? (address.hostname === 'api.anthropic.com' ? 'anthropic' : 'openai');
  const isUnencrypted = apiKey !== undefined && address.protocol === 'http:' && !isOnThisComputer(baseUrl);
  return {
    model: { kind: 'endpoint', ...(provider === 'anthropic' ? { provider } : {}), baseUrl, model, apiKey },
    warnings: isUnencrypted
      ? [`${prefix}_MODEL_BASE_URL is not https: ${prefix}_MODEL_API_KEY and conversations are sent unencrypted`]
      : [],
  };
}

/**
 * Creates the model. Its packages are loaded with the first request.
 *
 * @param prefix of the configuration's variables, for error messages: `NEO`, `EXECUTOR`
 */
export function endpointModel(config: EndpointConfig, prefix: string, clock: Clock): Model {
  const { provider, kind: _, ...endpoint } = config;
  const options = { ...endpoint, prefix, clock };
  const load = async (): Promise<Model> => {
    if (provider === 'anthropic') return (await import('./anthropic.ts')).anthropicModel(options);
    return (await import('./openai-compatible.ts')).openAICompatibleModel(options);
  };
  const loadOrFail = () =>
    load().catch((cause: unknown) => {
      loaded = undefined;
      const what = `the provider package of the model endpoint cannot be loaded; run "npm ci" again`;
      throw new ReveilleError('unavailable', what, { retryable: false, cause });
    });
  let loaded: Promise<Model> | undefined;
  return {
    name: config.model,
    callsTools: true,
    named: (model) => endpointModel({ ...config, model }, prefix, clock),
    async generate(request) {
      loaded ??= loadOrFail();
      const model = await loaded;
      return observed(config, clock, () => model.generate(request));
    },
  };
}

/** A request to a model with its span and its measurements (the conventions for GenAI). */
function observed(
  { provider, baseUrl, model }: EndpointConfig,
  clock: Clock,
  ask: () => Promise<ModelAnswer>,
): Promise<ModelAnswer> {
  const { hostname, port, protocol } = new URL(baseUrl);
  const common = {
    'gen_ai.operation.name': 'chat',
    'gen_ai.provider.name': provider ?? 'openai',
    'gen_ai.request.model': model,
    'server.address': hostname,
    'server.port': Number(port) || (protocol === 'https:' ? 443 : 80),
  };
  const facts = (): SpanFacts => ({ kind: 'client', attributes: common });
  const began = clock.monotonic();
  const end = (more: object) =>
    measure('gen_ai.client.operation.duration', (clock.monotonic() - began) / 1000, () => ({ ...common, ...more }));
  return inSpan(`chat ${model}`, facts, async (span) => {
    try {
      const answer = await ask();
      const { inputTokens, outputTokens } = answer.usage ?? {};
      const answered = { 'gen_ai.response.model': answer.model };
      span?.setAttributes({
        ...answered,
        'gen_ai.usage.input_tokens': inputTokens,
        'gen_ai.usage.output_tokens': outputTokens,
        ...(answer.cutOff === undefined && {
          'gen_ai.response.finish_reasons': [answer.toolCalls?.length ? 'tool_calls' : 'stop'],
        }),
      });
      if (answer.cutOff !== undefined) failSpan(span, 'cut_off');
      end(answered);
      for (const [type, tokens] of Object.entries({ input: inputTokens, output: outputTokens }))
        if (tokens !== undefined)
          measure('gen_ai.client.token.usage', tokens, () => ({
            ...common,
            ...answered,
            'gen_ai.token.type': type,
          }));
      return answer;
    } catch (thrown) {
      end({ 'error.type': thrown instanceof ReveilleError ? thrown.code : '_OTHER' });
      throw thrown;
    }
  });
}
