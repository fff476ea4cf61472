/** The conversations as the way to the executor needs them. */
import type { Logger } from '../../kit/log/log.ts';
import type { ContextPiece } from '../../wire/executor.ts';
import type { ConversationStore } from '../conversations/store.ts';
import { ARRIVALS_SHOWN } from '../loop/loop.ts';
import { EARLIER_TURNS } from '../prompt.ts';
import type { GateNotice } from '../tools/surface.ts';
import type { Turn } from '../turn.ts';
import { evidenceFor } from './evidence.ts';

export type Conversations = {
  /** What was said and read, as far as values of a task may come from it; oldest first. */
  evidence(turn: Turn): ContextPiece[];
  /** Tells those who follow a conversation of a gate that no turn waits for. Never throws. */
  tell(conversationId: string, gate: GateNotice): void;
};

export type ConversationSource = Pick<ConversationStore, 'turnsBefore' | 'arrivedAfter' | 'gate'> & {
  readonly journal: Pick<ConversationStore['journal'], 'steps'>;
};

/** Those of a store. */
export function conversationsOf(store: ConversationSource, log: Logger): Conversations {
  return {
    evidence: (turn) =>
      evidenceFor(turn, {
        earlier: store.turnsBefore(turn, EARLIER_TURNS),
        arrived: store.arrivedAfter(turn, ARRIVALS_SHOWN),
        stepsOf: ({ id }) => store.journal.steps(id),
      }),

    tell(conversationId, gate) {
      store.gate({ conversationId }, gate).catch((err: unknown) => log.warn({ err }, 'an event could not be stored'));
    },
  };
}
