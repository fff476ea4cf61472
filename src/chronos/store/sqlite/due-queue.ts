/**
 * The start of the queue of due occurrences, in memory: unclaimed occurrences, earliest due first. The indexes
 * `progress_due` and `triggers_due` are the complete queue; this reads from them as far as claims need.
 *
 * The number of deliveries in flight per owner is limited, and an owner's backlog must not hide another's. So memory
 * contains only some occurrences of each owner, enough for the owner's slots, and the index position of the first of
 * the others. Data dropped from memory is read again: {@link forget} is always safe.
 */
import type { DatabaseSync } from 'node:sqlite';
import type { Undo } from '../../../kit/sqlite/group-commit.ts';
import type { ClaimRequest } from '../store.ts';
import type { Claims } from './claims.ts';
import { LIMIT, prepareQuery } from './statements.ts';

/** A due occurrence and its owner; also a position in the queue. Ordered by its members from first to last. */
export type Due = { dueAt: number; owner: number; alarm: number; scheduledFor: number };

/** Limits of the part of the queue in memory. */
type Bounds = {
  /** Occurrences of one owner, unless a claim needs more. */
  ofOneOwner: number;
  readAtOnce: number;
  /** A longer queue is cut to half of this, from the end. */
  longest: number;
};

const BOUNDS: Bounds = { ofOneOwner: 32, readAtOnce: 512, longest: 8192 };

const BEFORE_ALL: Due = { dueAt: Number.MIN_SAFE_INTEGER, owner: 0, alarm: 0, scheduledFor: 0 };

function order(one: Due, other: Due): number {
  return (
    one.dueAt - other.dueAt ||
    one.owner - other.owner ||
    one.alarm - other.alarm ||
    one.scheduledFor - other.scheduledFor
  );
}

/** The position of an item in the queue, or where it would be inserted. */
function positionOf(queue: readonly Due[], due: Due): number {
  let low = 0;
  let high = queue.length;
  while (low < high) {
    const middle = (low + high) >>> 1;
    if (order(queue[middle]!, due) < 0) low = middle + 1;
    else high = middle;
  }
  return low;
}

/**
 * @param undo when a transaction is rolled back, the queue is read again
 */
