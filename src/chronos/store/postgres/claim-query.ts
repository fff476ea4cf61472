/** The claim query of one bucket: its statement, parameters and result. */
import type { Occurrence } from '../../alarm/alarm.ts';
import type { Claim, ClaimRequest } from '../store.ts';
import type { Standing } from './replicas.ts';
import { ALARM, OCCURRENCE } from './rows.ts';
import { type Call, type Row, statement } from './statement.ts';

/** Later than any due time. */
const NEVER = Number.MAX_SAFE_INTEGER;

/**
 * Claims due occurrences and returns them with their alarms, in one round trip.
 *
 * The first columns repeat in every row:
 *
 * - the number of rows read, and the last due time among them
 * - the next due time; absent when more may be due by now, or another transaction is changing a due row
 * - the number of due occurrences up to $11, where that is requested
 *
 * Where the backlog of an owner without slots is the oldest, `first` skips it in the index alone. Locking rows would
 * fetch them.
 *
 * After the instant $12 of the database's clock it claims nothing: its replica may have been given up.
 */
const CLAIM = statement(
  'claim',
  `
  WITH first AS (
    SELECT look_at FROM occurrences
    WHERE bucket = $1 AND look_at >= $3 AND owner <> ALL ($4::text[]) AND $4::text[] <> '{}'
    ORDER BY look_at
    LIMIT 1
  ), seen AS (
    SELECT owner, alarm_id, fire_id, look_at FROM occurrences
    WHERE bucket = $1 AND look_at <= $2 AND look_at >= COALESCE((SELECT look_at FROM first), $3)
      AND holder IS NULL AND owner <> ALL ($4::text[])
      AND CAST(extract(epoch FROM statement_timestamp()) * 1000 AS BIGINT) < $12::bigint
    ORDER BY look_at
    LIMIT $5::bigint
    FOR UPDATE SKIP LOCKED
  ), due AS (
    SELECT 1 FROM occurrences
    WHERE bucket = $1 AND look_at <= $2 AND look_at >= COALESCE((SELECT look_at FROM first), $3)
      AND holder IS NULL AND owner <> ALL ($4::text[])
    LIMIT GREATEST($5::bigint, $11::bigint)
  ), ranked AS (
    SELECT *, row_number() OVER (PARTITION BY owner ORDER BY look_at, alarm_id, fire_id) AS place FROM seen
  ), chosen AS (
    SELECT ranked.owner, ranked.alarm_id, ranked.fire_id
    FROM ranked LEFT JOIN unnest($6::text[], $7::bigint[]) AS busy (owner, places) ON busy.owner = ranked.owner
    WHERE ranked.place <= COALESCE(busy.places, $8)
    ORDER BY ranked.look_at, ranked.alarm_id, ranked.fire_id
    LIMIT $9
  ), claimed AS (
    UPDATE occurrences AS o
    SET attempt = o.attempt + 1, fence = o.fence + 1, holder = $10, claimed_at = $2
    FROM chosen
    WHERE o.bucket = $1 AND o.owner = chosen.owner AND o.alarm_id = chosen.alarm_id AND o.fire_id = chosen.fire_id
    RETURNING o.alarm_revision, ${OCCURRENCE.list('o')}
  ), looked AS (
    SELECT count(*) AS seen, max(look_at) AS until FROM seen
  )
  SELECT looked.seen, looked.until,
    CASE WHEN looked.seen < GREATEST($5::bigint, $11::bigint) AND looked.seen = (SELECT count(*) FROM due) THEN COALESCE((
      SELECT look_at FROM occurrences
      WHERE bucket = $1 AND look_at > $2 AND holder IS NULL AND owner <> ALL ($4::text[])
      ORDER BY look_at LIMIT 1
    ), ${NEVER}) END,
    CASE WHEN $11::bigint > 0 THEN (SELECT count(*) FROM due) END, claimed.alarm_revision, a.revision, (
      SELECT count(*) FROM occurrences AS o
      WHERE o.bucket = $1 AND o.owner = claimed.owner AND o.alarm_id = claimed.alarm_id
    ), ${OCCURRENCE.list('claimed')}, ${ALARM.list('a')}
  FROM looked
  LEFT JOIN claimed ON true
  LEFT JOIN alarms AS a ON a.bucket = $1 AND a.owner = claimed.owner AND a.id = claimed.alarm_id`,
);

