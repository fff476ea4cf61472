/** Which model a configuration asks for. */
import type { Clock } from '../../clock/clock.ts';
import { endpointModel } from '../../model-kit/endpoint.ts';
import type { ModelConfig } from '../../model-kit/settings.ts';
import { offlineModel } from './offline.ts';
import type { NeoModel } from './request.ts';

/** The model of a configuration. The packages behind a real one are loaded with its first request. */
export function chooseModel(config: ModelConfig, clock: Clock): NeoModel {
  return config.kind === 'offline' ? offlineModel : endpointModel(config, 'NEO', clock);
}
