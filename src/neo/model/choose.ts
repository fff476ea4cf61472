/** Which model a configuration asks for. */
import type { Clock } from '../../kit/clock/clock.ts';
import { endpointModel } from '../../kit/model/endpoint.ts';
import type { ModelConfig } from '../../kit/model/settings.ts';
import { offlineModel } from './offline.ts';
import type { NeoModel } from './request.ts';

/** The model of a configuration. The packages behind a real one are loaded with its first request. */
export function chooseModel(config: ModelConfig, clock: Clock): NeoModel {
  return config.kind === 'offline' ? offlineModel : endpointModel(config, 'NEO', clock);
}
