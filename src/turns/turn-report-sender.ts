/**
 * The outbox of turn reports: posts waiting reports to chronosd, one fire at a time and in order, until chronosd has
 * accepted them.
 */
import type { DatabaseSync } from 'node:sqlite';
import type { Clock } from '../kit/clock/clock.ts';
import { exchange, joinUrl, reasonOf } from '../kit/http/exchange.ts';
import { plainTransport } from '../kit/http/plain-transport.ts';
import { webhookSigner } from '../kit/identity/webhook-signature.ts';
import type { Logger } from '../kit/log/log.ts';
import { createOutbox, type Delivery, type Outbox, type OutboxStore } from '../kit/outbox/outbox.ts';
import { continueTrace, failSpan, isTracing, traceHeaders } from '../kit/trace/trace.ts';
import { pathSegment } from '../wire/identifier.ts';
import { beginningOfReply, type TurnReport, turnReportBody } from '../wire/turn-report.ts';

// The table `receipts` of a SQLite file: an outbox of turn reports, written in the transaction that updates a turn. Its
// owner's migration creates it.
//
// ```sql
// CREATE TABLE receipts (
//   id INTEGER PRIMARY KEY AUTOINCREMENT, user_id TEXT NOT NULL, fire_id TEXT NOT NULL, stage TEXT NOT NULL,
//   at INTEGER NOT NULL, outcome TEXT, error TEXT, turn_id TEXT, conversation_id TEXT, retry_at INTEGER, reply TEXT,
//   usage TEXT,
//   UNIQUE (user_id, fire_id, stage)
// ) STRICT;
// ```

const COLUMNS = 'user_id, fire_id, stage, at, outcome, error, turn_id, conversation_id, retry_at, reply, usage';

type Row = {
  id: number;
  user_id: string;
  fire_id: string;
  stage: TurnReport['stage'];
  at: number;
  outcome: TurnReport['outcome'];
  error: string | null;
  turn_id: string | null;
  conversation_id: string | null;
  retry_at: number | null;
  reply: string | null;
  usage: string | null;
};

function waitingOf(row: Row): WaitingTurnReport {
  const { stage, at, outcome, error, reply, usage } = row;
  const about = { turnId: row.turn_id, conversationId: row.conversation_id };
  const report = { ...about, stage, at, outcome, error, retryAt: row.retry_at, reply, usage };
  return { id: row.id, userId: row.user_id, fireId: row.fire_id, report };
}

/**
 * Creates the table's operations on an open connection. Write operations must run inside a transaction of its owner.
 */
export function turnReportTable(db: DatabaseSync) {
  const put = db.prepare(`
    INSERT INTO receipts (${COLUMNS}) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
    ON CONFLICT (user_id, fire_id, stage) DO NOTHING`);
  // The newer report gets a new row: the one being posted is removed by its id, and the removal must not affect the
  // newer one.
  const outdated = db.prepare(`DELETE FROM receipts WHERE user_id = ? AND fire_id = ? AND stage = 'turn_waits'`);
  const waiting = db.prepare(`SELECT id, ${COLUMNS} FROM receipts WHERE id > ? ORDER BY id LIMIT ?`);
  const remove = db.prepare('DELETE FROM receipts WHERE id = ?');

  return {
    /**
     * Adds a report, unless the same stage of the same fire is already waiting. For a turn that waits again, the latest
     * report replaces the previous one; the end of the turn removes it.
     */
    put(userId: string, fireId: string, report: TurnReport): void {
      const { stage, at, outcome, error, turnId, conversationId, retryAt, reply, usage } = report;
      if (stage !== 'turn_started') outdated.run(userId, fireId);
      const kept = reply === null ? null : beginningOfReply(reply);
      put.run(userId, fireId, stage, at, outcome, error, turnId, conversationId, retryAt, kept, usage);
    },

    waiting: ({ after, limit }: { after: number; limit: number }): WaitingTurnReport[] =>
      (waiting.all(after, limit) as Row[]).map(waitingOf),

    remove(ids: readonly number[]): void {
      for (const id of ids) remove.run(id);
    },
  };
}

// One post of turn reports to chronosd: signed, with a time limit, without redirects.

