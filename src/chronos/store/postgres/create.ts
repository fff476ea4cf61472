/** Stores new alarms. Simultaneous creates share one statement. */
import { ReveilleError } from '../../../wire/errors.ts';
import { storedBytes } from '../../alarm/alarm.ts';
import { checkTransition } from '../difference.ts';
import type { CreateResult, NewAlarm, StoreLimits } from '../store.ts';
import { Batcher, ItemFailure } from './batch.ts';
import type { Buckets } from './buckets.ts';
import { countOpen, storedOf, takeOffStored } from './owners.ts';
import type { PrimaryPool } from './pool.ts';
import { DEFINITION, OWED, PROGRESS } from './rows.ts';
import { findByKey } from './state.ts';
import { type Row, statement } from './statement.ts';

export type CreateRequest = NewAlarm & { maxActive: number; maxStored: number; maxBytes: number; bytes: number };

/** More than any owner has. */
const UNBOUNDED = Number.MAX_SAFE_INTEGER;

/** Two concurrent batches: one is being written while the next is in transit. */
const BOUNDS = {
  batches: 2,
  items: 256,
  weight: 4 * 1024 * 1024,
  weigh: ({ alarm }: CreateRequest) => alarm.wakeMessage.length + (alarm.payload?.length ?? 0),
};

/** How often a create is retried when it seemed possible and then failed. */
const ROUNDS = 10;

const PROGRESS_AT = 3 + DEFINITION.members.length;
const OWED_AT = PROGRESS_AT + PROGRESS.members.length;
const STORED_AT = OWED_AT + OWED.members.length;

/**
 * Stores the alarms without an obstacle and returns their ids: the owner is within the limit, and id and key are
 * unused. The limit is checked against an upper bound of the count. Every batch has the same order of owners, so that
 * two batches cannot deadlock. An owner within the limit is also returned once without an id: the count of alarms that
 * were not stored is then subtracted.
 */
const INSERT = statement(
  'create',
  `
  WITH entry AS (
    SELECT * FROM unnest(${DEFINITION.arrays(3)}, ${PROGRESS.arrays(PROGRESS_AT)}, ${OWED.arrays(OWED_AT)},
      $${STORED_AT + 2}::bigint[]) WITH ORDINALITY AS e (${DEFINITION.list()}, ${PROGRESS.list()}, ${OWED.list()}, bytes, place)
  ), admitted AS (
    INSERT INTO owners (bucket, owner, open_at_most, stored_alarms, stored_bytes)
    SELECT $1::bigint, owner, count(*), count(*), sum(bytes) FROM entry GROUP BY owner
    HAVING count(*) <= $2::bigint AND count(*) <= $${STORED_AT}::bigint AND sum(bytes) <= $${STORED_AT + 1}::bigint
    ORDER BY owner
    ON CONFLICT (bucket, owner) DO UPDATE SET open_at_most = owners.open_at_most + excluded.open_at_most,
      stored_alarms = owners.stored_alarms + excluded.stored_alarms,
      stored_bytes = owners.stored_bytes + excluded.stored_bytes
      WHERE owners.open_at_most + excluded.open_at_most <= $2::bigint
        AND owners.stored_alarms + excluded.stored_alarms <= $${STORED_AT}::bigint
        AND owners.stored_bytes + excluded.stored_bytes <= $${STORED_AT + 1}::bigint
    RETURNING owner
  ), stored AS (
    INSERT INTO definitions (bucket, edition, held_key, ${DEFINITION.list()})
    SELECT $1::bigint, 0, entry.idempotency_key, ${DEFINITION.list('entry')}
    FROM entry JOIN admitted ON admitted.owner = entry.owner
    ORDER BY entry.owner, entry.idempotency_key, entry.place
    ON CONFLICT DO NOTHING
    RETURNING owner, id
  ), owed AS (
    INSERT INTO progress (bucket, owner, alarm_id, trigger_at, triggers, edition, revision, ${PROGRESS.list()}, ${OWED.list()})
    SELECT $1::bigint, entry.owner, entry.id, 0, 0, 0, 0, ${PROGRESS.list('entry')}, ${OWED.list('entry')}
    FROM entry JOIN stored ON stored.owner = entry.owner AND stored.id = entry.id
  )
  SELECT owner, id FROM stored UNION ALL SELECT owner, NULL FROM admitted`,
);

const OWNER_AT = 3 + DEFINITION.members.indexOf('owner');
const ID_AT = 3 + DEFINITION.members.indexOf('id');
const KEY_AT = 3 + DEFINITION.members.indexOf('idempotencyKey');

