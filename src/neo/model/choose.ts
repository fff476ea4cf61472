/** Which model a configuration asks for. */
import type { Clock } from '../../clock/clock.ts';
import { ReveilleError } from '../../wire/errors.ts';
import type { ModelConfig } from '../config.ts';
import type { Model } from './model.ts';
import { OFFLINE, offlineModel } from './offline.ts';

/** The model of a configuration. The packages behind a real one are loaded with its first request. */
export function chooseModel(config: ModelConfig, clock: Clock): Model {
  if (config.kind === OFFLINE) return offlineModel;
  const { provider, ...endpoint } = config;
  const load = async (): Promise<Model> => {
    if (provider === 'anthropic') return (await import('./anthropic.ts')).anthropicModel({ ...endpoint, clock });
    return (await import('./openai-compatible.ts')).openAICompatibleModel({ ...endpoint, clock });
  };
  const loadOrSay = () =>
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
      loaded ??= loadOrSay();
      return (await loaded).generate(request);
    },
  };
}
