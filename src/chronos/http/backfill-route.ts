/** `POST /v1/alarms/{id}/backfill`: fires a series for its instants in a part of the past. */
import { setImmediate as otherWork } from 'node:timers/promises';
import { readJson } from '../../kit/http/body.ts';
import { type HttpApp, type HttpContext, sendOk, serve } from '../../kit/http/handlers.ts';
import { type AlarmBackfill, type AlarmBackfilled, alarmBackfillSchema } from '../../wire/alarm.ts';
import { ReveilleError } from '../../wire/errors.ts';
import { formatInstant } from '../../wire/rfc3339.ts';
import { parseOrThrow } from '../../wire/validate.ts';
import { type Alarm, type AlarmState, type Occurrence, scheduledOccurrence } from '../alarm/alarm.ts';
import { addBackfill, BACKFILL_MAX, BACKFILL_UNCONFIRMED, occurrencesBetween } from '../alarm/backfill.ts';
import { viewAlarm } from '../alarm/view.ts';
import type { AlarmStore, StoreLimits } from '../store/store.ts';
import { alarmIdOf, alarmNotFound } from './alarm-routes.ts';
import { CHRONOS_ROUTES } from './routes.ts';
import { type ChronosService, callerOf } from './service.ts';

/** Instants that are computed before other work of the process gets its turn. */
const AT_ONCE = 100;
/** Attempts of a page of the ledger. */
const PAGE = 500;
/** Rounds in which an alarm that changes meanwhile is read again. */
const ROUNDS = 20;

function invalid(message: string): ReveilleError {
  return new ReveilleError('invalid_request', message);
}

function checkPart({ from, to }: AlarmBackfill, now: number): void {
  const got = `(got ${formatInstant(from)} to ${formatInstant(to)})`;
  if (from >= to) throw invalid(`from must be before to ${got}`);
  if (to > now) throw invalid(`to must not be in the future ${got}; it is now ${formatInstant(now)}`);
}

function checkAlarm({ kind, status }: Alarm): void {
  if (kind === 'once' || kind === 'event')
    throw invalid(`only a series (kind "cron" or "rrule") can be backfilled; this alarm is "${kind}"`);
  if (status === 'active') return;
  const remedy = status === 'paused' ? '; resume it first' : '';
  throw new ReveilleError('conflict', `only an active series can be backfilled; this one is ${status}${remedy}`);
}

/**
 * The occurrences in a part of the past that the schedule has passed.
 *
 * @throws ReveilleError `invalid_request` when they are too many
 */
async function passedIn({ alarm, ...state }: AlarmState, { from, to }: AlarmBackfill): Promise<Occurrence[]> {
  // The schedule itself fires its pending occurrence and later ones.
  const pending = scheduledOccurrence({ alarm, ...state })?.nominal ?? to;
  const passed: Occurrence[] = [];
  for (const occurrence of occurrencesBetween(alarm, from, Math.min(to, pending))) {
    passed.push(occurrence);
    if (passed.length > BACKFILL_MAX)
      throw invalid(
        `the series has more than ${BACKFILL_MAX} fires from ${formatInstant(from)} to ${formatInstant(to)}, the maximum of one backfill; choose a shorter time`,
      );
    if (passed.length % AT_ONCE === 0) await otherWork();
  }
  return passed;
}

/** The fire ids of an alarm that were delivered since an instant. */
async function deliveredSince(store: AlarmStore, { owner, id }: Alarm, since: number): Promise<Set<string>> {
  const delivered = new Set<string>();
  let page = await store.attempts(owner, id, { limit: PAGE });
  for (;;) {
    for (const { outcome, fireId } of page) if (outcome === 'delivered') delivered.add(fireId);
    const last = page.at(-1);
    // Attempts at an occurrence begin after its instant.
    if (!last || page.length < PAGE || last.startedAt < since) return delivered;
    page = await store.attempts(owner, id, { limit: PAGE, before: last });
  }
}

type Request = { owner: string; alarmId: string; part: AlarmBackfill; now: number; bounds: StoreLimits };

async function backfill(store: AlarmStore, { owner, alarmId, part, now, bounds }: Request): Promise<AlarmBackfilled> {
  for (let round = 1; round <= ROUNDS; round++) {
    // The alarm is read before its ledger: a fire in between changes the alarm, and the round is repeated.
    const before = await store.get(owner, alarmId);
    if (!before) throw alarmNotFound();
    checkAlarm(before.alarm);
    const passed = await passedIn(before, part);
    const delivered = await deliveredSince(store, before.alarm, part.from);
    const occurrences = passed.filter(({ fireId }) => !delivered.has(fireId));
    let added: readonly Occurrence[] | undefined;
    const state = await store.update(
      owner,
      alarmId,
      (stored) => {
        const result = addBackfill(stored, { alarm: before.alarm, occurrences }, now);
        added = result?.added;
        if (added && added.length > BACKFILL_UNCONFIRMED && part.confirm_over !== true)
          throw new ReveilleError(
            'conflict',
            `the backfill has ${added.length} fires, more than ${BACKFILL_UNCONFIRMED}; confirm it with confirm_over: true (--yes), or choose a shorter time`,
          );
        return result?.state ?? stored;
      },
      bounds,
    );
    if (!state) throw alarmNotFound();
    if (!added) continue;
    const ends = { first: added[0], last: added.at(-1) };
    return {
      ...viewAlarm(state),
      backfill: {
        added: added.length,
        known: passed.length - added.length,
        ...(ends.first ? { first: formatInstant(ends.first.scheduledFor) } : {}),
        ...(ends.last ? { last: formatInstant(ends.last.scheduledFor) } : {}),
      },
    };
  }
  throw new ReveilleError('unavailable', 'the alarm fires or changes all the time at present; try again');
}

export function backfillRoute(app: HttpApp, service: ChronosService): void {
  const { store, clock, limits, admission } = service;
  serve(app, CHRONOS_ROUTES.backfillAlarm, async (c: HttpContext) => {
    const { owner, trust } = await callerOf(service, c);
    admission?.enter('triggers', owner, trust);
    const part = parseOrThrow(alarmBackfillSchema, await readJson(c));
    const now = clock.now();
    checkPart(part, now);
    const bounds = { ...(await admission?.storeLimits(trust)), maxActive: limits.maxActiveAlarms };
    const answer = await backfill(store, { owner, alarmId: alarmIdOf(c), part, now, bounds });
    service.onDue(now);
    return sendOk(c, answer);
  });
}
