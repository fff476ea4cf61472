/**
 * Questions of MCP servers to the user. While the user follows the conversation, the call waits for the answer.
 *
 * Without a follower, the turn of an alarm parks. The server gets `cancel`, the user is notified, and the turn waits on
 * disk. It continues after the answer, or at the time limit. Its model then repeats the call, and the server gets the
 * stored answer.
 */
import { createHash } from 'node:crypto';
import type { DatabaseSync } from 'node:sqlite';
import { type Clock, wait } from '../../kit/clock/clock.ts';
import { randomSecret } from '../../kit/identity/secrets.ts';
import type { Logger } from '../../kit/log/log.ts';
import { clip } from '../../kit/text/excerpt.ts';
import { oneLine } from '../../kit/text/hidden-characters.ts';
import type { AskPerson, PersonAnswer } from '../../mcp-host/elicitation.ts';
import type { Turn } from '../../turns/turn.ts';
import { ReveilleError } from '../../wire/errors.ts';
import { checkContent, type QuestionAnswer, type QuestionText, type QuestionView } from '../../wire/question.ts';
import { formatInstant } from '../../wire/rfc3339.ts';
import { WAITS_FOR_ANSWER } from '../../wire/turn-report.ts';
import type { Approvers } from './delegate/approvers.ts';
import type { ToolCallContext } from './tools/surface.ts';

/** How long a question waits while the user follows the conversation, and in a parked turn. */
const FOLLOWED_MS = 30 * 60_000;
const PARKED_MS = 12 * 3600_000;
/** The question of a parked turn ends before the turn itself is given up. */
const LONGEST_TURN_MS = 23 * 3600_000;
/** The turn of an alarm parks after this time even with a follower, which may be an unattended page. */
const UNATTENDED_MS = 2 * 60_000;
const FOLLOWER_MS = 5000;
/** Maximum of questions of one turn, and of open questions of all turns; further ones get `cancel`. */
const OF_A_TURN = 20;
const OPEN = 100;
/** Maximum length of a server's message within an error, which is cut after 500 characters. */
const SHOWN_CHARACTERS = 120;

type Row = {
  readonly id: string;
  readonly turn_id: string;
  readonly conversation_id: string;
  readonly server: string;
  readonly tool: string;
  readonly digest: string;
  readonly asked: string;
  readonly state: QuestionView['state'];
  readonly content: string | null;
  readonly is_used: number;
  readonly asked_at: number;
  readonly expires_at: number;
};

/** The operations of the table on an open connection. Writes must run inside a transaction of the connection. */
export function questionTable(db: DatabaseSync) {
  const insert = db.prepare(`
    INSERT INTO questions (id, turn_id, conversation_id, server, tool, digest, asked, state, asked_at, expires_at)
    VALUES (?, ?, ?, ?, ?, ?, ?, 'asked', ?, ?)`);
  const byId = db.prepare('SELECT * FROM questions WHERE id = ?');
  const ofTurn = db.prepare('SELECT * FROM questions WHERE turn_id = ? ORDER BY asked_at, id');
  const open = db.prepare(`SELECT * FROM questions WHERE state = 'asked' ORDER BY asked_at, id`);
  const decide = db.prepare(`UPDATE questions SET state = ?, content = ? WHERE id = ? AND state = 'asked'`);
  const use = db.prepare('UPDATE questions SET is_used = 1, content = NULL WHERE id = ?');
  const remove = db.prepare('DELETE FROM questions WHERE turn_id = ?');
  return {
    insert: (row: Omit<Row, 'state' | 'content' | 'is_used'>) =>
      insert.run(
        ...([row.id, row.turn_id, row.conversation_id, row.server, row.tool, row.digest, row.asked] as const),
        ...([row.asked_at, row.expires_at] as const),
      ),
    byId: (id: string) => byId.get(id) as Row | undefined,
    ofTurn: (turnId: string) => ofTurn.all(turnId) as Row[],
    open: () => open.all() as Row[],
    /** @returns whether it was open */
    decide: (id: string, state: Row['state'], content: string | null) => decide.run(state, content, id).changes > 0,
    use: (id: string) => void use.run(id),
    remove: (turnId: string) => void remove.run(turnId),
  };
}
export type QuestionTable = ReturnType<typeof questionTable>;