/** The same for a single alarm, the common batch at low load; it takes half the time. */
const INSERT_ONE = statement(
  'create_one',
  `
  WITH admitted AS (
    INSERT INTO owners (bucket, owner, open_at_most, stored_alarms, stored_bytes)
    SELECT $1::bigint, $${OWNER_AT}::text, 1, 1, $${STORED_AT + 2}::bigint
    WHERE $2::bigint >= 1 AND $${STORED_AT}::bigint >= 1 AND $${STORED_AT + 2}::bigint <= $${STORED_AT + 1}::bigint
    ON CONFLICT (bucket, owner) DO UPDATE SET open_at_most = owners.open_at_most + 1,
      stored_alarms = owners.stored_alarms + 1, stored_bytes = owners.stored_bytes + excluded.stored_bytes
      WHERE owners.open_at_most + 1 <= $2::bigint AND owners.stored_alarms + 1 <= $${STORED_AT}::bigint
        AND owners.stored_bytes + excluded.stored_bytes <= $${STORED_AT + 1}::bigint
    RETURNING owner
  ), stored AS (
    INSERT INTO definitions (bucket, edition, held_key, ${DEFINITION.list()})
    SELECT $1::bigint, 0, $${KEY_AT}::text, ${DEFINITION.scalars(3)} FROM admitted
    ON CONFLICT DO NOTHING
    RETURNING owner, id
  ), owed AS (
    INSERT INTO progress (bucket, owner, alarm_id, trigger_at, triggers, edition, revision, ${PROGRESS.list()}, ${OWED.list()})
    SELECT $1::bigint, $${OWNER_AT}::text, $${ID_AT}::text, 0, 0, 0, 0, ${PROGRESS.scalars(PROGRESS_AT)}, ${OWED.scalars(OWED_AT)}
    FROM stored
  )
  SELECT owner, id FROM stored UNION ALL SELECT owner, NULL FROM admitted`,
);

const KNOWN = statement(
  'known_ids',
  'SELECT id FROM definitions WHERE bucket = $1 AND owner = $2 AND id = ANY ($3::text[])',
);

type Outcome = CreateResult | ItemFailure;

/** Groups items by key, in the order of their first members. */
function groupBy<T, K>(items: readonly T[], key: (item: T) => K): T[][] {
  return [...Map.groupBy(items, key).values()];
}

class Creates {
  readonly #pool: PrimaryPool;
  readonly #buckets: Buckets;

  constructor(pool: PrimaryPool, buckets: Buckets) {
    this.#pool = pool;
    this.#buckets = buckets;
  }

  /** The outcome of each request of a batch. */
  async settle(requests: readonly CreateRequest[]): Promise<Outcome[]> {
    const outcomes = new Map<CreateRequest, Outcome>();
    const limits = groupBy(
      requests,
      ({ alarm, maxActive, maxStored, maxBytes }) =>
        `${this.#buckets.of(alarm.owner)} ${maxActive} ${maxStored} ${maxBytes}`,
    );
    await Promise.all(limits.map((alike) => this.#settleAlike(alike, outcomes)));
    return requests.map((request) => outcomes.get(request)!);
  }

  async #settleAlike(requests: readonly CreateRequest[], outcomes: Map<CreateRequest, Outcome>): Promise<void> {
    try {
      const left = await this.#insert(requests, outcomes);
      for (const ofOwner of groupBy(left, ({ alarm }) => alarm.owner)) await this.#resolve(ofOwner, outcomes);
    } catch (error) {
      const open = requests.filter((request) => !outcomes.has(request));
      // An alarm that the database rejects must not fail the others of its batch.
      const separable = open.length > 1 && error instanceof ReveilleError && error.code === 'internal';
      if (separable) for (const request of open) await this.#settleAlike([request], outcomes);
      else for (const request of open) outcomes.set(request, new ItemFailure(error));
    }
  }

  /** Stores the alarms that can be stored at once; returns the rest. */
  async #insert(requests: readonly CreateRequest[], outcomes: Map<CreateRequest, Outcome>): Promise<CreateRequest[]> {
    const rows = await this.#query(requests);
    const stored = new Set(rows.map(([owner, id]) => `${owner} ${id}`));
    const left = requests.filter((request) => {
      // Of two with the same id, the first was stored.
      if (!stored.delete(`${request.alarm.owner} ${request.alarm.id}`)) return true;
      const { alarm, occurrence } = request;
      outcomes.set(request, { result: 'created', state: { alarm, occurrences: [occurrence] } });
      return false;
    });
    const counted = left.filter(({ alarm }) => stored.has(`${alarm.owner} null`));
    for (const ofOwner of groupBy(counted, ({ alarm }) => alarm.owner)) {
      const bytes = ofOwner.reduce((sum, request) => sum + request.bytes, 0);
      const { owner } = ofOwner[0]!.alarm;
      await takeOffStored(this.#pool, this.#buckets.of(owner), owner, { alarms: ofOwner.length, bytes });
    }
    return left;
  }

  #query(requests: readonly CreateRequest[]): Promise<Row[]> {
    const [{ alarm, occurrence, maxActive, maxStored, maxBytes, bytes }] = requests as [CreateRequest];
    const bucket = this.#buckets.of(alarm.owner);
    if (requests.length === 1) {
      const rows = [...DEFINITION.bindOne(alarm), ...PROGRESS.bindOne(alarm), ...OWED.bindOne(occurrence)];
      return this.#pool.query(INSERT_ONE, [bucket, maxActive, ...rows, maxStored, maxBytes, bytes]);
    }
    const alarms = requests.map((request) => request.alarm);
    const rows = [
      ...DEFINITION.bind(alarms),
      ...PROGRESS.bind(alarms),
      ...OWED.bind(requests.map((request) => request.occurrence)),
    ];
    const weights = requests.map((request) => request.bytes);
    return this.#pool.query(INSERT, [bucket, maxActive, ...rows, maxStored, maxBytes, weights]);
  }

