/**
 * Handles wakes without a fire id, from schedulers that have none. Each gets one that is derived from its content
 * (`wire/fire-id.ts`). Its record outlives the router: an identical wake within the window is the same fire. The window
 * begins with the first of them, whatever the date is.
 */
import type { StatementSync } from 'node:sqlite';
import type { Clock } from '../kit/clock/clock.ts';
import type { Logger } from '../kit/log/log.ts';
import { KeyedQueue } from '../kit/queue/keyed-queue.ts';
import type { GroupCommit } from '../kit/sqlite/group-commit.ts';
import type { SqliteFile } from '../kit/sqlite/open.ts';
import { ownerOf } from '../wire/did.ts';
import { okEnvelope } from '../wire/envelope.ts';
import { deriveName, fireIdOf } from '../wire/fire-id.ts';
import { completeWake, termsOf, type Wake, type WakeRequest } from '../wire/wake.ts';
import { acceptedTurn, type WakeAnswer } from './wake.ts';

type Row = {
  first_at: number;
  accepted: number;
  conversation_id: string | null;
  turn_id: string | null;
};

/** How long a named wake is remembered: as long as turns are kept. */
const NAMED_MS = 30 * 24 * 3600 * 1000;

type RepetitionsOptions = {
  file: SqliteFile;
  commits: GroupCommit;
  /** Whether a user has a machine: a wake of an unknown user leaves no record. */
  isKnown: (userId: string) => boolean;
  /** Wakes the machine for a wake with a fire id. */
  wake: (wake: Wake, onReady?: (afterMs: number) => void) => Promise<WakeAnswer>;
  /** How long an identical wake without a name is the same; 0: each is separate. */
  windowMs: number;
  clock: Clock;
  log: Logger;
};

export class Repetitions {
  readonly #options: RepetitionsOptions;
  readonly #get: StatementSync;
  readonly #put: StatementSync;
  readonly #accept: StatementSync;
  readonly #forget: StatementSync;
  /** Derived fires under way, by user and name. */
  readonly #underWay = new KeyedQueue();

  constructor(options: RepetitionsOptions) {
    this.#options = options;
    const { db } = options.file;
    this.#get = db.prepare(`
      SELECT first_at, accepted, conversation_id, turn_id FROM unnamed_wakes WHERE user_id = ? AND name = ?`);
    this.#put = db.prepare('INSERT INTO unnamed_wakes (user_id, name, first_at, until) VALUES (?, ?, ?, ?)');
    this.#accept = db.prepare(`
      UPDATE unnamed_wakes SET accepted = 1, conversation_id = ?, turn_id = ?
      WHERE user_id = ? AND name = ? AND first_at = ?`);
    this.#forget = db.prepare('DELETE FROM unnamed_wakes WHERE until <= ?');
  }

  /**
   * Wakes a user's agent, as `Wakes.wake` does. A repetition of an accepted wake without a fire id wakes no machine and
   * is answered with 200 and `deduped`. Concurrent repetitions are handled in sequence.
   *
   * @param name the caller's name of the wake, from a header
   * @throws ReveilleError as `Wakes.wake`, and `unavailable` when the record could not be written: no machine was woken
   */
  async wake(request: WakeRequest, name: string | undefined, onReady?: (afterMs: number) => void): Promise<WakeAnswer> {
    const { clock, wake, isKnown } = this.#options;
    const now = clock.now();
    if (request.fire_id !== undefined) return wake(completeWake(request, request.fire_id, now), onReady);
    const userId = ownerOf(request.user_id);
    const facts = {
      ...{ userId, conversationId: request.conversation_id, alarmId: request.alarm_id },
      ...{ scheduledFor: request.scheduled_for, message: request.message, payload: request.payload?.text },
      terms: termsOf(request),
    };
    const { derived, windowMs } = deriveName(facts, name, this.#options.windowMs);
    if (!isKnown(userId)) return wake(completeWake(request, fireIdOf(derived, now), now), onReady);
    const key = `${userId} ${derived}`;
    const about = { userId, derived, windowMs: Math.min(windowMs, NAMED_MS), onReady };
    return this.#underWay.run(key, () => this.#once(request, about));
  }

  async #once(
    request: WakeRequest,
    about: {
      userId: string;
      derived: string;
      windowMs: number;
      onReady: ((afterMs: number) => void) | undefined;
    },
  ): Promise<WakeAnswer> {
    const { userId, derived, windowMs, onReady } = about;
    const { clock, commits, log, wake } = this.#options;
    const now = clock.now();
    const known = await commits.run((): Row => {
      this.#forget.run(now);
      const row = this.#get.get(userId, derived) as Row | undefined;
      if (row) return row;
      this.#put.run(userId, derived, now, now + windowMs);
      return { first_at: now, accepted: 0, conversation_id: null, turn_id: null };
    });
    const fireId = fireIdOf(derived, known.first_at);
    if (known.accepted === 1) {
      log.info({ user_id: userId, fire_id: fireId }, 'a wake was repeated; its turn exists');
      return repeated(known, request);
    }
    const woken = await wake(completeWake(request, fireId, known.first_at), onReady);
    if (woken.answer.status > 299 || woken.verdict?.verdict === 'skip') return woken;
    const turn = acceptedTurn(woken.answer);
    const { conversation_id = null, turn_id = null } = turn ?? {};
    try {
      await commits.run(() => void this.#accept.run(conversation_id, turn_id, userId, derived, known.first_at));
    } catch (err) {
      // It was accepted. A daemon with fire ids recognizes a repetition itself.
      log.warn({ err, user_id: userId, fire_id: fireId }, 'an accepted wake could not be recorded');
    }
    return woken;
  }
}

function repeated({ conversation_id, turn_id }: Row, request: WakeRequest): WakeAnswer {
  const data = {
    conversation_id: conversation_id ?? request.conversation_id,
    turn_id: turn_id ?? undefined,
    deduped: true,
  };
  const body = Buffer.from(okEnvelope(data));
  return {
    answer: { status: 200, contentType: 'application/json; charset=utf-8', retryAfter: undefined, body },
    startMs: 0,
  };
}
