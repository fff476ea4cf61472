/**
 * Claiming what is due.
 *
 * The order is earliest due first over all owners of a bucket, and rows that another replica is claiming at this moment
 * are passed over. An owner has only so many places in flight: those whose places are full are left out, and an owner
 * whose places fill up within a claim is left out of the next look, which goes on where the last one ended. So nobody's
 * backlog hides what others are owed.
 */
import type { Clock } from '../../../kit/clock/clock.ts';
import type { Logger } from '../../../kit/log/log.ts';
import type { AlarmState, Occurrence } from '../../alarm/alarm.ts';
import { interruptedAttempt, settleInterrupted } from '../../alarm/settlement.ts';
import { checkTransition } from '../difference.ts';
import type { Claim, ClaimRequest, LeaseKey } from '../store.ts';
import type { Buckets } from './buckets.ts';
import { type Settlement, settleAll } from './complete.ts';
import type { Outlook } from './outlook.ts';
import type { PrimaryPool } from './pool.ts';
import { ALARM, OCCURRENCE } from './rows.ts';
import type { ClaimedStates } from './state.ts';
import { readStates } from './state.ts';
import { type Row, statement } from './statement.ts';

/** How many leases are ended in one transaction. */
const SWEEP = 256;
/** A look past crowded owners widens, up to this many rows. */
const WIDEST_LOOK = 4096;
/** So often a bucket is searched for leases that ran out, unless somebody has seen one before. */
const SWEEP_EVERY_MS = 1000;
/** Where a search steps over a long backlog, it may take up at most one part in so many of the time. */
const SWEEP_SHARE = 50;
/** What is due within this time after a claim is looked for without regard to leases that may end before. */
const LEASES_ASIDE_MS = 1000;
/** Buckets that are claimed from at once. */
const AT_ONCE = 4;

/** Later than anything is due. */
const NEVER = Number.MAX_SAFE_INTEGER;

/** Leases that ran out; the first column stands in every row and says when the next one does. */
const EXPIRED = statement(
  'expired',
  `
  SELECT (SELECT min(lease_until) FROM occurrences WHERE bucket = $1 AND look_at <= $2 AND lease_until > $2),
    o.owner, o.alarm_id, o.fire_id, o.fence
  FROM (SELECT 1) AS always LEFT JOIN (
    SELECT owner, alarm_id, fire_id, fence FROM occurrences
    WHERE bucket = $1 AND look_at <= $2 AND lease_until <= $2 LIMIT ${SWEEP}
  ) AS o ON true`,
);

/**
 * Leases what is due and gives it back with its alarm, in one trip. The first columns stand in every row: how many rows
 * were looked at, how far the look went, and when the next is due, unless there may be more that is due by now, or
 * somebody else is changing some of that. Where a full owner's backlog is the oldest, `first` gets past it in the index alone; locking rows
 * means fetching them.
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
      AND lease_until IS NULL AND owner <> ALL ($4::text[])
    ORDER BY look_at
    LIMIT $5
    FOR UPDATE SKIP LOCKED
  ), due AS (
    SELECT 1 FROM occurrences
    WHERE bucket = $1 AND look_at <= $2 AND look_at >= COALESCE((SELECT look_at FROM first), $3)
      AND lease_until IS NULL AND owner <> ALL ($4::text[])
    LIMIT $5
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
    SET attempt = o.attempt + 1, fence = o.fence + 1, lease_until = $10, claimed_at = $2
    FROM chosen
    WHERE o.bucket = $1 AND o.owner = chosen.owner AND o.alarm_id = chosen.alarm_id AND o.fire_id = chosen.fire_id
    RETURNING o.alarm_revision, ${OCCURRENCE.list('o')}
  ), looked AS (
    SELECT count(*) AS seen, max(look_at) AS until FROM seen
  )
  SELECT looked.seen, looked.until,
    CASE WHEN looked.seen < $5 AND looked.seen = (SELECT count(*) FROM due) THEN COALESCE((
      SELECT look_at FROM occurrences
      WHERE bucket = $1 AND look_at > $2 AND lease_until IS NULL AND owner <> ALL ($4::text[])
      ORDER BY look_at LIMIT 1
    ), ${NEVER}) END,
    claimed.alarm_revision, a.revision, (
      SELECT count(*) FROM occurrences AS o
      WHERE o.bucket = $1 AND o.owner = claimed.owner AND o.alarm_id = claimed.alarm_id
    ), ${OCCURRENCE.list('claimed')}, ${ALARM.list('a')}
  FROM looked
  LEFT JOIN claimed ON true
  LEFT JOIN alarms AS a ON a.bucket = $1 AND a.owner = claimed.owner AND a.id = claimed.alarm_id`,
);

type Look = {
  seen: number;
  until: number;
  /** When the next is due; `undefined` when that has to be asked. */
  next: number | undefined;
  claims: Claim[];
  /** Those of them whose alarm was read before a change and whose occurrence after it. */
  torn: Claim[];
  /** Those whose alarm owes nothing else, with its revision. */
  whole: { claim: Claim; revision: number }[];
};

