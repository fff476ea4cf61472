/**
 * Finds changes of followed owners, also those of other replicas: one poll per replica for all its readers, only while
 * there are any. Nothing is written for it at a fire. Attempts and turn reports are found by their end, new alarms by
 * their id, which begins with the time, other changes by the counter `owners.edits`. A row becomes visible after the
 * instant that it carries, so polls overlap, and rows that were already reported are skipped.
 */
import { type CancelTimer, type Clock, wait } from '../../../kit/clock/clock.ts';
import type { Logger } from '../../../kit/log/log.ts';
import { TURN_RUNS } from '../../alarm/alarm.ts';
import {
  type AlarmTimes,
  alarmChanges,
  attemptChange,
  changeKey,
  type Follower,
  type Following,
  reportChange,
  type StoredChange,
} from '../stored-change.ts';
import { attemptOfRow, attemptsWhere } from './attempts.ts';
import type { Buckets } from './buckets.ts';
import type { PrimaryPool } from './pool.ts';
import { ALARM_ROWS, TURN_REPORT, withDefinition } from './rows.ts';
import { type Call, type Row, type Statement, statement } from './statement.ts';

/** From one poll to the next. */
const POLL_MS = 100;
/** The pause after a poll is at least this many times its duration, up to the longest pause. */
const PAUSE_RATIO = 2;
const LONGEST_PAUSE_MS = 1000;
/** The usual overlap of polls; longer where they are slow, because commits are slow then, too. */
const OVERLAP_MS = 300;
/** The overlap of wide polls, in which late commits are found. */
const WIDE_OVERLAP_MS = 10_000;
const WIDE_EVERY_MS = 5000;
/** How far back an edit is searched after the counter has changed. */
const EDITED_MS = 60_000;
const REMEMBERED_MS = 120_000;
/** Rows of each table that one call of {@link ChangePoll.since} may read. */
const ROWS_READ = 5000;
/** Rows of each table in one poll of a bucket; with more, readers have to read again. */
const ROWS_POLLED = 20_000;
/** Due and claimed occurrences that one poll reads. */
const CLAIMS_READ = 1000;

/** Rows whose last attempt is recent: the index has two parts, of alarms that ended and of others. */
const AGED = 'ended = ANY (ARRAY[false, true]) AND aged_at';