export type ClaimResult = {
  seen: number;
  until: number;
  /** The next due time; `undefined` when another query must find it. */
  next: number | undefined;
  /** A lower bound of the remaining due occurrences; `undefined` where they were not counted. */
  left: number | undefined;
  claims: Claim[];
  /** Claims whose alarm was read before a change and whose occurrence was read after it. */
  stale: Claim[];
  /** Claims whose alarm has no other pending occurrence, with its revision. */
  single: { claim: Claim; revision: number }[];
};

export function readClaimResult(rows: readonly Row[]): ClaimResult {
  const [seen, until, next, due] = rows[0] as [number, number | null, number | null, number | null];
  const left = due === null ? undefined : due - seen;
  const result: ClaimResult = {
    seen,
    until: until ?? 0,
    next: next ?? undefined,
    left,
    claims: [],
    stale: [],
    single: [],
  };
  if (next === NEVER) result.next = Infinity;
  for (const row of rows) {
    const [, , , , revision, revisionOfAlarm, pendingCount] = row;
    if (revision === null) continue;
    const claim = { occurrence: OCCURRENCE.read(row, 7), alarm: ALARM.read(row, 7 + OCCURRENCE.members.length) };
    result.claims.push(claim);
    if (revision !== revisionOfAlarm) result.stale.push(claim);
    else if (pendingCount === 1) result.single.push({ claim, revision: revision as number });
  }
  result.claims.sort((one, other) => byDueInstant(one.occurrence, other.occurrence));
  return result;
}

function byDueInstant(one: Occurrence, other: Occurrence): number {
  return one.dueAt! - other.dueAt! || (one.fireId < other.fireId ? -1 : 1);
}

/** Counts the free slots of owners. */
export class OwnerSlots {
  readonly #perOwner: number;
  readonly #used: Map<string, number>;

  constructor({ perOwner, inFlight }: ClaimRequest) {
    this.#perOwner = perOwner;
    this.#used = new Map(inFlight);
  }

  take(owner: string): void {
    this.#used.set(owner, (this.#used.get(owner) ?? 0) + 1);
  }

  /** Owners without a free slot. */
  full(): string[] {
    return [...this.#used].filter(([, count]) => count >= this.#perOwner).map(([owner]) => owner);
  }

  /** Owners with some slots in use and some free. */
  busy(): [owner: string, left: number][] {
    return [...this.#used]
      .filter(([, count]) => count < this.#perOwner)
      .map(([owner, count]) => [owner, this.#perOwner - count]);
  }
}

/** A request, and what this replica may claim as. */
export type StandingRequest = ClaimRequest & { standing: Standing };

/** The rows that a claim query reads. */
export type ClaimRange = {
  /** Start: all earlier due occurrences are processed. */
  from: number;
  /** Maximum number of rows to read. */
  width: number;
  /** Maximum number of occurrences to claim. */
  limit: number;
};

/**
 * @param mine whether an owner belongs to the bucket
 * @param depth maximum when counting due occurrences; 0: no count
 */
export function claimCall(
  bucket: number,
  { now, perOwner, standing }: StandingRequest,
  slots: OwnerSlots,
  range: ClaimRange,
  { mine, depth }: { mine: (owner: string) => boolean; depth: number },
): Call {
  const busy = slots.busy().filter(([owner]) => mine(owner));
  return {
    statement: CLAIM,
    values: [
      bucket,
      now,
      range.from,
      slots.full().filter(mine),
      range.width,
      busy.map(([owner]) => owner),
      busy.map(([, left]) => left),
      perOwner,
      range.limit,
      standing.holder,
      depth,
      standing.until,
    ],
  };
}
