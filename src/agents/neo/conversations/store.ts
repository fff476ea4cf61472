/**
 * Neo's conversations: one SQLite file, one process. Every write resolves when it is on disk. The events about a change
 * are stored in the transaction of the change.
 */

import { join } from 'node:path';
import type { Clock } from '../../../kit/clock/clock.ts';
import {
  type ActivityCursor,
  type Conversation,
  conversationTable,
  turnQueries,
} from '../../../turns/conversations.ts';
import { type EventFilter, eventLog, type StoredEvent } from '../../../turns/event-log.ts';
import type { NewTurn, Turn } from '../../../turns/turn.ts';
import { openTurnStore } from '../../../turns/turn-store.ts';
import { turnEventOf } from '../../../turns/turn-view.ts';
import { ReveilleError } from '../../../wire/errors.ts';
import type { TurnEventData } from '../../../wire/turn.ts';
import { callBegunEvent, callFinishedEvent, type Journal } from '../loop/journal.ts';
import type { GateNotice } from '../tools/surface.ts';
import { stepTable } from './step-table.ts';

/** A full queue stays full for a while: turns take seconds to minutes. */
const FULL_RETRY_SECONDS = 60;

/** How many events a reader can lag behind before it misses some. */
export const EVENTS_RETAINED = 10_000;

export type ConversationStoreOptions = {
  /** The folder that contains `neo.db`; created when missing. */
  dataDir: string;
  clock: Clock;
  /** Called after events have become durable. */
  onEvents?: () => void;
  eventsRetained?: number;
  /** Called after a turn report has become durable. Without it none are stored. */
  onTurnReport?: () => void;
};

type GateTurn = Pick<Turn, 'conversationId'> & { readonly id?: string | undefined };

/** Opens or creates the store. Throws the errors of `openDatabase`. */
export function openConversationStore(options: ConversationStoreOptions) {
  const { dataDir, clock, onEvents, eventsRetained = EVENTS_RETAINED, onTurnReport } = options;
  const { db, writes, run, ...turns } = openTurnStore({
    path: join(dataDir, 'neo.db'),
    migrations: new URL('./migrations/', import.meta.url),
    ...{ clock, perUser: false, onTurnReport, onChange: onEvents },
    hooks: () => ({
      accepting: (turn) => conversations.addTurn(turn.conversationId, turn.message, turn.createdAt),
      changed(turn, { said }) {
        const { id, conversationId, status, finishedAt } = turn;
        if (finishedAt !== undefined) steps.shorten(id);
        if (finishedAt !== undefined && said !== undefined) {
          conversations.touch(conversationId, finishedAt);
          events.foldSaid(conversationId, id, said);
        }
        if (status === 'interrupted') notice(turn, 'interrupted', turn.error!);
        events.append('turn', turnEventOf(turn));
      },
    }),
  });
  const steps = stepTable(db);
  const conversations = conversationTable(db);
  const events = eventLog(db, eventsRetained);
  const notice = (turn: Turn, code: TurnEventData<'notice'>['code'], text: string) =>
    events.append('notice', { conversation_id: turn.conversationId, turn_id: turn.id, code, text });
  writes.runNow(() => events.dropOld());

  return {
    ...turns,
    ...turnQueries(db),

    /**
     * Stores a turn as `queued`, in order of acceptance; creates its conversation when it is new.
     *
     * @param isFull called when the turn is new; if full, the turn is not stored
     * @returns the turn, or with `deduped` the existing turn, which is unchanged
     * @throws ReveilleError `unavailable` when it could not be stored, `rate_limited` when the queue is full
     */
    accept(turn: NewTurn, isFull: () => boolean = () => false): Promise<{ turn: Turn; deduped: boolean }> {
      return turns.accept(turn, () => {
        if (!isFull()) return;
        const message = 'too many turns already wait for their agent (NEO_MAX_QUEUED); retry later';
        throw new ReveilleError('rate_limited', message, { retryAfterSeconds: FULL_RETRY_SECONDS });
      });
    },

    /** A turn that was running when the last process ended waits again. @param text the notice for its readers */
    putBackAfterCrash: (turn: Turn, text: string) => turns.putBack(turn, () => notice(turn, 'run_again', text)),

    /** Stores a piece of a reply for the readers of the event stream. */
    say(turn: Turn, offset: number, text: string): Promise<void> {
      const data = { conversation_id: turn.conversationId, turn_id: turn.id, offset, text };
      return run(() => events.append('say', data));
    },

    /** Stores the reason why a turn waits. */
    status(turn: Turn, text: string): Promise<void> {
      const status = { conversation_id: turn.conversationId, turn_id: turn.id, text };
      return run(() => events.append('status', status));
    },

    /** Stores a gate of the executor or its result; also after the end of its turn. */
    gate({ conversationId, id }: GateTurn, gate: GateNotice): Promise<void> {
      return run(() => events.append('gate', { conversation_id: conversationId, turn_id: id, ...gate }));
    },

    /** The journal of turns: a call is stored before it is made, its outcome before the model reads it. */
    journal: {
      steps: (turnId) => steps.of(turnId),

      beginStep: (turn, step) =>
        run(() => {
          steps.insert(turn.id, step, clock.now());
          for (const { index, call, answer } of step.calls) {
            events.append('tool', callBegunEvent(turn, step.step, index, call));
            if (answer) events.append('tool', callFinishedEvent(turn, step.step, index, call, answer, 0));
          }
        }),

      finishCall: (turn, step, { index, call, answer }, tookMs) =>
        run(() => {
          steps.finish(turn.id, step, index, answer, clock.now());
          events.append('tool', callFinishedEvent(turn, step, index, call, answer, tookMs));
        }),
    } satisfies Journal,

    conversation: (id: string): Conversation | undefined => conversations.get(id),

    listConversations: (limit: number, cursor?: ActivityCursor) => conversations.list(limit, cursor),

    eventsAfter: (id: number, limit: number, filter: EventFilter): StoredEvent[] => events.after(id, limit, filter),

    /** The range of ids that the event log contains. */
    newestEventOf: (conversationId: string): number => events.newestOf(conversationId),
    eventBounds: () => ({ droppedThrough: events.droppedThrough(), newest: events.newestId() }),
  };
}
export type ConversationStore = ReturnType<typeof openConversationStore>;
