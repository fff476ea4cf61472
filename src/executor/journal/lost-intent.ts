/** An intent of which not even the first envelope holds. Pure. */
import { NO_HASH } from '../../wire/intent-receipt.ts';
import type { ChainState } from '../receipt/chain-state.ts';

/** All that its row can still say. */
export function lostIntent(intentId: string, user: string): ChainState {
  return {
    accepted: {
      at: '1970-01-01T00:00:00.000Z',
      intent_id: intentId,
      principal: { user, origin: 'person' },
      manifest_sha256: NO_HASH,
      policy_sha256: NO_HASH,
    },
    nodes: new Map(),
    escalateStarted: false,
    refusals: 0,
  };
}