type Post = {
  /** chronosd's base address. */
  url: string;
  userId: string;
  fireId: string;
  /** In the order in which they happened. */
  reports: readonly TurnReport[];
  /** The result of `receiptKey`. */
  key: string;
  /** The `traceparent` of the turn's delivery. */
  trace: string | undefined;
};

/** The status of the answer, or why there was none. */
type Answered = { status: number; reason: string } | { status: undefined; reason: string };

const TIMEOUT_MS = 10_000;
const MAX_BYTES = 64 * 1024;
const SHOWN_CHARACTERS = 300;

/** Posts; never rejects. */
async function postTurnReports(
  post: Post,
  { clock, signal }: { clock: Clock; signal: AbortSignal },
): Promise<Answered> {
  const { url, userId, fireId, reports, key, trace } = post;
  const body = turnReportBody(userId, reports);
  const signed = webhookSigner(key)({ id: fireId, timestampSeconds: clock.now() / 1000, body });
  const send = () =>
    exchange(plainTransport, {
      method: 'POST',
      url: joinUrl(url, `/v1/fires/${pathSegment(fireId)}/receipts`),
      headers: { ...signed, 'content-type': 'application/json', accept: 'application/json', ...traceHeaders() },
      ...{ body, signal, maxBytes: MAX_BYTES, limit: { clock, ms: TIMEOUT_MS } },
    });
  const facts = () => ({ kind: 'client' as const, attributes: { 'messaging.message.id': fireId } });
  const inTrace = () =>
    continueTrace(trace, 'report turn', facts, async (span) => {
      const sent = await send();
      if (sent.result !== 'answered') failSpan(span, sent.result);
      else span?.setAttribute('http.response.status_code', sent.status);
      return sent;
    });
  // Without a trace of its delivery, a report begins none.
  const answer = await (trace === undefined ? send() : inTrace());
  if (answer.result !== 'answered') return { status: undefined, reason: reasonOf(answer.error) };
  return { status: answer.status, reason: answer.body.toString('utf8').slice(0, SHOWN_CHARACTERS).toWellFormed() };
}

export type WaitingTurnReport = {
  /** Increases with each new report. */
  id: number;
  /** The owner of the fired alarm. */
  userId: string;
  fireId: string;
  report: TurnReport;
};

/** The port to the turn reports on disk that chronosd has not accepted yet. */
export type TurnReportOutbox = {
  /**
   * The first reports after an id, in the order of their insertion. Throws `unavailable` if the file cannot be read.
   */
  waiting(page: { after: number; limit: number }): WaitingTurnReport[];
  /** Removes reports permanently; resolves when that is on disk. */
  remove(ids: readonly number[]): Promise<void>;
};

export type TurnReportSenderOptions = {
  outbox: TurnReportOutbox;
  /** chronosd's base address; `undefined` while it is unknown. */
  url: () => string | undefined;
  /** The key that signs a user's reports; `undefined` if the machine is deleted. */
  keyOf: (userId: string) => string | undefined;
  clock: Clock;
  log: Logger;
  /** The `traceparent` of the delivery of a turn. */
  traceOf?: (turnId: string) => string | undefined;
  /** Uniform in [0, 1); spreads retries. */
  random: () => number;
};

const PAGE = 100;
/** Maximum of stages in one post. */
const STAGES = 8;
const FIRST_PAUSE_MS = 1_000;
const LONGEST_PAUSE_MS = 5 * 60_000;
const LAST_ROUND_MS = 2_000;
/** Limit of remembered refused posts. Beyond it, their fires are retried earlier than planned. */
const MAX_DEFERRED = 10_000;
/** A report that was not accepted for this long is dropped. */
const KEPT_MS = 24 * 3600 * 1000;
/**
 * A fire of this age may still be unknown: a wake can be accepted just before its database shows it to every replica.
 */
const YOUNG_MS = 60_000;

/**
 * The consequence of chronosd's answer for a report.
 *
 * @param status of the answer; `undefined` if there was none
 * @param ageMs age of the earliest reported stage
 */
export function deliveryOf(status: number | undefined, ageMs: number, why: string): Delivery {
  if (status !== undefined && status >= 200 && status <= 299) return { result: 'done' };
  if (ageMs >= KEPT_MS) return { result: 'drop', why };
  if (status === undefined || status >= 500 || status === 429 || status === 408)
    return { result: 'later', why, everything: true };
  // The cause is not the report: chronosd soon learns a replaced token, and an operator can correct a clock or a host
  // name.
  if (status === 401 || status === 403) return { result: 'later', why };
  if (status === 404) return ageMs < YOUNG_MS ? { result: 'later', why } : { result: 'drop', why };
  // A redirect is not chronosd's answer.
  return status < 400 ? { result: 'later', why } : { result: 'drop', why };
}

