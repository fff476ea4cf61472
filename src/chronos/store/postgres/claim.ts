/**
 * Claiming what is due.
 *
 * The order is earliest due first over all owners, and rows that another replica is claiming at this moment are passed
 * over. An owner has only so many places in flight: those whose places are full are left out, and an owner whose places
 * fill up within a claim is left out of the next look, which goes on where the last one ended. So nobody's backlog
 * hides what others are owed.
 */
import type { Clock } from '../../../kit/clock/clock.ts';
import type { Logger } from '../../../kit/log/log.ts';
import type { AlarmState } from '../../alarm/alarm.ts';
import { interruptedAttempt, settleInterrupted } from '../../alarm/settlement.ts';
import { checkTransition } from '../difference.ts';
import type { Claim, ClaimRequest, LeaseKey } from '../store.ts';
import { type Settlement, settleAll } from './complete.ts';
import type { PrimaryPool } from './pool.ts';
import { ALARM, OCCURRENCE } from './rows.ts';
import type { ClaimedStates } from './state.ts';
import { readStates } from './state.ts';
import { type Row, statement } from './statement.ts';

/** How many leases are ended in one transaction. */
const SWEEP = 256;
/** A look past crowded owners widens, up to this many rows. */
const WIDEST_LOOK = 4096;

const EXPIRED = statement(
  'expired',
  `SELECT owner, alarm_id, fire_id, fence FROM occurrences WHERE lease_until <= $1 ORDER BY lease_until LIMIT ${SWEEP}`,
);

/**
 * Leases what is due and gives it back with its alarm, in one trip. While there are leases to be ended it takes nothing
 * and says so. The first columns stand in every row: whether a lease has run out, and how far the look went. Where a
 * full owner's backlog is the oldest, `first` gets past it in the index alone; locking rows means fetching them.
 */
const CLAIM = statement(
  'claim',
  `
  WITH expired AS (
    SELECT EXISTS (SELECT 1 FROM occurrences WHERE lease_until <= $1) AND $2 AS any_left
  ), first AS (
    SELECT due_at FROM occurrences
    WHERE due_at >= $3 AND lease_until IS NULL AND owner <> ALL ($4::text[]) AND $4::text[] <> '{}'
    ORDER BY due_at
    LIMIT 1
  ), seen AS (
    SELECT owner, alarm_id, fire_id, due_at FROM occurrences
    WHERE due_at <= $1 AND due_at >= COALESCE((SELECT due_at FROM first), $3)
      AND lease_until IS NULL AND owner <> ALL ($4::text[])
      AND NOT (SELECT any_left FROM expired)
    ORDER BY due_at
    LIMIT $5
    FOR UPDATE SKIP LOCKED
  ), ranked AS (
    SELECT *, row_number() OVER (PARTITION BY owner ORDER BY due_at, alarm_id, fire_id) AS place FROM seen
  ), chosen AS (
    SELECT ranked.owner, ranked.alarm_id, ranked.fire_id
    FROM ranked LEFT JOIN unnest($6::text[], $7::bigint[]) AS busy (owner, places) ON busy.owner = ranked.owner
    WHERE ranked.place <= COALESCE(busy.places, $8)
    ORDER BY ranked.due_at, ranked.alarm_id, ranked.fire_id
    LIMIT $9
  ), claimed AS (
    UPDATE occurrences AS o
    SET attempt = o.attempt + 1, fence = o.fence + 1, lease_until = $10, claimed_at = $1
    FROM chosen
    WHERE o.owner = chosen.owner AND o.alarm_id = chosen.alarm_id AND o.fire_id = chosen.fire_id
    RETURNING o.alarm_revision, ${OCCURRENCE.list('o')}
  )
  SELECT (SELECT any_left FROM expired), (SELECT count(*) FROM seen), (SELECT max(due_at) FROM seen),
    claimed.alarm_revision, a.revision, (
      SELECT count(*) FROM occurrences AS o WHERE o.owner = claimed.owner AND o.alarm_id = claimed.alarm_id
    ), ${OCCURRENCE.list('claimed')}, ${ALARM.list('a')}
  FROM (SELECT 1) AS always
  LEFT JOIN claimed ON true
  LEFT JOIN alarms AS a ON a.owner = claimed.owner AND a.id = claimed.alarm_id
  ORDER BY claimed.due_at, claimed.alarm_id, claimed.fire_id`,
);

type Look = {
  expired: boolean;
  seen: number;
  until: number;
  claims: Claim[];
  /** Those of them whose alarm was read before a change and whose occurrence after it. */
  torn: Claim[];
  /** Those whose alarm owes nothing else, with its revision. */
  whole: { claim: Claim; revision: number }[];
};

function readLook(rows: readonly Row[]): Look {
  const [expired, seen, until] = rows[0] as [boolean, number, number | null];
  const look: Look = { expired, seen, until: until ?? 0, claims: [], torn: [], whole: [] };
  for (const row of rows) {
    const [, , , revision, revisionOfAlarm, owed] = row;
    if (revision === null) continue;
    const claim = { occurrence: OCCURRENCE.read(row, 6), alarm: ALARM.read(row, 6 + OCCURRENCE.members.length) };
    look.claims.push(claim);
    if (revision !== revisionOfAlarm) look.torn.push(claim);
    else if (owed === 1) look.whole.push({ claim, revision: revision as number });
  }
  return look;
}

