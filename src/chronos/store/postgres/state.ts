/** Reading alarms with what they owe. */

import { ALARM_KINDS, ALARM_STATUSES } from '../../../wire/alarm.ts';
import type { AlarmState } from '../../alarm/alarm.ts';
import type { AlarmFilter, Claim, LeaseKey } from '../store.ts';
import type { Executor } from './pool.ts';
import { readState, STATE_COLUMNS, type Versioned } from './rows.ts';
import { statement } from './statement.ts';

/** Sorts after every id. */
const AFTER_ALL = '\u{10ffff}';

const NEWEST = statement(
  'list',
  `SELECT ${STATE_COLUMNS} FROM alarms AS a WHERE a.owner = $1 AND a.id < $2 ORDER BY a.id DESC LIMIT $3`,
);

/**
 * One walk down the index per status and kind, merged: no filter reads more than `limit` entries of each, however many
 * alarms of the other sort the owner has collected over the years.
 */
const FILTERED = statement(
  'list_filtered',
  `
  SELECT ${STATE_COLUMNS}
  FROM (
    SELECT found.id
    FROM unnest($4::text[]) AS s (status) CROSS JOIN unnest($5::text[]) AS k (kind)
    CROSS JOIN LATERAL (
      SELECT id FROM alarms
      WHERE owner = $1 AND status = s.status AND kind = k.kind AND id < $2 ORDER BY id DESC LIMIT $3
    ) AS found
    ORDER BY found.id DESC LIMIT $3
  ) AS page
  JOIN alarms AS a ON a.owner = $1 AND a.id = page.id
  ORDER BY a.id DESC`,
);

export async function list(executor: Executor, owner: string, filter: AlarmFilter): Promise<AlarmState[]> {
  const { status, kind, limit, before = AFTER_ALL } = filter;
  const rows =
    status === undefined && kind === undefined
      ? await executor.query(NEWEST, [owner, before, limit])
      : await executor.query(FILTERED, [
          owner,
          before,
          limit,
          status === undefined ? ALARM_STATUSES : [status],
          kind === undefined ? ALARM_KINDS : [kind],
        ]);
  return rows.map((row) => readState(row).state);
}

// When there will be something to claim, and how much there is.

const NEXT = statement(
  'next_due',
  `
  SELECT LEAST(
    (SELECT due_at FROM occurrences
     WHERE due_at IS NOT NULL AND lease_until IS NULL AND owner <> ALL ($1::text[]) ORDER BY due_at LIMIT 1),
    (SELECT lease_until FROM occurrences
     WHERE lease_until IS NOT NULL AND owner <> ALL ($1::text[]) ORDER BY lease_until LIMIT 1))`,
);

export async function nextDue(executor: Executor, saturated: ReadonlySet<string>): Promise<number | undefined> {
  const [row] = await executor.query(NEXT, [[...saturated]]);
  return (row?.[0] as number | null) ?? undefined;
}

const COUNT = statement(
  'count_due',
  `
  SELECT count(*) FROM (
    SELECT 1 FROM occurrences WHERE due_at <= $1::bigint AND lease_until IS NULL LIMIT $2::bigint) AS due`,
);

export async function countDue(executor: Executor, { now, atMost }: { now: number; atMost: number }): Promise<number> {
  const [row] = await executor.query(COUNT, [now, atMost]);
  return Number(row![0]);
}

/** More than are in flight at once; beyond that they are claims whose outcome never came. */
const MOST = 1024;

export class ClaimedStates {
  readonly #states = new Map<string, Versioned>();

  /** @param claim of an alarm that owes nothing else */
  remember({ alarm, occurrence }: Claim, revision: number): void {
    this.#states.set(occurrence.fireId, { revision, state: { alarm, occurrences: [occurrence] } });
    if (this.#states.size <= MOST) return;
    const [oldest] = this.#states.keys();
    this.#states.delete(oldest!);
  }

  /** Gives a state out, once. */
  take({ owner, fireId, fence }: LeaseKey): Versioned | undefined {
    const remembered = this.#states.get(fireId);
    if (!remembered) return undefined;
    this.#states.delete(fireId);
    const [held] = remembered.state.occurrences;
    return held?.owner === owner && held.fence === fence ? remembered : undefined;
  }

  renewed(fireId: string, leaseUntil: number): void {
    const remembered = this.#states.get(fireId);
    if (!remembered) return;
    const { revision, state } = remembered;
    const occurrences = state.occurrences.map((occurrence) => ({ ...occurrence, leaseUntil }));
    this.#states.set(fireId, { revision, state: { alarm: state.alarm, occurrences } });
  }
}

const BY_ID = statement(
  'states_by_id',
  `
  SELECT ${STATE_COLUMNS}
  FROM unnest($1::text[], $2::text[]) AS wanted (owner, id)
  JOIN alarms AS a ON a.owner = wanted.owner AND a.id = wanted.id`,
);

const BY_KEY = statement(
  'state_by_key',
  `
  SELECT ${STATE_COLUMNS} FROM alarms AS a
  WHERE a.owner = $1 AND a.idempotency_key = $2 AND a.idempotency_key IS NOT NULL AND a.status <> 'cancelled'`,
);

/** What no text column holds is not there. */
export function isStorable(...texts: string[]): boolean {
  return !texts.some((text) => text.includes('\0'));
}

/** An alarm's name within a batch. */
export type AlarmKey = { owner: string; id: string };

/** The alarms that exist among those named, in no particular order. */
export async function readStates(executor: Executor, keys: readonly AlarmKey[]): Promise<Versioned[]> {
  const rows = await executor.query(BY_ID, [keys.map(({ owner }) => owner), keys.map(({ id }) => id)]);
  return rows.map(readState);
}

export async function readOne(executor: Executor, owner: string, id: string): Promise<Versioned | undefined> {
  if (!isStorable(owner, id)) return undefined;
  return (await readStates(executor, [{ owner, id }]))[0];
}

export async function findByKey(executor: Executor, owner: string, key: string): Promise<AlarmState | undefined> {
  if (!isStorable(owner, key)) return undefined;
  const [row] = await executor.query(BY_KEY, [owner, key]);
  return row && readState(row).state;
}
