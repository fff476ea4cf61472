/** Events that alarms wait for. */
import type { Clock } from '../../../kit/clock/clock.ts';
import type { AlarmEvent } from '../../../wire/conditions.ts';
import { TIMELESS_EVENT } from '../../alarm/hook.ts';
import { checkTransition } from '../difference.ts';
import {
  distinctEvents,
  EVENT_FRAME_BYTES,
  eventBytes,
  eventRows,
  KNOWN_EVENTS,
  type StoredEvent,
  trimmedBefore,
} from '../event-rows.ts';
import type { EventArrival, RecordedEvents } from '../store.ts';
import { abandonedAttempts } from './attempts.ts';
import { Batcher, ItemFailure } from './batch.ts';
import type { Buckets } from './buckets.ts';
import type { Executor, PrimaryPool } from './pool.ts';
import { ALARM_ROWS, arrayLiteral, EVENT, LAST, readState, STATE_COLUMNS } from './rows.ts';
import { isStorable } from './state.ts';
import { statement } from './statement.ts';
import { callsOf, checkLimits, retryUntilUncontended, writeAll } from './write.ts';

/** One statement is one snapshot: an event that it does not know has not changed the state that it reads. */
const READ = statement(
  'events_before',
  `SELECT ${STATE_COLUMNS}, ${LAST.list('p')}, (
     SELECT json_agg(encode(e.id, 'hex')) FROM events AS e
     WHERE e.bucket = $1 AND e.owner = $2 AND e.alarm_id = $3 AND e.id = ANY ($4::bytea[]))
   FROM ${ALARM_ROWS} WHERE d.bucket = $1 AND d.owner = $2 AND d.id = $3`,
);

const INSERT = statement(
  'add_events',
  `INSERT INTO events (bucket, ${EVENT.list()}) SELECT $1, * FROM unnest(${EVENT.arrays(2)})`,
);

const OF_ALARM = 'bucket = $1 AND owner = $2 AND alarm_id = $3';

const IN_RANGE = statement(
  'events_of',
  `
  SELECT id, received_at, data, cause FROM (
    SELECT number, id, received_at, data, cause, row_number() OVER (ORDER BY number) AS place,
      sum(octet_length(id) + octet_length(data) + ${EVENT_FRAME_BYTES}) OVER (ORDER BY number) AS bytes
    FROM events WHERE ${OF_ALARM} AND number >= $4 AND number <= $5 AND data IS NOT NULL
  ) AS waiting
  WHERE place = 1 OR bytes <= $6::bigint ORDER BY number`,
);

const DROP = statement(
  'drop_events',
  `UPDATE events SET data = NULL WHERE ${OF_ALARM} AND number <= $4 AND data IS NOT NULL`,
);

const TRIM = statement(
  'trim_events',
  `DELETE FROM events WHERE ${OF_ALARM} AND data IS NULL AND received_at < $4 AND id NOT IN (
     SELECT id FROM events WHERE ${OF_ALARM} AND data IS NULL ORDER BY received_at DESC LIMIT $5)`,
);

/** Skips rows that another replica is deleting at this moment. */
const PRUNE = statement(
  'prune_events',
  `
  WITH old AS (
    SELECT owner, alarm_id, id FROM events
    WHERE bucket = $1 AND data IS NULL AND received_at < $2
      AND substr(id, 1, ${TIMELESS_EVENT.length}) <> '${TIMELESS_EVENT}'::bytea
    ORDER BY received_at LIMIT $3
    FOR UPDATE SKIP LOCKED
  ), pruned AS (
    DELETE FROM events AS e USING old
    WHERE e.bucket = $1 AND e.owner = old.owner AND e.alarm_id = old.alarm_id AND e.id = old.id
    RETURNING 1
  )
  SELECT count(*) FROM pruned`,
);

/** What one transaction records for an alarm. */
const ARRIVALS_AT_ONCE = 256;
const BYTES_AT_ONCE = 4 * 1024 * 1024;

type Recorded = RecordedEvents | undefined;
type Options = { pool: PrimaryPool; buckets: Buckets; clock: Clock; now: () => number };

/**
 * Records events. Arrivals for one alarm that come while others are being written share the next transaction: otherwise
 * they would compete for the row of the alarm.
 */
