/** Reads alarms with their pending occurrences. */

import { ALARM_KINDS, ALARM_STATUSES } from '../../../wire/alarm-fields.ts';
import type { Alarm, AlarmState } from '../../alarm/alarm.ts';
import { type AlarmFilter, type AlarmSearch, lowerCaseAscii, SEARCH_STEP, type UpcomingRequest } from '../store.ts';
import type { Buckets } from './buckets.ts';
import type { Executor, PrimaryPool } from './pool.ts';
import { ALARM_ROWS, LAST, readState, STATE_COLUMNS, type Versioned, withDefinition, withProgress } from './rows.ts';
import { type Call, statement } from './statement.ts';

/** Sorts after every id. */
const AFTER_ALL = '\u{10ffff}';

const NEWEST = statement(
  'list',
  `SELECT ${STATE_COLUMNS} FROM ${ALARM_ROWS} WHERE d.bucket = $1 AND d.owner = $2 AND d.id < $3
   ORDER BY d.id DESC LIMIT $4`,
);

/**
 * One index scan for each status. Only the scan for fired ones skips other alarms: at most as many as the owner has open,
 * cancelled or failed.
 */
const FILTERED = statement(
  'list_filtered',
  `
  SELECT ${STATE_COLUMNS}
  FROM (
    SELECT id FROM (
      SELECT found.id
      FROM unnest($5::text[]) AS s (status) CROSS JOIN LATERAL (
        SELECT d.id FROM progress AS p ${withDefinition('$2', 'p.alarm_id')}
        WHERE p.bucket = $1 AND p.owner = $2 AND p.status = s.status AND p.status <> 'fired' AND p.alarm_id < $3
          AND d.kind = ANY ($6::text[])
        ORDER BY p.alarm_id DESC LIMIT $4
      ) AS found
      UNION ALL
      (SELECT d.id FROM progress AS p ${withDefinition('$2', 'p.alarm_id')}
       WHERE 'fired' = ANY ($5::text[]) AND p.bucket = $1 AND p.owner = $2 AND p.alarm_id < $3 AND p.status = 'fired'
         AND d.kind = ANY ($6::text[])
       ORDER BY p.alarm_id DESC LIMIT $4)
    ) AS found
    ORDER BY id DESC LIMIT $4
  ) AS page
  ${withDefinition('$2', 'page.id')}
  ${withProgress('$2', 'page.id')}
  ORDER BY d.id DESC`,
);

export async function list(
  executor: Executor,
  bucket: number,
  owner: string,
  filter: AlarmFilter,
): Promise<AlarmState[]> {
  const { status, kind, limit, before = AFTER_ALL } = filter;
  const rows =
    status === undefined && kind === undefined
      ? await executor.query(NEWEST, [bucket, owner, before, limit])
      : await executor.query(FILTERED, [
          bucket,
          owner,
          before,
          limit,
          status === undefined ? ALARM_STATUSES : [status],
          kind === undefined ? ALARM_KINDS : [kind],
        ]);
  return rows.map((row) => readState(row).state);
}

const CONVERSATION = statement(
  'has_conversation',
  `SELECT 1 FROM definitions AS d WHERE d.bucket = $1 AND d.owner = $2 AND d.made_by = $3 AND (
     d.conversation_id = $4 OR EXISTS (
       SELECT 1 FROM fire_receipts AS r
       WHERE r.bucket = $1 AND r.owner = $2 AND r.alarm_id = d.id AND r.conversation_id = $4)) LIMIT 1`,
);

export async function hasConversation(
  executor: Executor,
  bucket: number,
  owner: string,
  { madeBy, conversationId }: { madeBy: string; conversationId: string },
): Promise<boolean> {
  if (!isStorable(owner, madeBy, conversationId)) return false;
  return (await executor.query(CONVERSATION, [bucket, owner, madeBy, conversationId])).length > 0;
}

const LAST_READ = statement(
  'search_step',
  `SELECT min(id), count(*) FROM (
     SELECT id FROM definitions WHERE bucket = $1 AND owner = $2 AND id < $3 ORDER BY id DESC LIMIT ${SEARCH_STEP}) AS step`,
);

/**
 * Texts are stored as bytes, because they may contain characters that `text` of PostgreSQL cannot. Encoded with
 * escapes, all of them can be searched. In the collation "C" lower() folds only A to Z. Digits may match inside an
 * escape, so every match is checked again.
 */
const folded = (bytes: string) => `lower(encode(${bytes}, 'escape') COLLATE "C")`;
const SEARCH = statement(
  'search',
  `SELECT ${STATE_COLUMNS} FROM ${ALARM_ROWS}
   WHERE d.bucket = $1 AND d.owner = $2 AND d.id < $3 AND d.id >= $4
     AND ($5::text IS NULL OR p.status = $5) AND ($6::text IS NULL OR d.kind = $6)
     AND (strpos(${folded("convert_to(d.label, 'UTF8')")}, ${folded('$7::bytea')}) > 0
       OR strpos(${folded('d.wake_message')}, ${folded('$7::bytea')}) > 0)
   ORDER BY d.id DESC LIMIT $8`,
);