export function viewOfQuestion(row: Row, state: Row['state'] = row.state): QuestionView {
  return {
    ...{ question_id: row.id, conversation_id: row.conversation_id, turn_id: row.turn_id },
    ...{ server: row.server, tool: row.tool, state },
    asked: JSON.parse(row.asked) as QuestionText,
    expires_at: formatInstant(row.expires_at),
  };
}

/** The stored questions. A change and its event are one transaction. */
export type QuestionStore = Pick<QuestionTable, 'byId' | 'ofTurn' | 'open'> & {
  ask(row: Parameters<QuestionTable['insert']>[0]): Promise<void>;
  /** @returns whether it was open */
  decide(id: string, state: Row['state'], content?: string): Promise<boolean>;
  /** Records that the server has the answer, or that the model knows that there is none. */
  use(id: string): Promise<void>;
};

export type QuestionsOptions = {
  store: QuestionStore;
  approvers: Approvers;
  clock: Clock;
  log: Logger;
};

/** The questions of one call. */
export type CallQuestions = {
  readonly ask: AskPerson;
  /** A note for the model beside the result: the server has ended the call, and its question still waits. */
  remark(): string | undefined;
};

const shown = (text: string) => clip(oneLine(text), SHOWN_CHARACTERS);

export function createQuestions({ store, approvers, clock, log }: QuestionsOptions) {
  /** Calls that wait for a decision, by the id of the question. */
  const waiting = new Map<string, () => void>();
  let onAnswered: (turnId: string) => void = () => {};

  const isOpen = ({ state, expires_at }: Row) => state === 'asked' && clock.now() < expires_at;

  async function answerOf(row: Row): Promise<PersonAnswer> {
    await store.use(row.id);
    if (row.state === 'accepted') {
      const content = row.content === null ? {} : { content: JSON.parse(row.content) as Record<string, string> };
      return { action: 'accept', ...content };
    }
    return { action: row.state === 'declined' ? 'decline' : 'cancel' };
  }

  /** Waits until the question is decided, at most this long. */
  async function untilDecided(id: string, limitMs: number, signal: AbortSignal): Promise<Row> {
    const decided = new AbortController();
    waiting.set(id, () => decided.abort());
    try {
      if (store.byId(id)?.state === 'asked') await wait(clock, limitMs, AbortSignal.any([decided.signal, signal]));
    } finally {
      waiting.delete(id);
    }
    return store.byId(id)!;
  }

  return {
    /** Called with the turn of a question that was answered while its turn was parked. */
    set onAnswered(listener: (turnId: string) => void) {
      onAnswered = listener;
    },

    /** The turns with an answer that their server does not have yet. */
    answeredTurns: (turnIds: readonly string[]): string[] =>
      turnIds.filter((id) => store.ofTurn(id).some((row) => row.is_used === 0 && !isOpen(row))),

    /** The questions of a call. @param about the alias of the server, and its tool */
    ofCall({ turn, signal: callSignal }: ToolCallContext, about: { server: string; tool: string }): CallQuestions {
      const isAlarm = turn.origin === 'chronos';
      let isParked = false;

      const ask: AskPerson = async (question, signal) => {
        const asked = JSON.stringify(question);
        const digest = createHash('sha256')
          .update(JSON.stringify([about, asked]))
          .digest('hex');
        const earlier = store.ofTurn(turn.id);
        const same = earlier.find((row) => row.digest === digest && row.is_used === 0);
        if (same && !isOpen(same)) return answerOf(same);
        const isFull = earlier.length >= OF_A_TURN || store.open().length >= OPEN;
        if (same || isFull) return { action: 'cancel' };
        const id = randomSecret(12);
        const limit = isAlarm ? Math.min(PARKED_MS, turn.createdAt + LONGEST_TURN_MS - clock.now()) : FOLLOWED_MS;
        if (limit <= 0) return { action: 'cancel' };
        await store.ask({
          ...{ id, turn_id: turn.id, conversation_id: turn.conversationId, ...about, digest, asked },
          ...{ asked_at: clock.now(), expires_at: clock.now() + limit },
        });
        log.info({ question_id: id, turn_id: turn.id, ...about }, 'an MCP server asks the user');
        const ended = AbortSignal.any([signal, callSignal]);
        const isFollowed = await approvers.waitFor(turn.conversationId, FOLLOWER_MS, ended);
        const row = isFollowed ? await untilDecided(id, isAlarm ? UNATTENDED_MS : limit, ended) : store.byId(id)!;
        if (row.state !== 'asked') return answerOf(row);
        if (isAlarm && !ended.aborted) {
          isParked = true;
          return { action: 'cancel' };
        }
        // An answer that arrived first wins.
        const hasLapsed = await store.decide(id, 'lapsed');
        return hasLapsed ? { action: 'cancel' } : answerOf(store.byId(id)!);
      };

      const remark = () =>
        isParked
          ? `(The program: the server "${about.server}" asked the user a question during this call. The user is away, so the result above is without an answer. The user is notified, and this turn waits for the answer.)`
          : undefined;
      return { ask, remark };
    },

    /** The open question for which a turn waits; `undefined` if the turn can continue. */
    waitsFor({ id, origin }: Pick<Turn, 'id' | 'origin'>): { error: string; afterSeconds: number } | undefined {
      const row = origin === 'chronos' ? store.ofTurn(id).find(isOpen) : undefined;
      if (row === undefined) return undefined;
      const { message } = JSON.parse(row.asked) as QuestionText;
      return {
        error: `${WAITS_FOR_ANSWER} to the server "${row.server}": ${JSON.stringify(shown(message))}; answer it with: reveille neo question answer ${row.id}`,
        afterSeconds: Math.ceil((row.expires_at - clock.now()) / 1000),
      };
    },

    /** Notes for the model about questions that were answered or have lapsed. */
    async notesOf({ id, origin }: Pick<Turn, 'id' | 'origin'>): Promise<{ id: string; text: string }[]> {
      if (origin !== 'chronos') return [];
      const rows = store.ofTurn(id).filter((row) => row.is_used === 0 && !isOpen(row));
      const notes: { id: string; text: string }[] = [];
      for (const row of rows) {
        const call = `the call of ${row.tool} at the server "${row.server}"`;
        if (row.state === 'asked') await store.decide(row.id, 'lapsed');
        const state = store.byId(row.id)!.state;
        // Only an accepted answer is kept for the server, which asks again. The model gets the others.
        if (state !== 'accepted') await store.use(row.id);
        const text =
          state === 'accepted'
            ? `(The program: the user has answered the question about ${call}. Make that call again, with the same arguments: the server gets the answer then.)`
            : state === 'declined'
              ? `(The program: the user declined to answer the question about ${call}. Do not make that call again. Say what was not done.)`
              : `(The program: the user did not answer the question about ${call} in time. Do not make that call again. Say what was not done.)`;
        notes.push({ id: row.id, text });
      }
      return notes;
    },

    /** The open questions, of a conversation or of all. */
    shown: (conversationId?: string): QuestionView[] =>
      store
        .open()
        .filter((row) => isOpen(row) && (conversationId ?? row.conversation_id) === row.conversation_id)
        .map((row) => viewOfQuestion(row)),

    /**
     * Records the user's answer. The first answer wins.
     *
     * @throws ReveilleError `not_found` if no question with this id waits, `invalid_request` if the values do not fit
     *   it, `conflict` after an earlier answer
     */
    async answer(id: string, { action, content }: QuestionAnswer): Promise<QuestionView> {
      const row = store.byId(id);
      if (row === undefined || !isOpen(row))
        throw new ReveilleError('not_found', `no question ${id} waits for an answer`);
      const asked = JSON.parse(row.asked) as QuestionText;
      const isForm = action === 'accept' && asked.mode === 'form';
      if (!isForm && content !== undefined)
        throw new ReveilleError('invalid_request', 'content is only for action "accept" of a form; omit it');
      const checked = isForm ? checkContent(asked.fields, content) : undefined;
      if (checked && 'problems' in checked) throw new ReveilleError('invalid_request', checked.problems.join('; '));
      const state = action === 'accept' ? 'accepted' : 'declined';
      const isFirst = await store.decide(id, state, checked && JSON.stringify(checked.content));
      if (!isFirst)
        throw new ReveilleError('conflict', `the question ${id} was already answered`, { retryable: false });
      const waits = waiting.get(id);
      if (waits) waits();
      else onAnswered(row.turn_id);
      return viewOfQuestion(row, state);
    },
  };
}
export type Questions = ReturnType<typeof createQuestions>;
