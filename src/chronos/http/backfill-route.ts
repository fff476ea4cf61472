/** `POST /v1/alarms/{id}/backfill`: fires a series for its instants in a part of the past. */
import { setImmediate as otherWork } from 'node:timers/promises';
import { readJson } from '../../kit/http/body.ts';
import { type HttpApp, type HttpContext, sendOk, serve } from '../../kit/http/handlers.ts';
import {
  type AlarmBackfill,
  type AlarmBackfilled,
  alarmBackfillSchema,
  BACKFILL_UNCONFIRMED,
} from '../../wire/alarm.ts';
import { storedCause } from '../../wire/cause.ts';
import { ReveilleError } from '../../wire/errors.ts';
import { formatInstant } from '../../wire/rfc3339.ts';
import { parseOrThrow } from '../../wire/validate.ts';
import { type Alarm, type AlarmState, type Occurrence, scheduledOccurrence } from '../alarm/alarm.ts';
import { addBackfill, BACKFILL_MAX, occurrencesBetween } from '../alarm/backfill.ts';
import { causeOfAuthor } from '../alarm/cause.ts';
import type { Calendars } from '../alarm/holidays.ts';
import { viewAlarm } from '../alarm/view.ts';
import type { AlarmStore, StoreLimits } from '../store/store.ts';
import { alarmIdOf, alarmNotFound, refuseCause } from './alarm-routes.ts';
import { CHRONOS_ROUTES } from './routes.ts';
import { authorOfRequest, type ChronosService, callerOf } from './service.ts';

const DAY_MS = 24 * 3_600_000;
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
  // On PostgreSQL an occurrence beside the schedule is never due at 0.
  if (from <= 0) throw invalid(`from must be after ${formatInstant(0)} ${got}`);
  if (to > now) throw invalid(`to must not be in the future ${got}; it is now ${formatInstant(now)}`);
}

function checkAlarm({ kind, status }: Alarm): void {
  if (kind === 'once' || kind === 'event')
    throw invalid(`only a series (kind "cron" or "rrule") can be backfilled; this alarm is "${kind}"`);
  if (status === 'active') return;
  const remedy = status === 'paused' ? '; resume it first' : '';
  throw new ReveilleError('conflict', `only an active series can be backfilled; this one is ${status}${remedy}`);
}

/** Deliveries that are no longer in the ledger could be repeated. */
function checkLedger({ createdAt }: Alarm, { from, to }: AlarmBackfill, now: number, ledgerDays = 0): void {
  const kept = now - ledgerDays * DAY_MS;
  if (ledgerDays === 0 || from >= kept || to <= createdAt || createdAt >= kept) return;
  const got = `(got ${formatInstant(from)} to ${formatInstant(to)})`;
  throw invalid(
    `from must not be before ${formatInstant(kept)} ${got}: what was delivered earlier is no longer recorded (CHRONOS_LEDGER_RETENTION_DAYS), and could fire again; a time before the alarm was set, ${formatInstant(createdAt)}, is possible too`,
  );
}

/**
 * The occurrences in a part of the past that the schedule has passed.
 *
 * @throws ReveilleError `invalid_request` when they are too many
 */
async function passedIn(
  { alarm, ...state }: AlarmState,
  { from, to }: AlarmBackfill,
  calendars: Calendars | undefined,
): Promise<Occurrence[]> {
  // The schedule itself fires its pending occurrence and later ones.
  const pending = scheduledOccurrence({ alarm, ...state })?.nominal ?? to;
  const passed: Occurrence[] = [];
  for (const occurrence of occurrencesBetween(alarm, from, Math.min(to, pending), calendars)) {
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

type Request = {
  owner: string;
  alarmId: string;
  part: AlarmBackfill;
  now: number;
  bounds: StoreLimits;
  ledgerDays: number | undefined;
  author: string | undefined;
};

async function backfill(
  service: Pick<ChronosService, 'store' | 'calendars' | 'publicUrl'>,
  { owner, alarmId, part, now, bounds, ledgerDays, author }: Request,
): Promise<AlarmBackfilled> {
  const { store, calendars } = service;
  for (let round = 1; round <= ROUNDS; round++) {
    // The alarm is read before its ledger: a fire in between changes the alarm, and the round is repeated.
    const before = await store.get(owner, alarmId);
    if (!before) throw alarmNotFound();
    checkAlarm(before.alarm);
    refuseCause(author, before);
    checkLedger(before.alarm, part, now, ledgerDays);
    const passed = await passedIn(before, part, calendars);
    const delivered = await deliveredSince(store, before.alarm, part.from);
    const occurrences = passed.filter(({ fireId }) => !delivered.has(fireId));
    let added: readonly Occurrence[] | undefined;
    const add = (stored: AlarmState): AlarmState => {
      const result = addBackfill(
        stored,
        { alarm: before.alarm, occurrences },
        now,
        calendars,
        storedCause(causeOfAuthor(author)),
      );
      added = result?.added;
      if (added && added.length > BACKFILL_UNCONFIRMED && !part.dry_run && !part.confirm_over)
        throw new ReveilleError(
          'conflict',
          `the backfill has ${added.length} fires, more than ${BACKFILL_UNCONFIRMED}; confirm it with confirm_over: true (--yes), or choose a shorter time`,
        );
      return result?.state ?? stored;
    };
    if (part.dry_run) add(before);
    const state = part.dry_run ? before : await store.update(owner, alarmId, add, bounds);
    if (!state) throw alarmNotFound();
    if (!added) continue;
    const ends = { first: added[0], last: added.at(-1) };
    return {
      ...viewAlarm(state, { ...service, reader: author }),
      backfill: {
        added: added.length,
        known: passed.length - added.length,
        ...(ends.first ? { first: formatInstant(ends.first.scheduledFor) } : {}),
        ...(ends.last ? { last: formatInstant(ends.last.scheduledFor) } : {}),
        ...(part.dry_run && { dry_run: true as const }),
      },
    };
  }
  throw new ReveilleError('unavailable', 'the alarm fires or changes all the time at present; try again');
}

export function backfillRoute(app: HttpApp, service: ChronosService): void {
  const { clock, limits, admission, ledgerDays } = service;
  serve(app, CHRONOS_ROUTES.backfillAlarm, async (c: HttpContext) => {
    const caller = await callerOf(service, c);
    const { owner, trust } = caller;
    admission?.enter('triggers', owner, trust);
    const part = parseOrThrow(alarmBackfillSchema, await readJson(c));
    const now = clock.now();
    checkPart(part, now);
    const bounds = { ...(await admission?.storeLimits(trust)), maxActive: limits.maxActiveAlarms };
    const { author } = authorOfRequest(service, c, caller);
    const answer = await backfill(service, { owner, alarmId: alarmIdOf(c), part, now, bounds, ledgerDays, author });
    if (!part.dry_run) service.onDue(now);
    return sendOk(c, answer);
  });
}
