/**
 * Neo's memory of what was said: one SQLite file, one process. Every write resolves when it is on disk, and the events
 * that tell of a change are stored in the transaction that makes it.
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
import { afterCrash, MAX_ATTEMPTS, type NewTurn, type Outcome, reportOf, type Turn, turnEventOf } from '../turn.ts';
import { type ActivityCursor, type Conversation, conversationTable } from './conversation-table.ts';
import { type EventFilter, eventLog, type StoredEvent } from './event-log.ts';
import { stepTable } from './step-table.ts';
import { turnTable } from './turn-table.ts';

/** A queue that is full is not soon empty: turns take seconds to minutes. */
const FULL_RETRY_SECONDS = 60;

/** How many events a reader can fall behind before it misses some. */
export const EVENTS_RETAINED = 10_000;

/** A page of turns ends early when its text has this many characters, so that no answer grows without bound. */
const PAGE_CHARACTERS = 4 * 1024 * 1024;

export type ConversationStoreOptions = {
  /** The folder that holds `neo.db`; made when missing. */
  dataDir: string;
  clock: Clock;
  /** Called after events have become durable. */
  onEvents?: () => void;
  eventsRetained?: number;
  /** Called after a receipt has become durable. Without it none are kept. */
  onReceipt?: () => void;
};

/** What stood unfinished when the store was opened. */
export type Unfinished = { conversationIds: string[]; queued: number };

type GateTurn = Pick<Turn, 'conversationId'> & { readonly id?: string | undefined };

export type TurnPage = { turns: Turn[]; more: boolean };