const ATTEMPTS = statement(
  'changed_attempts',
  `${attemptsWhere(
    'owner = ANY($2::text[]) AND finished_at >= $3',
    `owner = ANY($2::text[]) AND ${AGED} >= $3 AND last_finished_at >= $3`,
    `ORDER BY finished_at LIMIT ${ROWS_POLLED}`,
    `ORDER BY last_finished_at LIMIT ${ROWS_POLLED}`,
  )} ORDER BY finished_at LIMIT ${ROWS_POLLED}`,
);
const REPORTS = statement(
  'changed_reports',
  `SELECT ${TURN_REPORT.list()} FROM fire_receipts WHERE bucket = $1 AND owner = ANY($2::text[]) AND recorded_at >= $3
   ORDER BY recorded_at LIMIT ${ROWS_POLLED}`,
);
const CREATED = statement(
  'changed_alarms_new',
  `SELECT d.owner, d.id, p.status, d.created_at, d.created_at FROM ${ALARM_ROWS}
   WHERE d.bucket = $1 AND d.owner = ANY($2::text[]) AND d.id >= $3 LIMIT ${ROWS_POLLED}`,
);
const CLAIMED = statement(
  'changed_claims',
  `SELECT owner, alarm_id, claimed_at, alarm_id || '@' || scheduled_for, attempt FROM (
     SELECT owner, alarm_id, claimed_at, scheduled_for, attempt FROM progress
     WHERE bucket = $1 AND look_at <= $3 ORDER BY look_at LIMIT ${CLAIMS_READ}
   ) AS looked WHERE claimed_at IS NOT NULL AND owner = ANY($2::text[])`,
);
const EDITS = statement(
  'changed_edits',
  'SELECT owner, edits FROM owners WHERE bucket = $1 AND owner = ANY($2::text[])',
);
const EDITED = statement(
  'changed_alarms',
  `SELECT p.owner, p.alarm_id, p.status, d.created_at, p.updated_at
   FROM progress AS p ${withDefinition('p.owner', 'p.alarm_id')}
   WHERE p.bucket = $1 AND p.owner = ANY($2::text[]) AND p.updated_at >= $3 AND p.updated_at > d.created_at`,
);
const DEFERRED = statement(
  'changed_deferrals',
  `SELECT owner, alarm_id, alarm_id || '@' || scheduled_for, held_until, held_reason FROM progress
   WHERE bucket = $1 AND owner = ANY($2::text[]) AND held_until IS NOT NULL`,
);
const ATTEMPT_COUNT = statement(
  'changes_since_attempts',
  `SELECT (SELECT count(*) FROM (
     SELECT 1 FROM ledger WHERE bucket = $1 AND finished_at >= $2 LIMIT ${ROWS_READ}) AS replaced) +
   (SELECT count(*) FROM (
     SELECT 1 FROM progress WHERE bucket = $1 AND ${AGED} >= $2 LIMIT ${ROWS_READ}) AS last)`,
);
const REPORT_COUNT = statement(
  'changes_since_reports',
  `SELECT count(*) FROM (
     SELECT 1 FROM fire_receipts WHERE bucket = $1 AND recorded_at >= $2 LIMIT ${ROWS_READ}) AS found`,
);
const ALARMS_OF = statement(
  'changes_since_alarms',
  `SELECT d.owner, d.id, p.status, d.created_at, p.updated_at FROM ${ALARM_ROWS}
   WHERE d.bucket = $1 AND d.owner = $2 ORDER BY d.id DESC LIMIT ${ROWS_READ}`,
);

const timesOf = ([owner, id, status, createdAt, updatedAt]: Row) =>
  ({ owner, id, status, createdAt, updatedAt }) as AlarmTimes;
const attemptOf = (row: Row) => attemptChange(attemptOfRow(row));
const reportOf = (row: Row) => reportChange(TURN_REPORT.read(row));
const claimOf = ([owner, alarmId, at, fireId, attempt]: Row) =>
  ({ kind: 'claimed', owner, alarmId, at, fireId, attempt }) as StoredChange;

/** The smallest id (UUIDv7) of an instant. */
function idAt(instant: number): string {
  const hex = Math.max(0, instant).toString(16).padStart(12, '0');
  return `${hex.slice(0, 8)}-${hex.slice(8)}`;
}

type Options = { pool: PrimaryPool; buckets: Buckets; clock: Clock; now: () => number; log: Logger };

export class ChangePoll {
  readonly #options: Options;
  readonly #followers = new Set<Follower>();
  /** The counter `owners.edits` of each followed owner when it was last read. */
  readonly #observed = new Map<string, number>();
  /** The keys of reported changes, and when they were reported; monotonic ms. */
  readonly #reported = new Map<string, number>();
  readonly #closed = new AbortController();
  #wakeUp: CancelTimer = () => {};
  /** Resolve after the next poll that begins from now on. */
  #refreshes: PromiseWithResolvers<void>[] = [];
  #isRunning = false;
  #tookMs = 0;
  #polledAt = Number.NEGATIVE_INFINITY;
  #wideAt = Number.NEGATIVE_INFINITY;

  constructor(options: Options) {
    this.#options = options;
  }

