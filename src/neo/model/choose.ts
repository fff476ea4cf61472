/** Which model a configuration asks for. */
import type { Clock } from '../../clock/clock.ts';
import type { ModelConfig } from '../config.ts';
import type { Model } from './model.ts';
import { OFFLINE, offlineModel } from './offline.ts';

/** The model of a configuration. The packages behind a real one are loaded with its first request. */
export function chooseModel(config: ModelConfig, clock: Clock): Model {
  if (config.kind === OFFLINE) return offlineModel;
  let loaded: Promise<Model> | undefined;
  const load = async () => {
    const { openAICompatibleModel } = await import('./openai-compatible.ts');
    return openAICompatibleModel({ ...config, clock });
  };
  return {
    name: config.model,
    async generate(request) {
      loaded ??= load();
      return (await loaded).generate(request);
    },
  };
}