/** Opens (or makes) the store. Throws what `openDatabase` throws. */
export function openConversationStore(options: ConversationStoreOptions) {
  const { dataDir, clock, onEvents = () => {}, eventsRetained = EVENTS_RETAINED, onReceipt } = options;
  const path = join(dataDir, 'neo.db');
  const migrations = new URL('./migrations/', import.meta.url);
  const file = openDatabase({ path, migrations, clock, lock: 'exclusive' });
  const writes = new GroupCommit(file.db);
  const turns = turnTable(file.db);
  const steps = stepTable(file.db);
  const conversations = conversationTable(file.db);
  const events = eventLog(file.db, eventsRetained);
  const receipts = receiptTable(file.db);
  const outbox: ReceiptOutbox = {
    waiting: (page) => receipts.waiting(page),
    remove: (ids) => writes.run(() => receipts.remove(ids)),
  };

  /** A write whose operation appends events: readers are told once they are on disk. */
  async function telling<T>(operation: () => T): Promise<T> {
    const value = await writes.run(operation);
    onEvents();
    return value;
  }

  const tell = (turn: Turn) => events.append('turn', turnEventOf(turn));
  /**
   * Keeps what chronosd is to hear of a wake's turn, in the transaction that moves it on. A turn that begins again is
   * no news.
   */
  const report = ({ userId, fireId, ...turn }: Turn): boolean => {
    const news = turn.status === 'running' && turn.attempts > 1 ? undefined : reportOf(turn, clock.now());
    if (!onReceipt || userId === undefined || fireId === undefined || !isOccurrence(fireId) || !news) return false;
    receipts.put(userId, fireId, news);
    return true;
  };
  const notice = (turn: Turn, code: TurnEventData<'notice'>['code'], text: string) =>
    events.append('notice', { conversation_id: turn.conversationId, turn_id: turn.id, code, text });

  /** A write that moves a turn on: whoever posts receipts is told once one is on disk. */
  async function reporting(operation: () => Turn | undefined): Promise<Turn | undefined> {
    let reported = false;
    const moved = await telling(() => {
      const turn = operation();
      reported = turn !== undefined && report(turn);
      return turn;
    });
    if (reported) onReceipt?.();
    return moved;
  }

  function recoverOne(turn: Turn): void {
    const fate = afterCrash(turn);
    if (fate.status === 'interrupted') {
      const given = turns.interrupt(turn.id, fate.error, clock.now());
      steps.shorten(turn.id);
      notice(turn, 'interrupted', fate.error);
      if (given) {
        tell(given);
        report(given);
      }
      return;
    }
    const again = turns.putBack(turn.id);
    const text = `Neo was stopped while this turn ran; it runs again (attempt ${turn.attempts + 1} of ${MAX_ATTEMPTS})`;
    notice(turn, 'run_again', text);
    if (again) tell(again);
  }

  return {
    /**
     * Stores a turn as `queued`, in order of acceptance; makes its conversation when it is new.
     *
     * @param isFull asked when the turn is new; one that finds no room is not stored
     * @returns the turn, or with `deduped` the one that it repeats, of which nothing changes
     * @throws ReveilleError `unavailable` when it could not be stored, `rate_limited` when there is no room
     */
    accept(turn: NewTurn, isFull: () => boolean = () => false): Promise<{ turn: Turn; deduped: boolean }> {
      return telling(() => {
        const known = turns.repeatedBy(turn);
        if (known) return { turn: known, deduped: true };
        if (isFull())
          throw new ReveilleError(
            'rate_limited',
            'too many turns wait for their agent already (NEO_MAX_QUEUED); try later',
            {
              retryAfterSeconds: FULL_RETRY_SECONDS,
            },
          );
        conversations.addTurn(turn.conversationId, turn.message, turn.createdAt);
        const stored = turns.insert(turn);
        tell(stored);
        return { turn: stored, deduped: false };
      });
    },

    /** Begins the oldest turn that waits in a conversation; `undefined` when none does. */
    beginNext(conversationId: string): Promise<Turn | undefined> {
      return reporting(() => {
        const turn = turns.beginNext(conversationId, clock.now());
        if (turn) tell(turn);
        return turn;
      });
    },

    /**
     * Ends a running turn.
     *
     * @param said all that its `say` events have said
     * @returns the turn as it is now, or `undefined` when this attempt was not running any more
     */
    finish(turn: Turn, outcome: Outcome, said: string): Promise<Turn | undefined> {
      return reporting(() => {
        const now = clock.now();
        const finished = turns.finish(turn, outcome, now);
        if (!finished) return undefined;
        conversations.touch(turn.conversationId, now);
        events.foldSaid(turn.conversationId, turn.id, said);
        steps.shorten(turn.id);
        tell(finished);
        return finished;
      });
    },

    /**
     * Lets a running turn wait until it is tried again.
     *
     * @returns the turn as it is now, or `undefined` when this attempt was not running any more
     */
    park(turn: Turn, { error, model }: { error: string; model: string }, at: number): Promise<Turn | undefined> {
      return reporting(() => {
        const parked = turns.park(turn, { error, model, at });
        if (parked) tell(parked);
        return parked;
      });
    },

    /** Lets turns begin whose time to be tried again has come. @returns the conversation of each of them */
    release: (now: number): Promise<string[]> => writes.run(() => turns.release(now)),

    /** When the next turn is tried again, epoch milliseconds; `undefined` when none waits for that. */
    nextRetry: () => turns.nextRetry(),

    /** Ends a turn that has not begun yet; `undefined` when it has begun, or is no turn. */
    endQueued(id: string, error: string): Promise<Turn | undefined> {
      return reporting(() => {
        const ended = turns.endQueued(id, error, clock.now());
        if (ended) tell(ended);
        return ended;
      });
    },

    /** Puts a running turn back to `queued`, for the next start. */
    putBack(turn: Turn): Promise<void> {
      return telling(() => {
        const waiting = turns.putBack(turn.id);
        if (waiting) tell(waiting);
      });
    },

    /** Stores a piece of a reply for the readers of the event stream. */
    say(turn: Turn, offset: number, text: string): Promise<void> {
      const said = { conversation_id: turn.conversationId, turn_id: turn.id, offset, text };
      return telling(() => events.append('say', said));
    },

    /** Stores what a turn is waiting for. */
    status(turn: Turn, text: string): Promise<void> {
      const status = { conversation_id: turn.conversationId, turn_id: turn.id, text };
      return telling(() => events.append('status', status));
    },

    /** Stores a gate of the executor, or what became of it; also one that came up when its turn was over. */
    gate({ conversationId, id }: GateTurn, gate: GateNotice): Promise<void> {
      return telling(() => events.append('gate', { conversation_id: conversationId, turn_id: id, ...gate }));
    },

    /** What the turns do: stored before it is done, and what came of it before the model is told. */
    journal: {
      steps: (turnId) => steps.of(turnId),

      beginStep: (turn, step) =>
        telling(() => {
          steps.insert(turn.id, step, clock.now());
          for (const { place, call, answer } of step.calls) {
            events.append('tool', callBegunEvent(turn, step.step, place, call));
            if (answer) events.append('tool', callFinishedEvent(turn, step.step, place, call, answer, 0));
          }
        }),

      finishCall: (turn, step, { place, call, answer }, tookMs) =>
        telling(() => {
          steps.finish(turn.id, step, place, answer, clock.now());
          events.append('tool', callFinishedEvent(turn, step, place, call, answer, tookMs));
        }),
    } satisfies Journal,

    /** Turns of the conversation that were accepted while this one waited or ran, oldest first. */
    arrivedAfter: (turn: Turn, limit: number) => turns.queuedAfter(turn.conversationId, turn.seq, limit),

    /** A turn by its id alone. */
    turnById: (id: string): Turn | undefined => turns.byId(id),

    /** Settles the turns that were running when the last process ended; before anything else runs. */
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

    /** The newest `limit` turns of the conversation that this one has to know of, oldest first. */
    turnsBefore: (turn: Turn, limit: number) => turns.before(turn.conversationId, turn.seq, limit),

    conversation: (id: string): Conversation | undefined => conversations.get(id),

    listConversations: (limit: number, cursor?: ActivityCursor) => conversations.list(limit, cursor),

    /** The turns of all conversations that were accepted last and are done, oldest first. */
    newestDone: (limit: number): Turn[] => turns.newestDone(limit),

    /** A turn of this conversation. */
    turn: (id: string, conversationId: string): Turn | undefined => turns.get(id, conversationId),

    /**
     * Turns of a conversation after a place in the order (0 for all), oldest first; `more` when the page ended early.
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

    /** What chronosd has not heard yet. */
    outbox,

    eventsAfter: (id: number, limit: number, filter: EventFilter): StoredEvent[] => events.after(id, limit, filter),

    /** Between which ids the event log can be read. */
    newestEventOf: (conversationId: string): number => events.newestOf(conversationId),
    eventBounds: () => ({ droppedThrough: events.droppedThrough(), newest: events.newestId() }),

    /** Waits for writes under way and closes the file. */
    async close(): Promise<void> {
      await writes.drain();
      file.close();
    },
  };
}
export type ConversationStore = ReturnType<typeof openConversationStore>;
