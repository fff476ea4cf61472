/**
 * Neo's conversations: one SQLite file, one process. Every write resolves when it is on disk. The events about a change
 * are stored in the transaction of the change.
 */

import { join } from 'node:path';
import type { Clock } from '../../kit/clock/clock.ts';
import type { ReceiptOutbox } from '../../kit/outbox/receipt-sender.ts';
import { receiptTable } from '../../kit/outbox/receipt-table.ts';
import { GroupCommit } from '../../kit/sqlite/group-commit.ts';
import { openDatabase } from '../../kit/sqlite/open.ts';
import { ReveilleError } from '../../wire/errors.ts';
import { isOccurrence } from '../../wire/fire-id.ts';
import type { TurnEventData } from '../../wire/turn.ts';
import { callBegunEvent, callFinishedEvent } from '../loop/call-events.ts';
import type { Journal } from '../loop/journal.ts';
import type { GateNotice } from '../tools/surface.ts';
import { afterCrash, MAX_ATTEMPTS, type NewTurn, type Outcome, type Turn, turnEventOf, turnReportOf } from '../turn.ts';
import { type ActivityCursor, type Conversation, conversationTable } from './conversation-table.ts';
import { type EventFilter, eventLog, type StoredEvent } from './event-log.ts';
import { stepTable } from './step-table.ts';
import { turnTable } from './turn-table.ts';

/** A full queue stays full for a while: turns take seconds to minutes. */
const FULL_RETRY_SECONDS = 60;

/** How many events a reader can lag behind before it misses some. */
export const EVENTS_RETAINED = 10_000;

/** A page of turns ends early when its text has this many characters, to bound the size of an answer. */
const PAGE_CHARACTERS = 4 * 1024 * 1024;

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

/** The unfinished turns when the store was opened. */
export type Unfinished = { conversationIds: string[]; queued: number };

type GateTurn = Pick<Turn, 'conversationId'> & { readonly id?: string | undefined };

export type TurnPage = { turns: Turn[]; more: boolean };

