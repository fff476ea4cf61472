/**
 * Neo's conversations: one SQLite file, one process. Every write resolves when it is on disk. The events about a change
 * are stored in the transaction of the change.
 */
import { join } from 'node:path';
import type { DatabaseSync, SQLOutputValue } from 'node:sqlite';
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
import {
  callBegunEvent,
  callFinishedEvent,
  type Journal,
  type JournalledCall,
  type JournalledStep,
} from '../loop/journal.ts';
import { type QuestionStore, questionTable, viewOfQuestion } from '../questions.ts';
import type { GateNotice, ToolAnswer } from '../tools/surface.ts';

// The `turn_steps` and `turn_calls` tables: the journal of turns. Synchronous; writes must run inside a transaction
// of the connection's group commit.

/** Longer results are dropped and arguments cut when their turn has ended; until then the turn may need them again. */
const KEPT_CHARACTERS = 4096;

type Row = Record<string, SQLOutputValue>;

const NOT_KEPT: ToolAnswer['content'] = [{ type: 'text', text: '(the result was long and has not been kept)' }];

function answerOf(row: Row): { answer?: ToolAnswer } {
  if (row.finished_at === null) return {};
  const content = row.content === null ? NOT_KEPT : (JSON.parse(row.content as string) as ToolAnswer['content']);
  return { answer: { content, isError: row.is_error === 1 } };
}

function callOf(row: Row): JournalledCall {
  return {
    index: row.place as number,
    call: {
      id: row.call_id as string,
      name: row.name as string,
      input: row.input as string,
      ...(row.opaque === null ? {} : { opaque: JSON.parse(row.opaque as string) }),
    },
    ...answerOf(row),
  };
}

/** Makes the tables' operations over an open connection. */
function stepTable(db: DatabaseSync) {
  const insertStep = db.prepare('INSERT INTO turn_steps (turn_id, step, said, left_out, usage) VALUES (?, ?, ?, ?, ?)');
  const insertCall = db.prepare(`
    INSERT INTO turn_calls (turn_id, step, place, call_id, opaque, name, input, begun_at)
    VALUES (?, ?, ?, ?, ?, ?, ?, ?)`);
  const finishCall = db.prepare(`
    UPDATE turn_calls SET finished_at = ?, is_error = ?, content = ?
    WHERE turn_id = ? AND step = ? AND place = ?`);
  const steps = db.prepare('SELECT step, said, left_out, usage FROM turn_steps WHERE turn_id = ? ORDER BY step');
  const calls = db.prepare('SELECT * FROM turn_calls WHERE turn_id = ? ORDER BY step, place');
  const dropLong = db.prepare('UPDATE turn_calls SET content = NULL WHERE turn_id = ?1 AND length(content) > ?2');
  const cutLong = db.prepare(`
    UPDATE turn_calls SET input = substr(input, 1, ?2) WHERE turn_id = ?1 AND length(input) > ?2`);

  function finish(turnId: string, step: number, index: number, { content, isError }: ToolAnswer, now: number): void {
    finishCall.run(now, isError ? 1 : 0, JSON.stringify(content), turnId, step, index);
  }

  return {
    /** Stores a step; calls with an answer as finished, the others as begun. */
    insert(turnId: string, journalled: JournalledStep, now: number): void {
      const { step, text, omittedCalls, usage, calls: stepCalls } = journalled;
      insertStep.run(turnId, step, text, omittedCalls, usage === undefined ? null : JSON.stringify(usage));
      for (const { index, call, answer } of stepCalls) {
        const opaque = call.opaque === undefined ? null : JSON.stringify(call.opaque);
        insertCall.run(turnId, step, index, call.id, opaque, call.name, call.input, now);
        if (answer) finish(turnId, step, index, answer, now);
      }
    },

    finish,

    /** The turn has ended: long texts of its journal are not needed any more. */
    shorten(turnId: string): void {
      dropLong.run(turnId, KEPT_CHARACTERS);
      cutLong.run(turnId, KEPT_CHARACTERS);
    },

    of(turnId: string): JournalledStep[] {
      const rows = steps.all(turnId) as Row[];
      if (rows.length === 0) return [];
      const byStep = Map.groupBy(calls.all(turnId) as Row[], (row) => row.step as number);
      return rows.map((row) => ({
        step: row.step as number,
        text: row.said as string,
        omittedCalls: row.left_out as number,
        ...(row.usage === null ? {} : { usage: JSON.parse(row.usage as string) }),
        calls: (byStep.get(row.step as number) ?? []).map(callOf),
      }));
    },
  };
}

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
        if (finishedAt !== undefined) {
          steps.shorten(id);
          for (const row of questions.ofTurn(id))
            if (row.state === 'asked') events.append('question', viewOfQuestion(row, 'lapsed'));
          questions.remove(id);
        }
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
  const questions = questionTable(db);
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

    /** The questions of MCP servers, see {@link QuestionStore}. */
    questions: {
      byId: questions.byId,
      ofTurn: questions.ofTurn,
      open: questions.open,
      ask: (row) =>
        run(() => {
          questions.insert(row);
          events.append('question', viewOfQuestion(questions.byId(row.id)!));
        }),
      decide: (id, state, content) =>
        run(() => {
          const isOpen = questions.decide(id, state, content ?? null);
          if (isOpen) events.append('question', viewOfQuestion(questions.byId(id)!));
          return isOpen;
        }),
      use: (id) => run(() => questions.use(id)),
    } satisfies QuestionStore,

    conversation: (id: string): Conversation | undefined => conversations.get(id),

    listConversations: (limit: number, cursor?: ActivityCursor) => conversations.list(limit, cursor),

    eventsAfter: (id: number, limit: number, filter: EventFilter): StoredEvent[] => events.after(id, limit, filter),

    /** The range of ids that the event log contains. */
    newestEventOf: (conversationId: string): number => events.newestOf(conversationId),
    eventBounds: () => ({ droppedThrough: events.droppedThrough(), newest: events.newestId() }),
  };
}
export type ConversationStore = ReturnType<typeof openConversationStore>;