type FireReports = { id: string; attempts: number; userId: string; fireId: string; receipts: WaitingTurnReport[] };

/** Reports on disk as an outbox with one batch per fire. Retry times are kept in memory, on the monotonic clock. */
class FireReportsStore implements OutboxStore<FireReports> {
  readonly #outbox: TurnReportOutbox;
  readonly #deferred = new Map<string, { attempts: number; notBefore: number }>();
  readonly #handedOut = new Map<string, FireReports>();

  constructor(outbox: TurnReportOutbox) {
    this.#outbox = outbox;
  }

  due(now: number, limit: number): FireReports[] {
    const batches = new Map<string, FireReports>();
    for (let after = 0; batches.size < limit; ) {
      const page = this.#outbox.waiting({ after, limit: PAGE });
      for (const receipt of page) {
        const { userId, fireId } = receipt;
        const id = `${userId} ${fireId}`;
        const { attempts, notBefore } = this.#deferred.get(id) ?? { attempts: 0, notBefore: now };
        const batch = batches.get(id);
        if (batch && batch.receipts.length < STAGES) batch.receipts.push(receipt);
        else if (!batch && notBefore <= now) batches.set(id, { id, attempts, userId, fireId, receipts: [receipt] });
      }
      if (page.length < PAGE) break;
      after = page.at(-1)!.id;
    }
    for (const [id, batch] of batches) this.#handedOut.set(id, batch);
    return [...batches.values()];
  }

  nextDue(): number | undefined {
    let next: number | undefined;
    for (const { notBefore } of this.#deferred.values()) next = Math.min(next ?? notBefore, notBefore);
    return next;
  }

  async done(id: string): Promise<void> {
    const { receipts } = this.#handedOut.get(id)!;
    await this.#outbox.remove(receipts.map((receipt) => receipt.id));
    this.#deferred.delete(id);
    this.#handedOut.delete(id);
  }

  drop(id: string): Promise<void> {
    return this.done(id);
  }

  later(id: string, at: number): void {
    if (this.#deferred.size >= MAX_DEFERRED) this.#deferred.clear();
    this.#deferred.set(id, { attempts: this.#handedOut.get(id)!.attempts + 1, notBefore: at });
    this.#handedOut.delete(id);
  }
}

/** Creates the sender. Its `close` retries the waiting reports once, for two seconds at most. */
export function createTurnReportSender({
  outbox,
  url: urlOf,
  keyOf,
  traceOf,
  clock,
  log,
  random,
}: TurnReportSenderOptions): Outbox {
  return createOutbox<FireReports>({
    store: new FireReportsStore(outbox),
    async deliver({ userId, fireId, receipts }, signal) {
      const key = keyOf(userId);
      if (key === undefined) return { result: 'drop', why: 'its machine was deleted' };
      const reports = receipts.map(({ report }) => report);
      const ageMs = clock.now() - Math.min(...reports.map(({ at }) => at));
      const url = urlOf();
      if (url === undefined) return deliveryOf(undefined, ageMs, 'the address of chronosd is not known yet');
      const turnId = isTracing() ? reports.find((report) => report.turnId !== null)?.turnId : undefined;
      const trace = turnId ? traceOf?.(turnId) : undefined;
      const { status, reason } = await postTurnReports({ url, userId, fireId, reports, key, trace }, { clock, signal });
      return deliveryOf(status, ageMs, status === undefined ? reason : `chronosd answered ${status}: ${reason}`);
    },
    now: () => clock.monotonic(),
    ...{ clock, log, random, concurrency: 1 },
    ...{ firstPauseMs: FIRST_PAUSE_MS, longestPauseMs: LONGEST_PAUSE_MS, lastRoundMs: LAST_ROUND_MS },
    noun: 'a turn report',
    about: ({ fireId: fire_id, userId: user_id, receipts }) => ({
      ...{ fire_id, user_id },
      stages: receipts.map(({ report }) => report.stage),
    }),
  });
}