/** Opens or creates the store. Throws the errors of `openDatabase`. */
export function openConversationStore(options: ConversationStoreOptions) {
  const { dataDir, clock, onEvents = () => {}, eventsRetained = EVENTS_RETAINED, onTurnReport } = options;
  const path = join(dataDir, 'neo.db');
  const migrations = new URL('./migrations/', import.meta.url);
  const file = openDatabase({ path, migrations, clock, lock: 'exclusive' });
  const writes = new GroupCommit(file.db);
  const turns = turnTable(file.db);
  const steps = stepTable(file.db);
  const conversations = conversationTable(file.db);
  const events = eventLog(file.db, eventsRetained);
  const turnReports = receiptTable(file.db);
  const outbox: ReceiptOutbox = {
    waiting: (page) => turnReports.waiting(page),
    remove: (ids) => writes.run(() => turnReports.remove(ids)),
  };

  /** A write that appends events: readers are notified once they are on disk. */
  async function appendingEvents<T>(operation: () => T): Promise<T> {
    const value = await writes.run(operation);
    onEvents();
    return value;
  }

  const appendTurnEvent = (turn: Turn) => events.append('turn', turnEventOf(turn));
  /** Stores a turn report for chronosd in the transaction that changes the turn. A repeated start is not reported. */
  const report = ({ userId, fireId, ...turn }: Turn): boolean => {
    const turnReport = turn.status === 'running' && turn.attempts > 1 ? undefined : turnReportOf(turn, clock.now());
    if (!onTurnReport || userId === undefined || fireId === undefined || !isOccurrence(fireId) || !turnReport)
      return false;
    turnReports.put(userId, fireId, turnReport);
    return true;
  };
  const notice = (turn: Turn, code: TurnEventData<'notice'>['code'], text: string) =>
    events.append('notice', { conversation_id: turn.conversationId, turn_id: turn.id, code, text });

  /** A write that changes a turn's state. The sender of turn reports is notified once one is on disk. */
  async function reporting(operation: () => Turn | undefined): Promise<Turn | undefined> {
    let reported = false;
    const moved = await appendingEvents(() => {
      const turn = operation();
      reported = turn !== undefined && report(turn);
      return turn;
    });
    if (reported) onTurnReport?.();
    return moved;
  }

  function recoverOne(turn: Turn): void {
    const next = afterCrash(turn);
    if (next.status === 'interrupted') {
      const interrupted = turns.interrupt(turn.id, next.error, clock.now());
      steps.shorten(turn.id);
      notice(turn, 'interrupted', next.error);
      if (interrupted) {
        appendTurnEvent(interrupted);
        report(interrupted);
      }
      return;
    }
    const again = turns.putBack(turn.id);
    const text = `Neo was stopped while this turn ran; it runs again (attempt ${turn.attempts + 1} of ${MAX_ATTEMPTS})`;
    notice(turn, 'run_again', text);
    if (again) appendTurnEvent(again);
  }

  return {
    /**
     * Stores a turn as `queued`, in order of acceptance; creates its conversation when it is new.
     *
     * @param isFull called when the turn is new; if full, the turn is not stored
     * @returns the turn, or with `deduped` the existing turn, which is unchanged
     * @throws ReveilleError `unavailable` when it could not be stored, `rate_limited` when the queue is full
     */
    accept(turn: NewTurn, isFull: () => boolean = () => false): Promise<{ turn: Turn; deduped: boolean }> {
      return appendingEvents(() => {
        const known = turns.repeatedBy(turn);
        if (known) return { turn: known, deduped: true };
        if (isFull())
          throw new ReveilleError(
            'rate_limited',
            'too many turns already wait for their agent (NEO_MAX_QUEUED); retry later',
            {
              retryAfterSeconds: FULL_RETRY_SECONDS,
            },
          );
        conversations.addTurn(turn.conversationId, turn.message, turn.createdAt);
        const stored = turns.insert(turn);
        appendTurnEvent(stored);
        return { turn: stored, deduped: false };
      });
    },

    /** Begins the oldest waiting turn of a conversation; `undefined` when none waits. */
    beginNext(conversationId: string): Promise<Turn | undefined> {
      return reporting(() => {
        const turn = turns.beginNext(conversationId, clock.now());
        if (turn) appendTurnEvent(turn);
        return turn;
      });
    },

    /**
     * Ends a running turn.
     *
     * @param text the whole text of its `say` events
     * @returns the updated turn, or `undefined` when this attempt was not running any more
     */
    finish(turn: Turn, outcome: Outcome, text: string): Promise<Turn | undefined> {
      return reporting(() => {
        const now = clock.now();
        const finished = turns.finish(turn, outcome, now);
        if (!finished) return undefined;
        conversations.touch(turn.conversationId, now);
        events.foldSaid(turn.conversationId, turn.id, text);
        steps.shorten(turn.id);
        appendTurnEvent(finished);
        return finished;
      });
    },

    /**
     * Makes a running turn wait for its retry.
     *
     * @returns the updated turn, or `undefined` when this attempt was not running any more
     */
    park(turn: Turn, { error, model }: { error: string; model: string }, at: number): Promise<Turn | undefined> {
      return reporting(() => {
        const parked = turns.park(turn, { error, model, at });
        if (parked) appendTurnEvent(parked);
        return parked;
      });
    },

    /** Makes turns ready whose retry time has come. @returns the conversation of each of them */
    release: (now: number): Promise<string[]> => writes.run(() => turns.release(now)),

    /** The time of the next retry, epoch milliseconds; `undefined` when no turn waits for one. */
    nextRetry: () => turns.nextRetry(),

    /** Ends a turn that has not begun yet; `undefined` when it has begun, or does not exist. */
    endQueued(id: string, error: string): Promise<Turn | undefined> {
      return reporting(() => {
        const ended = turns.endQueued(id, error, clock.now());
        if (ended) appendTurnEvent(ended);
        return ended;
      });
    },

    /** Puts a running turn back to `queued`, for the next start. */
    putBack(turn: Turn): Promise<void> {
      return appendingEvents(() => {
        const waiting = turns.putBack(turn.id);
        if (waiting) appendTurnEvent(waiting);
      });
    },

    /** Stores a piece of a reply for the readers of the event stream. */
    say(turn: Turn, offset: number, text: string): Promise<void> {
      const data = { conversation_id: turn.conversationId, turn_id: turn.id, offset, text };
      return appendingEvents(() => events.append('say', data));
    },

    /** Stores the reason why a turn waits. */
    status(turn: Turn, text: string): Promise<void> {
      const status = { conversation_id: turn.conversationId, turn_id: turn.id, text };
      return appendingEvents(() => events.append('status', status));
    },

    /** Stores a gate of the executor or its result; also after the end of its turn. */
    gate({ conversationId, id }: GateTurn, gate: GateNotice): Promise<void> {
      return appendingEvents(() => events.append('gate', { conversation_id: conversationId, turn_id: id, ...gate }));
    },

    /** The journal of turns: a call is stored before it is made, its outcome before the model reads it. */
    journal: {
      steps: (turnId) => steps.of(turnId),

      beginStep: (turn, step) =>
        appendingEvents(() => {
          steps.insert(turn.id, step, clock.now());
          for (const { index, call, answer } of step.calls) {
            events.append('tool', callBegunEvent(turn, step.step, index, call));
            if (answer) events.append('tool', callFinishedEvent(turn, step.step, index, call, answer, 0));
          }
        }),

      finishCall: (turn, step, { index, call, answer }, tookMs) =>
        appendingEvents(() => {
          steps.finish(turn.id, step, index, answer, clock.now());
          events.append('tool', callFinishedEvent(turn, step, index, call, answer, tookMs));
        }),
    } satisfies Journal,

    /** Turns of the conversation that were accepted while this one waited or ran, oldest first. */
    arrivedAfter: (turn: Turn, limit: number) => turns.queuedAfter(turn.conversationId, turn.seq, limit),

    /** A turn by its id alone. */
    turnById: (id: string): Turn | undefined => turns.byId(id),

    /** Settles the turns that were running when the last process ended; runs before anything else. */
    recover(): Unfinished {
      writes.runNow(() => {
        for (const turn of turns.running()) recoverOne(turn);
        events.dropOld();
      });
      onEvents();
      const waiting = turns.waiting();
      return {
        conversationIds: waiting.map(({ id }) => id),
        queued: waiting.reduce((sum, { turns: n }) => sum + n, 0),
      };
    },

    hasQueued: (conversationId: string) => turns.hasQueued(conversationId),

    /** The newest `limit` turns of the conversation before this one, oldest first. */
    turnsBefore: (turn: Turn, limit: number) => turns.before(turn.conversationId, turn.seq, limit),

    conversation: (id: string): Conversation | undefined => conversations.get(id),

    listConversations: (limit: number, cursor?: ActivityCursor) => conversations.list(limit, cursor),

    /** The done turns of all conversations that were accepted last, oldest first. */
    newestDone: (limit: number): Turn[] => turns.newestDone(limit),

    /** A turn of this conversation. */
    turn: (id: string, conversationId: string): Turn | undefined => turns.get(id, conversationId),

    /**
     * Turns of a conversation after a position in the order (0 for all), oldest first; `more` when the page ended
     * early.
     */
    turnsAfter(conversationId: string, seq: number, limit: number): TurnPage {
      const page: Turn[] = [];
      let characters = 0;
      for (const turn of turns.after(conversationId, seq)) {
        if (page.length === limit || characters > PAGE_CHARACTERS) return { turns: page, more: true };
        page.push(turn);
        characters += turn.message.length + (turn.payload?.length ?? 0) + (turn.reply?.length ?? 0);
      }
      return { turns: page, more: false };
    },

    /** Turn reports that chronosd has not confirmed yet. */
    outbox,

    eventsAfter: (id: number, limit: number, filter: EventFilter): StoredEvent[] => events.after(id, limit, filter),

    /** The range of ids that the event log contains. */
    newestEventOf: (conversationId: string): number => events.newestOf(conversationId),
    eventBounds: () => ({ droppedThrough: events.droppedThrough(), newest: events.newestId() }),

    /** Waits for pending writes and closes the file. */
    async close(): Promise<void> {
      await writes.drain();
      file.close();
    },
  };
}
export type ConversationStore = ReturnType<typeof openConversationStore>;