  follow(follower: Follower): Following {
    this.#followers.add(follower);
    return {
      refresh: () => {
        const next = Promise.withResolvers<void>();
        this.#refreshes.push(next);
        if (this.#isRunning) this.#wakeUp();
        else void this.#run();
        return next.promise;
      },
      end: () => void this.#followers.delete(follower),
    };
  }

  close(): void {
    this.#closed.abort();
    this.#wakeUp();
    for (const { reject } of this.#refreshes.splice(0)) reject(this.#closed.signal.reason);
    for (const { onClosed } of [...this.#followers]) onClosed();
    this.#followers.clear();
  }

  /** The changes of one owner since an instant; see `AlarmStore.changesSince`. */
  async since(owner: string, since: number): Promise<StoredChange[] | undefined> {
    const { pool, buckets } = this.#options;
    const bucket = buckets.of(owner);
    const counts = await Promise.all([ATTEMPT_COUNT, REPORT_COUNT].map((query) => pool.query(query, [bucket, since])));
    if (counts.some(([row]) => (row![0] as number) >= ROWS_READ)) return undefined;
    const [alarms, attempts, reports] = await Promise.all([
      pool.query(ALARMS_OF, [bucket, owner]),
      pool.query(ATTEMPTS, [bucket, [owner], since]),
      pool.query(REPORTS, [bucket, [owner], since]),
    ]);
    if (alarms.length >= ROWS_READ) return undefined;
    return [
      ...alarms.flatMap((row) => alarmChanges(timesOf(row), since)),
      ...attempts.map(attemptOf),
      ...reports.map(reportOf),
    ].sort((one, other) => one.at - other.at);
  }

  #owners(): Set<string> {
    const owners = new Set<string>();
    for (const follower of this.#followers) for (const owner of follower.owners) owners.add(owner);
    return owners;
  }

  async #run(): Promise<void> {
    const { clock, log } = this.#options;
    this.#isRunning = true;
    let isDown = false;
    for (let owners = this.#owners(); owners.size > 0 && !this.#closed.signal.aborted; owners = this.#owners()) {
      const began = clock.monotonic();
      const waiting = this.#refreshes.splice(0);
      try {
        await this.#poll(owners, began);
        for (const { resolve } of waiting) resolve();
        isDown = false;
      } catch (error) {
        for (const { reject } of waiting) reject(error);
        if (!isDown && !this.#closed.signal.aborted)
          log.warn({ err: error }, 'changes could not be read; trying again');
        isDown = true;
      }
      if (this.#refreshes.length > 0 || this.#closed.signal.aborted) continue;
      const pause = new AbortController();
      this.#wakeUp = () => pause.abort();
      this.#tookMs = clock.monotonic() - began;
      const pauseMs = Math.min(Math.max(POLL_MS - this.#tookMs, PAUSE_RATIO * this.#tookMs), LONGEST_PAUSE_MS);
      await wait(clock, pauseMs, pause.signal);
      this.#wakeUp = () => {};
    }
    this.#isRunning = false;
    this.#observed.clear();
    this.#reported.clear();
    this.#polledAt = Number.NEGATIVE_INFINITY;
    for (const { resolve } of this.#refreshes.splice(0)) resolve();
  }

  async #poll(owners: ReadonlySet<string>, began: number): Promise<void> {
    const { buckets, now } = this.#options;
    for (const owner of this.#observed.keys()) if (!owners.has(owner)) this.#observed.delete(owner);
    for (const [key, at] of this.#reported) {
      if (began - at < REMEMBERED_MS) break;
      this.#reported.delete(key);
    }
    const isNew = (owner: string) => !this.#observed.has(owner);
    const gap = began - this.#polledAt;
    const overlap = gap + Math.max(OVERLAP_MS, 2 * this.#tookMs);
    const isWide = overlap > WIDE_OVERLAP_MS || began - this.#wideAt >= WIDE_EVERY_MS || [...owners].some(isNew);
    const at = now();
    const since = at - (isWide ? WIDE_OVERLAP_MS : Math.ceil(overlap));
    const groups = buckets.group([...owners], (owner) => owner);
    const [found, edits] = await Promise.all([
      Promise.all(groups.map(([bucket, own]) => this.#changesOf(bucket, own, { since, at }))),
      Promise.all(groups.map(([bucket, own]) => this.#edits(bucket, own, at))),
    ]);
    // From here on nothing fails: what is marked as reported is reported.
    const changes = [...found.flatMap((each) => each.changes), ...edits.flatMap((each) => each.changes)];
    // Rows that were visible before the first poll of an owner are not news.
    const news = changes.filter((change) => this.#isFresh(change, began) && !isNew(change.owner));
    const isTruncated = found.some((each) => each.isTruncated);
    // The polls of this time found nothing, so late commits may be outside of all later overlaps.
    const isGap = gap > WIDE_OVERLAP_MS && gap !== Number.POSITIVE_INFINITY;
    if (isGap || (isTruncated && !isWide)) for (const owner of owners) news.push({ kind: 'lost', owner, at });
    for (const each of edits) for (const [owner, counter] of each.counters) this.#observed.set(owner, counter);
    // A wide poll is for late commits: the next one reads what it did not reach.
    if (!isTruncated || !isWide || isGap) this.#polledAt = began;
    if (isWide) this.#wideAt = began;
    if (news.length > 0) this.#report(news.sort((one, other) => one.at - other.at));
  }

  async #changesOf(
    bucket: number,
    owners: readonly string[],
    { since, at }: { since: number; at: number },
  ): Promise<{ changes: StoredChange[]; isTruncated: boolean }> {
    const call = (query: Statement, third: unknown): Call => ({ statement: query, values: [bucket, owners, third] });
    const [alarms, claims, attempts, reports] = await this.#each([
      call(CREATED, idAt(since)),
      call(CLAIMED, at),
      call(ATTEMPTS, since),
      call(REPORTS, since),
    ]);
    return {
      changes: [
        ...alarms!.flatMap((row) => alarmChanges(timesOf(row), 0)),
        ...claims!.map(claimOf),
        ...attempts!.map(attemptOf),
        ...reports!.map(reportOf),
      ],
      isTruncated: [alarms!, attempts!, reports!].some((rows) => rows.length >= ROWS_POLLED),
    };
  }

  /** Edits, cancels and deferrals of the owners whose counter has changed, and their counters. */
  async #edits(
    bucket: number,
    owners: readonly string[],
    at: number,
  ): Promise<{ changes: StoredChange[]; counters: [owner: string, counter: number][] }> {
    const { pool } = this.#options;
    const stored = new Map((await pool.query(EDITS, [bucket, owners])) as unknown as [string, number][]);
    const counters = owners
      .map((owner): [string, number] => [owner, stored.get(owner) ?? 0])
      .filter(([owner, counter]) => this.#observed.get(owner) !== counter);
    if (counters.length === 0) return { changes: [], counters };
    const changed = counters.map(([owner]) => owner);
    const [alarms, deferrals] = await this.#each([
      { statement: EDITED, values: [bucket, changed, at - EDITED_MS] },
      { statement: DEFERRED, values: [bucket, changed] },
    ]);
    const changes = [
      ...alarms!.flatMap((row) => alarmChanges({ ...timesOf(row), createdAt: Number.NEGATIVE_INFINITY }, 0)),
      ...deferrals!.map(
        ([owner, alarmId, fireId, until, reason]) =>
          ({ kind: 'deferred', owner, alarmId, at, fireId, until, reason: reason ?? TURN_RUNS }) as StoredChange,
      ),
    ];
    return { changes, counters };
  }

  async #each(calls: readonly Call[]): Promise<Row[][]> {
    const { pool, buckets } = this.#options;
    const answers = await buckets.query(pool, calls);
    return answers.map((answer) => {
      if (answer.status === 'rejected') throw answer.reason;
      return answer.value;
    });
  }

  #isFresh(change: StoredChange, began: number): boolean {
    const key = changeKey(change);
    const isKnown = this.#reported.has(key);
    // Again at the end of the order: a row that is still found must stay known.
    this.#reported.delete(key);
    this.#reported.set(key, began);
    return !isKnown;
  }

  #report(news: readonly StoredChange[]): void {
    for (const { owners, onChanges } of this.#followers) {
      const own = news.filter(({ owner }) => owners.has(owner));
      if (own.length > 0) onChanges(own);
    }
  }
}