function readLook(rows: readonly Row[]): Look {
  const [seen, until, next] = rows[0] as [number, number | null, number | null];
  const look: Look = { seen, until: until ?? 0, next: next ?? undefined, claims: [], torn: [], whole: [] };
  if (next === NEVER) look.next = Infinity;
  for (const row of rows) {
    const [, , , revision, revisionOfAlarm, owed] = row;
    if (revision === null) continue;
    const claim = { occurrence: OCCURRENCE.read(row, 6), alarm: ALARM.read(row, 6 + OCCURRENCE.members.length) };
    look.claims.push(claim);
    if (revision !== revisionOfAlarm) look.torn.push(claim);
    else if (owed === 1) look.whole.push({ claim, revision: revision as number });
  }
  look.claims.sort((one, other) => byDueInstant(one.occurrence, other.occurrence));
  return look;
}

function byDueInstant(one: Occurrence, other: Occurrence): number {
  return one.dueAt! - other.dueAt! || (one.fireId < other.fireId ? -1 : 1);
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

function inOrder({ occurrence: one }: Claim, { occurrence: other }: Claim): number {
  return one.dueAt! - other.dueAt! || (one.alarmId + one.fireId < other.alarmId + other.fireId ? -1 : 1);
}

type Options = {
  pool: PrimaryPool;
  buckets: Buckets;
  outlook: Outlook;
  claimed: ClaimedStates;
  clock: Clock;
  log: Logger;
};

/** Where a look begins and how far it goes. */
type Reach = {
  /** Nothing due earlier is left. */
  from: number;
  /** How many rows to look at. */
  width: number;
  /** How many to take. */
  limit: number;
};

export function prepareClaim({ pool, buckets, outlook, claimed, clock, log }: Options) {
  /** When each bucket is to be searched for leases that ran out, and up to when it has been. */
  const sweeps = buckets.all().map(() => ({ dueAt: Number.NEGATIVE_INFINITY, last: Number.NEGATIVE_INFINITY }));

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
   * Ends every lease of a bucket that ran out, whoever its owner is. Two replicas may do so together: each lease is
   * ended by one.
   */
  async function sweep(bucket: number, now: number): Promise<void> {
    const began = clock.monotonic();
    let nextEnd: number;
    for (;;) {
      const answer = await pool.query(EXPIRED, [bucket, now]);
      nextEnd = (answer[0]![0] as number | null) ?? Infinity;
      const rows = answer.filter(([, owner]) => owner !== null);
      if (rows.length === 0) break;
      outlook.forget(bucket);
      const settlements = rows.map(([, owner, alarmId, fireId, fence]): Settlement => {
        const key = { owner, alarmId, fireId, fence } as LeaseKey;
        return {
          key,
          // Renewed since: not to be ended.
          attempt: (held) => (held.leaseUntil! <= now ? interruptedAttempt(held) : undefined),
          settle: (state) => interrupted(state, key.fireId, now),
        };
      });
      await settleAll(pool, buckets, clock, settlements);
      if (rows.length < SWEEP) break;
    }
    const took = clock.monotonic() - began;
    const pause = Math.max(SWEEP_EVERY_MS, took * SWEEP_SHARE);
    sweeps[bucket] = { dueAt: Math.min(now + pause, nextEnd), last: now };
  }

  async function sweepIfDue(bucket: number, now: number): Promise<void> {
    const { dueAt, last } = sweeps[bucket]!;
    if (now >= dueAt || now < last) await sweep(bucket, now);
  }

  async function look(bucket: number, request: ClaimRequest, places: Places, reach: Reach): Promise<Look> {
    const mine = (owner: string) => buckets.of(owner) === bucket;
    const busy = places.busy().filter(([owner]) => mine(owner));
    const rows = await pool.query(CLAIM, [
      bucket,
      request.now,
      reach.from,
      places.full().filter(mine),
      reach.width,
      busy.map(([owner]) => owner),
      busy.map(([, left]) => left),
      request.perOwner,
      reach.limit,
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
      buckets,
      torn.map(({ occurrence }) => ({ owner: occurrence.owner, id: occurrence.alarmId })),
    );
    const alarms = new Map(states.map(({ state: { alarm } }) => [`${alarm.owner} ${alarm.id}`, alarm]));
    for (const claim of torn) {
      const { owner, alarmId } = claim.occurrence;
      claim.alarm = alarms.get(`${owner} ${alarmId}`) ?? claim.alarm;
    }
  }

  /** Takes up to `limit` from one bucket. */
  async function claimFrom(bucket: number, request: ClaimRequest, places: Places, limit: number): Promise<Claim[]> {
    await sweepIfDue(bucket, request.now);
    const claims: Claim[] = [];
    const reach: Reach = { from: Number.MIN_SAFE_INTEGER, width: limit, limit };
    outlook.begin(bucket);
    for (;;) {
      const found = await look(bucket, request, places, reach).catch((error: unknown) => {
        // What was claimed already is leased to us: it is the caller's.
        if (claims.length === 0) throw error;
        log.warn({ err: error, claimed: claims.length }, 'a claim was cut short');
        return undefined;
      });
      if (!found) return claims;
      claims.push(...found.claims);
      // What was passed over belongs to owners whose places are full by now, or to another replica.
      if (found.seen < reach.width) {
        const full = places.full().filter((owner) => buckets.of(owner) === bucket);
        // Leases may end before what is due later than that.
        const next = found.next !== undefined && found.next <= request.now + LEASES_ASIDE_MS ? found.next : undefined;
        outlook.learn(bucket, next, full);
        return claims;
      }
      if (claims.length >= limit) {
        outlook.learn(bucket, found.until, undefined);
        return claims;
      }
      reach.from = found.until;
      reach.limit = limit - claims.length;
      reach.width = Math.min(reach.width * 4, Math.max(WIDEST_LOOK, limit));
    }
  }

  /** The buckets that have something due, or may have, the most overdue first. */
  function dueBuckets({ now, inFlight, perOwner }: ClaimRequest): number[] {
    if (buckets.count === 1) return [0];
    const full = new Set([...inFlight].filter(([, count]) => count >= perOwner).map(([owner]) => owner));
    return buckets
      .all()
      .map((bucket) => ({ bucket, due: outlook.known(bucket, full, now) ?? Number.NEGATIVE_INFINITY }))
      .filter(({ bucket, due }) => due <= now || sweeps[bucket]!.dueAt <= now)
      .sort((one, other) => one.due - other.due)
      .map(({ bucket }) => bucket);
  }

  return {
    /** Somebody's lease in a bucket ends then: the first claim after that searches for it. */
    leaseEnds(bucket: number, until: number): void {
      const state = sweeps[bucket]!;
      state.dueAt = Math.min(state.dueAt, until);
    },

    async claim(request: ClaimRequest): Promise<Claim[]> {
      const { now, limit, perOwner } = request;
      if (limit <= 0 || perOwner <= 0) {
        await Promise.all(buckets.all().map((bucket) => sweep(bucket, now)));
        return [];
      }
      const places = new Places(request);
      const claims: Claim[] = [];
      let due = dueBuckets(request);
      /** Buckets that had their whole share to give, and may have more. */
      let rich: number[] = [];
      const failures: PromiseRejectedResult[] = [];
      while (due.length > 0 && claims.length < limit) {
        const wave = due.splice(0, Math.min(AT_ONCE, limit - claims.length));
        const share = Math.ceil((limit - claims.length) / wave.length);
        const found = await Promise.allSettled(
          wave.map(async (bucket, index) => {
            const left = Math.min(share, limit - claims.length - index * share);
            if (left <= 0) {
              rich.push(bucket);
              return [];
            }
            const taken = await claimFrom(bucket, request, places, left);
            if (taken.length >= left) rich.push(bucket);
            return taken;
          }),
        );
        if (due.length === 0) [due, rich] = [rich, []];
        for (const each of found) if (each.status === 'fulfilled') claims.push(...each.value);
        // One of several servers may be away: what the others keep is not to wait for it.
        failures.push(...found.filter((each) => each.status === 'rejected'));
        if (found.every((each) => each.status === 'rejected')) break;
      }
      const [failed] = failures;
      if (failed && claims.length === 0) throw failed.reason;
      if (failed) log.warn({ err: failed.reason, claimed: claims.length }, 'a claim was cut short');
      return buckets.count === 1 ? claims : claims.sort(inOrder);
    },
  };
}