/** Counts the places that owners have left. */
class Places {
  readonly #perOwner: number;
  readonly #taken: Map<string, number>;

  constructor({ perOwner, inFlight }: ClaimRequest) {
    this.#perOwner = perOwner;
    this.#taken = new Map(inFlight);
  }

  take(owner: string): void {
    this.#taken.set(owner, (this.#taken.get(owner) ?? 0) + 1);
  }

  /** Owners who can have no more. */
  full(): string[] {
    return [...this.#taken].filter(([, count]) => count >= this.#perOwner).map(([owner]) => owner);
  }

  /** Owners who can have some, but fewer than all. */
  busy(): [owner: string, left: number][] {
    return [...this.#taken]
      .filter(([, count]) => count < this.#perOwner)
      .map(([owner, count]) => [owner, this.#perOwner - count]);
  }
}

export function prepareClaim(pool: PrimaryPool, claimed: ClaimedStates, clock: Clock, log: Logger) {
  /**
   * What the interruption makes of the alarm. One that cannot be settled must not stand in the way of every claim: it
   * loses the lease, stays as it is otherwise, and the log says so.
   */
  function interrupted(given: AlarmState, fireId: string, now: number): AlarmState {
    try {
      const wanted = settleInterrupted(given, fireId, now);
      checkTransition(given, wanted);
      return wanted;
    } catch (error) {
      log.error(
        { err: error, fire_id: fireId },
        'an interrupted attempt could not be settled; only its lease is ended',
      );
      return given;
    }
  }

  /**
   * Ends every lease that ran out, whoever its owner is. Two replicas may do so together: each lease is ended by one.
   */
  async function sweep(now: number): Promise<void> {
    for (;;) {
      const rows = await pool.query(EXPIRED, [now]);
      const settlements = rows.map(([owner, alarmId, fireId, fence]): Settlement => {
        const key = { owner, alarmId, fireId, fence } as LeaseKey;
        return {
          key,
          // Renewed since: not to be ended.
          attempt: (held) => (held.leaseUntil! <= now ? interruptedAttempt(held) : undefined),
          settle: (state) => interrupted(state, key.fireId, now),
        };
      });
      await settleAll(pool, clock, settlements);
      if (rows.length < SWEEP) return;
    }
  }

  async function look(request: ClaimRequest, places: Places, options: LookOptions): Promise<Look> {
    const busy = places.busy();
    const rows = await pool.query(CLAIM, [
      request.now,
      options.mindExpired,
      options.from,
      places.full(),
      options.width,
      busy.map(([owner]) => owner),
      busy.map(([, left]) => left),
      request.perOwner,
      options.limit,
      request.leaseUntil,
    ]);
    const found = readLook(rows);
    for (const { claim, revision } of found.whole) claimed.remember(claim, revision);
    if (found.torn.length > 0) await mend(found.torn);
    for (const { occurrence } of found.claims) places.take(occurrence.owner);
    return found;
  }

  /** An alarm was changed while its occurrence was being claimed: reads it as it is since. */
  async function mend(torn: Claim[]): Promise<void> {
    const states = await readStates(
      pool,
      torn.map(({ occurrence }) => ({ owner: occurrence.owner, id: occurrence.alarmId })),
    );
    const alarms = new Map(states.map(({ state: { alarm } }) => [`${alarm.owner} ${alarm.id}`, alarm]));
    for (const claim of torn) {
      const { owner, alarmId } = claim.occurrence;
      claim.alarm = alarms.get(`${owner} ${alarmId}`) ?? claim.alarm;
    }
  }

  return async (request: ClaimRequest): Promise<Claim[]> => {
    const { now, limit, perOwner } = request;
    if (limit <= 0 || perOwner <= 0) {
      await sweep(now);
      return [];
    }
    const places = new Places(request);
    const claims: Claim[] = [];
    const options: LookOptions = { mindExpired: true, from: Number.MIN_SAFE_INTEGER, width: limit, limit };
    for (;;) {
      const found = await look(request, places, options).catch((error: unknown) => {
        // What was claimed already is leased to us: it is the caller's.
        if (claims.length === 0) throw error;
        log.warn({ err: error, claimed: claims.length }, 'a claim was cut short');
        return undefined;
      });
      if (!found) return claims;
      claims.push(...found.claims);
      if (found.expired) {
        await sweep(now);
        options.mindExpired = false;
        continue;
      }
      // What was passed over belongs to owners whose places are full by now, or to another replica.
      if (claims.length >= limit || found.seen < options.width) return claims;
      options.mindExpired = false;
      options.from = found.until;
      options.limit = limit - claims.length;
      options.width = Math.min(options.width * 4, Math.max(WIDEST_LOOK, limit));
    }
  };
}

type LookOptions = {
  /** Take nothing while there are leases to be ended. */
  mindExpired: boolean;
  /** Where the look begins: nothing due earlier is left. */
  from: number;
  /** How many rows to look at. */
  width: number;
  /** How many to take. */
  limit: number;
};