export function prepareDueQueue(db: DatabaseSync, claims: Pick<Claims, 'at'>, undo: Undo, bounds: Bounds = BOUNDS) {
  const { ofOneOwner, readAtOnce, longest } = bounds;
  const due = (sql: string) => {
    const from = (table: string) =>
      `SELECT due_at, owner, alarm, scheduled_for FROM ${table} INDEXED BY ${table}_due
       WHERE due_at IS NOT NULL AND due_at >= ?1 AND (due_at, owner, alarm, scheduled_for) > (?1, ?2, ?3, ?4) ${sql}`;
    return prepareQuery<Due>(
      db,
      `${from('progress')} UNION ALL ${from('triggers')} ORDER BY due_at, owner, alarm, scheduled_for ${LIMIT}`,
      ([dueAt, owner, alarm, scheduledFor]) => ({ dueAt, owner, alarm, scheduledFor }) as Due,
    );
  };
  const readNext = due('');
  const ofOwner = due('AND owner = ?5 AND (due_at, owner, alarm, scheduled_for) <= (?6, ?7, ?8, ?9)');

  let queue: Due[] = [];
  /** Everything up to this position is in the queue, is claimed, or belongs to an owner in `behind`. */
  let until = BEFORE_ALL;
  /** Number of items of each owner in the queue. */
  let counts = new Map<number, number>();
  /** Owners with more due occurrences than the queue contains, with the last position that it contains completely. */
  let behind = new Map<number, Due>();

  const values = ({ dueAt, owner, alarm, scheduledFor }: Due) => [dueAt, owner, alarm, scheduledFor] as const;
  const isFree = ({ alarm, scheduledFor }: Due) => !claims.at(alarm, scheduledFor);
  const count = (owner: number, by: number) => {
    const now = (counts.get(owner) ?? 0) + by;
    if (now > 0) counts.set(owner, now);
    else counts.delete(owner);
  };

  function forget(): void {
    queue = [];
    until = BEFORE_ALL;
    counts = new Map();
    behind = new Map();
  }

  function insert(item: Due): void {
    queue.splice(positionOf(queue, item), 0, item);
    count(item.owner, 1);
  }

  /** Reads more of the index; returns whether there was anything. */
  function read(limit: number): boolean {
    const found = readNext.all(...values(until), readAtOnce);
    for (const item of found) {
      if (behind.has(item.owner) || !isFree(item)) continue;
      if ((counts.get(item.owner) ?? 0) < limit) {
        queue.push(item);
        count(item.owner, 1);
      } else {
        behind.set(item.owner, queue.findLast(({ owner }) => owner === item.owner)!);
      }
    }
    until = found.at(-1) ?? until;
    return found.length > 0;
  }

  /** Fills the queue with this many items of an owner, within the part that has been read. */
  function fill(owner: number, limit: number): void {
    for (let left = behind.get(owner); left && (counts.get(owner) ?? 0) < limit; left = behind.get(owner)) {
      const found = ofOwner.all(...values(left), owner, ...values(until), limit);
      for (const item of found) if (isFree(item)) insert(item);
      if (found.length < limit) behind.delete(owner);
      else behind.set(owner, found.at(-1)!);
    }
  }

  function shorten(): void {
    if (queue.length <= longest) return;
    for (const { owner } of queue.splice(longest / 2)) count(owner, -1);
    until = queue.at(-1)!;
    for (const [owner, left] of behind) if (order(left, until) >= 0) behind.delete(owner);
  }

  return {
    /** Drops everything from memory after a change of many rows. */
    forget(): void {
      undo.note(forget);
      forget();
    },

    /** Adds a new or changed unclaimed occurrence. */
    add(item: Due): void {
      if (order(item, until) > 0) return;
      const left = behind.get(item.owner);
      if (left && order(item, left) > 0) return;
      undo.note(forget);
      insert(item);
      shorten();
    },

    /** Removes an occurrence that was deleted, changed or claimed. */
    remove(item: Due): void {
      const at = positionOf(queue, item);
      const found = queue[at];
      if (!found || order(found, item) !== 0) return;
      undo.note(forget);
      queue.splice(at, 1);
      count(item.owner, -1);
    },

    /**
     * Takes occurrences to claim out of the queue, earliest due first.
     *
     * @param inFlight deliveries in flight for each owner, by owner number
     */
    take(
      { now, limit, perOwner }: Pick<ClaimRequest, 'now' | 'limit' | 'perOwner'>,
      inFlight: Map<number, number>,
    ): Due[] {
      undo.note(forget);
      const perOwnerInQueue = Math.max(ofOneOwner, Math.min(perOwner, limit));
      const taken: Due[] = [];
      const left: Due[] = [];
      const slots = new Map<number, number>();
      for (const owner of [...behind.keys()])
        if ((counts.get(owner) ?? 0) < Math.min(perOwner, limit)) fill(owner, perOwnerInQueue);
      for (let at = 0; taken.length < limit; at++) {
        if (at === queue.length && !(until.dueAt <= now && read(perOwnerInQueue))) break;
        const item = queue[at];
        if (!item) {
          at--;
          continue;
        }
        if (item.dueAt > now) break;
        const free = slots.get(item.owner) ?? perOwner - (inFlight.get(item.owner) ?? 0);
        if (free > 0) {
          taken.push(item);
          count(item.owner, -1);
          slots.set(item.owner, free - 1);
        } else {
          left.push(item);
        }
      }
      queue = [...left, ...queue.slice(taken.length + left.length)];
      return taken;
    },

    /** The earliest due time among owners that are not saturated. */
    next(saturated: ReadonlySet<number>): number | undefined {
      for (const owner of [...behind.keys()]) if (!counts.has(owner) && !saturated.has(owner)) fill(owner, ofOneOwner);
      for (let at = 0; ; at++) {
        while (at === queue.length) if (!read(ofOneOwner)) return undefined;
        if (!saturated.has(queue[at]!.owner)) return queue[at]!.dueAt;
      }
    },
  };
}
