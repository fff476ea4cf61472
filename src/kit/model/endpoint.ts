/** The model at an endpoint, for each supported interface. */

import { ReveilleError } from '../../wire/errors.ts';
import type { Clock } from '../clock/clock.ts';
import type { Model } from './model.ts';
import type { EndpointConfig } from './settings.ts';

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
    async generate(request) {
      loaded ??= loadOrFail();
      return (await loaded).generate(request);
    },
  };
}