  /** Determines the obstacles to one owner's requests, and stores those without any. */
  async #resolve(requests: readonly CreateRequest[], outcomes: Map<CreateRequest, Outcome>): Promise<void> {
    const { owner } = requests[0]!.alarm;
    const { maxActive, maxStored, maxBytes } = requests[0]!;
    let left = requests;
    for (let round = 1; left.length > 0; round++) {
      left = await this.#withoutTakenKeys(left, outcomes);
      if (left.length === 0) return;
      const active = await countOpen(this.#pool, this.#buckets.of(owner), owner);
      if (active >= maxActive) {
        for (const request of left) outcomes.set(request, { result: 'too_many', active });
        return;
      }
      const totals = await storedOf(this.#pool, this.#buckets.of(owner), owner);
      // The first requests fit, as if they had arrived one after the other.
      let free = Math.min(maxActive - active, maxStored - totals.alarms);
      let bytes = totals.bytes;
      const fits = (request: CreateRequest) => {
        free -= 1;
        bytes += request.bytes;
        return free >= 0 && bytes <= maxBytes;
      };
      const full = left.findIndex((request) => !fits(request));
      const next = full < 0 ? left : left.slice(0, full);
      if (next.length === 0) {
        for (const request of left) outcomes.set(request, { result: 'too_much', ...totals });
        return;
      }
      const refused = await this.#insert(next, outcomes);
      const open = await this.#withoutTakenIds(owner, refused, outcomes);
      left = [...open, ...left.slice(next.length)];
      if (round === ROUNDS) throw new ReveilleError('unavailable', 'too many creates of one owner at once; try again');
    }
  }

  async #withoutTakenKeys(
    requests: readonly CreateRequest[],
    outcomes: Map<CreateRequest, Outcome>,
  ): Promise<CreateRequest[]> {
    const open: CreateRequest[] = [];
    for (const request of requests) {
      const { owner, idempotencyKey } = request.alarm;
      const holder =
        idempotencyKey === null ? undefined : await findByKey(this.#pool, this.#buckets, owner, idempotencyKey);
      if (holder) outcomes.set(request, { result: 'key_taken', state: holder });
      else open.push(request);
    }
    return open;
  }

  async #withoutTakenIds(
    owner: string,
    requests: readonly CreateRequest[],
    outcomes: Map<CreateRequest, Outcome>,
  ): Promise<CreateRequest[]> {
    if (requests.length === 0) return [];
    const ids = requests.map(({ alarm }) => alarm.id);
    const rows = await this.#pool.query(KNOWN, [this.#buckets.of(owner), owner, ids]);
    const known = new Set(rows.map(([id]) => id as string));
    // A key that was taken meanwhile is checked first; the next round finds it.
    const open = await this.#withoutTakenKeys(requests, outcomes);
    return open.filter((request) => {
      if (!known.has(request.alarm.id)) return true;
      outcomes.set(request, new ItemFailure(new ReveilleError('conflict', `alarm ${request.alarm.id} exists already`)));
      return false;
    });
  }
}

/** Creates share statements; see {@link Batcher}. */
export function prepareCreate(pool: PrimaryPool, buckets: Buckets) {
  const creates = new Creates(pool, buckets);
  const batcher = new Batcher((requests: readonly CreateRequest[]) => creates.settle(requests), BOUNDS);
  return {
    async create(
      { alarm, occurrence }: NewAlarm,
      { maxActive, maxStored = UNBOUNDED, maxBytes = UNBOUNDED }: StoreLimits & { maxActive: number },
    ): Promise<CreateResult> {
      checkTransition({ alarm, occurrences: [] }, { alarm, occurrences: [occurrence] });
      return batcher.add({ alarm, occurrence, maxActive, maxStored, maxBytes, bytes: storedBytes(alarm) });
    },
    drain: () => batcher.drain(),
  };
}