export function prepareRecordEvents({ pool, buckets, clock, now }: Options) {
  const queues = new Map<string, Batcher<EventArrival, Recorded>>();

  async function round(arrivals: readonly EventArrival[]): Promise<(Recorded | ItemFailure)[] | undefined> {
    const { owner, alarmId } = arrivals[0]!;
    const bucket = buckets.of(owner);
    const ids = arrivals.flatMap(({ events }) => events.map(({ id }) => id));
    const [row] = await pool.query(READ, [bucket, owner, alarmId, arrayLiteral('bytes', ids, (id) => id)]);
    if (!row) return arrivals.map(() => undefined);
    const stored = readState(row);
    const known = new Set(((row.at(-1) ?? []) as string[]).map((hex) => Buffer.from(hex, 'hex').toString('utf8')));
    let { state } = stored;
    const rows: StoredEvent[] = [];
    const arrived: AlarmEvent[] = [];
    const outcomes: (Recorded | ItemFailure)[] = [];
    for (const { events, arrive, limits = {} } of arrivals) {
      try {
        const fresh = events.filter(({ id }) => !known.has(id));
        if (fresh.length > 0) {
          const wanted = arrive(state, fresh);
          checkTransition(state, wanted);
          const added = eventRows(state, wanted, fresh);
          await checkLimits(pool, bucket, { stored: stored.state, wanted, limits });
          rows.push(...added);
          arrived.push(...fresh);
          for (const { id } of fresh) known.add(id);
          state = wanted;
        }
        outcomes.push({ state, fresh: fresh.length });
      } catch (error) {
        outcomes.push(new ItemFailure(error));
      }
    }
    if (rows.length === 0 && state === stored.state) return outcomes;
    const attempts = abandonedAttempts(stored.state, state, now());
    const calls = callsOf(bucket, [{ stored, wanted: state, attempts }]);
    const insert = { statement: INSERT, values: [bucket, ...EVENT.bind(rows)] };
    const before = trimmedBefore(stored.state, state, arrived);
    const trim = { statement: TRIM, values: [bucket, owner, alarmId, before ?? 0, KNOWN_EVENTS] };
    const writes = [...calls, ...(rows.length > 0 ? [insert] : []), ...(before === undefined ? [] : [trim])];
    return (await writeAll(pool, writes)) ? outcomes : undefined;
  }

  function queueOf(owner: string, alarmId: string): Batcher<EventArrival, Recorded> {
    const name = JSON.stringify([owner, alarmId]);
    const found = queues.get(name);
    if (found) return found;
    const weigh = ({ events }: EventArrival) => events.reduce((bytes, event) => bytes + eventBytes(event), 0);
    const made = new Batcher<EventArrival, Recorded>(
      (arrivals) => retryUntilUncontended(clock, () => round(arrivals)),
      {
        batches: 1,
        items: ARRIVALS_AT_ONCE,
        weight: BYTES_AT_ONCE,
        weigh,
      },
    );
    queues.set(name, made);
    // After the first arrival is in it.
    setImmediate(() => void made.drain().then(() => queues.delete(name)));
    return made;
  }

  return async (arrival: EventArrival): Promise<Recorded> => {
    const { owner, alarmId } = arrival;
    const events = distinctEvents(arrival.events);
    return isStorable(owner, alarmId) ? queueOf(owner, alarmId).add({ ...arrival, events }) : undefined;
  };
}

export async function eventsOf(
  executor: Executor,
  bucket: number,
  {
    owner,
    alarmId,
    from,
    to,
    maxBytes,
  }: { owner: string; alarmId: string; from: number; to: number; maxBytes: number },
): Promise<AlarmEvent[]> {
  if (!isStorable(owner, alarmId)) return [];
  const rows = await executor.query(IN_RANGE, [bucket, owner, alarmId, from, to, maxBytes]);
  return rows.map(([id, receivedAt, data, cause]) => ({
    id: (id as Buffer).toString('utf8'),
    receivedAt: receivedAt as number,
    data: (data as Buffer).toString('utf8'),
    ...(cause !== null && { cause: cause as string }),
  }));
}

export async function dropEvents(
  executor: Executor,
  bucket: number,
  { owner, alarmId, upTo }: { owner: string; alarmId: string; upTo: number },
): Promise<void> {
  if (isStorable(owner, alarmId)) await executor.query(DROP, [bucket, owner, alarmId, upTo]);
}

/** Deletes dropped events that were received before an instant, the oldest first; returns their number. */
export async function pruneEvents(
  executor: Executor,
  bucket: number,
  { before, limit }: { before: number; limit: number },
): Promise<number> {
  return (await executor.query(PRUNE, [bucket, before, limit]))[0]![0] as number;
}
