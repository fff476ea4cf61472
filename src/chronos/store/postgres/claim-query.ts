/** The claim query of one bucket: its statement, parameters and result. */
import type { Occurrence } from '../../alarm/alarm.ts';
import type { Claim, ClaimRequest } from '../store.ts';
import type { Standing } from './replicas.ts';
import { ALARM_LIST, DEFINITION, OWED, OWED_WIDTH, PROGRESS, readAlarm, readOccurrence } from './rows.ts';
import { type Call, type Row, statement } from './statement.ts';

/** Later than any due time. */
const NEVER = Number.MAX_SAFE_INTEGER;

/**
 * Claims due occurrences and returns them with their alarms, in one round trip.
 *
 * The first columns repeat in every row:
 *
 * - the number of rows read, and the last due time among them
 * - the next due time; absent when more may be due by now, or another transaction is changing a due row or has just
 *   changed it, so that it is not where it was
 * - the number of due occurrences up to $11, where that is requested
 *
 * Where the backlog of an owner without slots is the oldest, `first` skips it in the index alone. Locking rows would
 * fetch them.
 *
 * After the instant $12 of the database's clock it claims nothing: its replica may have been given up.
 */
const claimStatement = (name: string, chosenRow: string) =>
  statement(
    name,
    `
  WITH first AS (
    SELECT look_at FROM progress
    WHERE bucket = $1 AND look_at >= $3 AND owner <> ALL ($4::text[]) AND $4::text[] <> '{}'
    ORDER BY look_at
    LIMIT 1
  ), seen AS (
    SELECT ctid AS location, owner, alarm_id, trigger_at, look_at FROM progress
    WHERE bucket = $1 AND look_at <= $2 AND look_at >= COALESCE((SELECT look_at FROM first), $3)
      AND holder IS NULL AND owner <> ALL ($4::text[])
      AND CAST(extract(epoch FROM statement_timestamp()) * 1000 AS BIGINT) < $12::bigint
    ORDER BY look_at
    LIMIT $5::bigint
    FOR UPDATE SKIP LOCKED
  ), due AS (
    SELECT 1 FROM progress
    WHERE bucket = $1 AND look_at <= $2 AND look_at >= COALESCE((SELECT look_at FROM first), $3)
      AND holder IS NULL AND owner <> ALL ($4::text[])
    LIMIT GREATEST($5::bigint, $11::bigint)
  ), ranked AS (
    SELECT *, row_number() OVER (PARTITION BY owner ORDER BY look_at, alarm_id, trigger_at) AS place FROM seen
  ), chosen AS (
    SELECT ranked.location, ranked.owner, ranked.alarm_id, ranked.trigger_at
    FROM ranked LEFT JOIN unnest($6::text[], $7::bigint[]) AS busy (owner, places) ON busy.owner = ranked.owner
    WHERE ranked.place <= COALESCE(busy.places, $8)
    ORDER BY ranked.look_at, ranked.alarm_id, ranked.trigger_at
    LIMIT $9
  ), p AS (
    UPDATE progress AS p
    SET revision = p.revision + 1, attempt = p.attempt + 1, fence = p.fence + 1, holder = $10, claimed_at = $2
    FROM chosen
    WHERE p.bucket = $1 AND ${chosenRow}
    RETURNING p.ctid AS location, p.owner, p.alarm_id, p.trigger_at, p.revision, p.edition, p.triggers, p.last_attempt,
      ${PROGRESS.list('p')}, ${OWED.list('p')}
  ), looked AS (
    SELECT count(*) AS seen, max(look_at) AS until FROM seen
  )
  SELECT looked.seen, looked.until,
    CASE WHEN looked.seen < GREATEST($5::bigint, $11::bigint) AND looked.seen = (SELECT count(*) FROM due)
        AND (SELECT count(*) FROM p) = (SELECT count(*) FROM chosen) THEN COALESCE((
      SELECT look_at FROM progress
      WHERE bucket = $1 AND look_at > $2 AND holder IS NULL AND owner <> ALL ($4::text[])
      ORDER BY look_at LIMIT 1
    ), ${NEVER}) END,
    CASE WHEN $11::bigint > 0 THEN (SELECT count(*) FROM due) END,
    p.trigger_at, p.revision, p.triggers, p.last_attempt, p.edition = d.edition, p.location,
    ${OWED.list('p')}, ${ALARM_LIST}
  FROM looked
  LEFT JOIN p ON true
  LEFT JOIN definitions AS d ON d.bucket = $1 AND d.owner = p.owner AND d.id = p.alarm_id`,
  );

/** A locked row stays where it is, so that its location finds it without the index. */
const CLAIM = claimStatement('claim', 'p.ctid = chosen.location');
const CLAIM_APART = claimStatement(
  'claim_apart',
  'p.owner = chosen.owner AND p.alarm_id = chosen.alarm_id AND p.trigger_at = chosen.trigger_at',
);

const OWED_AT = 10;
const ALARM_AT = OWED_AT + OWED_WIDTH;
const OWNER_AT = ALARM_AT + DEFINITION.members.indexOf('owner');
const ID_AT = ALARM_AT + DEFINITION.members.indexOf('id');

/** What the row of a claimed occurrence had when it was claimed. */
export type ClaimedRow = { readonly revision: number; readonly location: string; readonly hasAttempt: boolean };

export type ClaimResult = {
  seen: number;
  until: number;
  /** The next due time; `undefined` when another query must find it. */
  next: number | undefined;
  /** A lower bound of the remaining due occurrences; `undefined` where they were not counted. */
  left: number | undefined;
  claims: Claim[];
  /** Claims whose alarm must be read: of triggers, and where an edit happened between the readings of two rows. */
  incomplete: Claim[];
};

/**
 * @param onAlone called with each claim whose alarm has no other pending occurrence
 */
export function readClaimResult(rows: readonly Row[], onAlone: (claim: Claim, row: ClaimedRow) => void): ClaimResult {
  const [seen, until, next, due] = rows[0] as [number, number | null, number | null, number | null];
  const left = due === null ? undefined : due - seen;
  const result: ClaimResult = { seen, until: until ?? 0, next: next ?? undefined, left, claims: [], incomplete: [] };
  if (next === NEVER) result.next = Infinity;
  for (const row of rows) {
    const triggerAt = row[4] as number | null;
    if (triggerAt === null) continue;
    const source = triggerAt === 0 ? 'schedule' : 'trigger';
    const occurrence = readOccurrence(row, OWED_AT, row[OWNER_AT] as string, row[ID_AT] as string, source)!;
    const claim = { alarm: readAlarm(row, ALARM_AT), occurrence };
    result.claims.push(claim);
    if (triggerAt !== 0 || row[8] !== true) result.incomplete.push(claim);
    else if (row[6] === 0)
      onAlone(claim, { revision: row[5] as number, location: row[9] as string, hasAttempt: row[7] !== null });
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
 * @param isApart whether tables are distributed over servers
 */
export function claimCall(
  bucket: number,
  { now, perOwner, standing }: StandingRequest,
  slots: OwnerSlots,
  range: ClaimRange,
  { mine, depth, isApart }: { mine: (owner: string) => boolean; depth: number; isApart: boolean },
): Call {
  const busy = slots.busy().filter(([owner]) => mine(owner));
  return {
    statement: isApart ? CLAIM_APART : CLAIM,
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