const contains = (text: string, { label, wakeMessage }: Alarm) => {
  const wanted = lowerCaseAscii(text);
  return [label, wakeMessage].some((held) => lowerCaseAscii(held).includes(wanted));
};

export async function search(
  executor: Executor,
  bucket: number,
  owner: string,
  { text, status, kind, before = AFTER_ALL, limit }: AlarmSearch,
): Promise<{ found: AlarmState[]; reached: string | undefined }> {
  const [step] = await executor.query(LAST_READ, [bucket, owner, before]);
  const [oldest, count] = [step![0] as string | null, Number(step![1])];
  if (oldest === null) return { found: [], reached: undefined };
  const sought = [bucket, owner, before, oldest, status ?? null, kind ?? null, Buffer.from(text, 'utf8'), limit];
  const states = (await executor.query(SEARCH, sought)).map((row) => readState(row).state);
  const end = count === SEARCH_STEP ? oldest : undefined;
  const reached = states.length === limit ? states.at(-1)!.alarm.id : end;
  return { found: states.filter(({ alarm }) => contains(text, alarm)), reached };
}

/** One owner's active alarms are sorted as a whole: an index by owner and instant would cost every fire a page. */
const UPCOMING = statement(
  'upcoming',
  `SELECT ${STATE_COLUMNS}
   FROM (
     SELECT alarm_id, due_at FROM progress
     WHERE bucket = $1 AND owner = $2 AND status = 'active' AND due_at IS NOT NULL AND due_at <= $5::bigint
       AND (due_at, alarm_id) > ($3::bigint, $4::text)
     ORDER BY due_at, alarm_id LIMIT $6
   ) AS page
   ${withDefinition('$2', 'page.alarm_id')}
   ${withProgress('$2', 'page.alarm_id')}
   ORDER BY page.due_at, page.alarm_id`,
);

export async function upcoming(
  executor: Executor,
  bucket: number,
  owner: string,
  { until = Number.MAX_SAFE_INTEGER, after, limit }: UpcomingRequest,
): Promise<AlarmState[]> {
  const { dueAt, alarmId } = after ?? { dueAt: Number.MIN_SAFE_INTEGER, alarmId: '' };
  const rows = await executor.query(UPCOMING, [bucket, owner, dueAt, alarmId, until, limit]);
  return rows.map((row) => readState(row).state);
}

// The number of due occurrences.

const COUNT = statement(
  'count_due',
  `
  SELECT count(*) FROM (
    SELECT 1 FROM progress
    WHERE bucket = $1 AND look_at <= $2::bigint AND holder IS NULL LIMIT $3::bigint) AS due`,
);

export async function countDue(
  pool: PrimaryPool,
  buckets: Buckets,
  { now, atMost }: { now: number; atMost: number },
): Promise<number> {
  const calls = buckets.all().map((bucket): Call => ({ statement: COUNT, values: [bucket, now, atMost] }));
  const due = (await buckets.queryAll(pool, calls)).reduce((sum, [count]) => sum + Number(count), 0);
  return Math.min(due, atMost);
}

const BY_ID = statement(
  'states_by_id',
  `
  SELECT ${STATE_COLUMNS}, ${LAST.list('p')}
  FROM unnest($2::text[], $3::text[]) AS wanted (owner, id)
  ${withDefinition('wanted.owner', 'wanted.id')}
  ${withProgress('wanted.owner', 'wanted.id')}`,
);

const BY_KEY = statement(
  'state_by_key',
  `SELECT ${STATE_COLUMNS} FROM ${ALARM_ROWS} WHERE d.bucket = $1 AND d.owner = $2 AND d.held_key = $3`,
);

/** Whether a text column can store all these texts. */
export function isStorable(...texts: string[]): boolean {
  return !texts.some((text) => text.includes('\0'));
}

/** Identifies an alarm within a batch. */
export type AlarmKey = { owner: string; id: string };

/** The existing alarms among the given keys, unordered. */
export async function readStates(pool: PrimaryPool, buckets: Buckets, keys: readonly AlarmKey[]): Promise<Versioned[]> {
  const calls = buckets
    .group(keys, ({ owner }) => owner)
    .map(([bucket, those]): Call => {
      const columns = [those.map(({ owner }) => owner), those.map(({ id }) => id)];
      return { statement: BY_ID, values: [bucket, ...columns] };
    });
  return (await buckets.queryAll(pool, calls)).map(readState);
}

export async function readOne(
  pool: PrimaryPool,
  buckets: Buckets,
  owner: string,
  id: string,
): Promise<Versioned | undefined> {
  if (!isStorable(owner, id)) return undefined;
  return (await readStates(pool, buckets, [{ owner, id }]))[0];
}

export async function findByKey(
  executor: Executor,
  buckets: Buckets,
  owner: string,
  key: string,
): Promise<AlarmState | undefined> {
  if (!isStorable(owner, key)) return undefined;
  const [row] = await executor.query(BY_KEY, [buckets.of(owner), owner, key]);
  return row && readState(row).state;
}
