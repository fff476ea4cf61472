/** Lists of an owner's alarms, in pages: the newest, the ones that contain a text, and the ones that fire next. */
import { setImmediate as nextTurn } from 'node:timers/promises';
import { z } from 'zod';
import { type HttpApp, sendOk, serve } from '../../kit/http/handlers.ts';
import {
  type AlarmTotals,
  alarmIdSchema,
  alarmListQuerySchema,
  LIST_LIMIT_DEFAULT,
  TOTALS_MAX,
} from '../../wire/alarm.ts';
import { ReveilleError } from '../../wire/errors.ts';
import { encodeJson, RawJson } from '../../wire/json.ts';
import { utf8Bytes } from '../../wire/text.ts';
import { parseOrThrow } from '../../wire/validate.ts';
import { type AlarmState, scheduledOccurrence } from '../alarm/alarm.ts';
import type { Calendars } from '../alarm/holidays.ts';
import { seriesOf } from '../alarm/series.ts';
import { viewAlarm } from '../alarm/view.ts';
import type { AlarmFilter, AlarmStore, UpcomingRequest } from '../store/store.ts';
import { decodeCursor, encodeCursor } from './cursor.ts';
import { refuseQuery } from './no-arguments.ts';
import { CHRONOS_ROUTES } from './routes.ts';
import { authorOfRequest, type ChronosService, callerOf, ownerOfRequest } from './service.ts';

type Query = z.output<typeof alarmListQuerySchema>;
/** A page, and the start of the next one; the last page has none. */
type Page = { states: readonly AlarmState[]; next: unknown };

/** After this time a search returns its results so far and a cursor to continue, because a caller waits. */
const SEARCH_MS = 75;
/** A page of this size fits into one message of MCP, which has each alarm twice. */
const PAGE_BYTES = 2 * 1024 * 1024;
/** Alarms that one statement reads. */
const STEP = 64;
const DAY_MS = 86_400_000;
const dueSchema = z.object({ dueAt: z.int(), alarmId: alarmIdSchema });

const filterOf = ({ status, kind, cursor }: Query) => ({
  ...(status && { status }),
  ...(kind && { kind }),
  ...(cursor !== undefined && { before: decodeCursor(alarmIdSchema, cursor) }),
});

async function newest(store: AlarmStore, owner: string, query: Query, limit: number): Promise<Page> {
  const filter: AlarmFilter = { ...filterOf(query), limit: limit + 1 };
  const found = await store.list(owner, filter);
  const states = found.slice(0, limit);
  return { states, next: found.length > limit ? states.at(-1)!.alarm.id : undefined };
}

/** Searches for a text. Between two steps, due occurrences go first. */
async function holding(
  { store, clock }: ChronosService,
  owner: string,
  text: string,
  query: Query,
  limit: number,
): Promise<Page> {
  const began = clock.monotonic();
  const states: AlarmState[] = [];
  const filter = filterOf(query);
  let before = filter.before;
  do {
    const at = before === undefined ? {} : { before };
    const { found, reached } = await store.search(owner, { ...filter, ...at, text, limit: limit - states.length });
    states.push(...found);
    if (reached === undefined || states.length === limit) return { states, next: reached };
    before = reached;
    await nextTurn();
  } while (clock.monotonic() - began < SEARCH_MS);
  return { states, next: before };
}

async function nextToRing(
  store: AlarmStore,
  owner: string,
  { cursor, until, status, kind, text }: Query,
  limit: number,
): Promise<Page> {
  const foreign = Object.entries({ status, kind, text }).find(([, value]) => value !== undefined);
  if (foreign)
    throw new ReveilleError(
      'invalid_request',
      `${foreign[0]} cannot be combined with sort=next, which lists all active alarms; omit one of them`,
    );
  const after = cursor === undefined ? undefined : decodeCursor(dueSchema, cursor);
  const request = { limit: limit + 1, ...(until !== undefined && { until }), ...(after && { after }) };
  const found = await store.upcoming(owner, request);
  const states = found.slice(0, limit);
  const last = found.length > limit ? states.at(-1)! : undefined;
  return { states, next: last && { dueAt: scheduledOccurrence(last)!.dueAt, alarmId: last.alarm.id } };
}

/** The alarms by when they fire, with no more than a step of them in memory. Between two steps, due occurrences go first. */
export async function* upcomingOf(
  store: AlarmStore,
  owner: string,
  { until, atMost }: { until?: number; atMost: number },
): AsyncGenerator<AlarmState> {
  let after: UpcomingRequest['after'];
  for (let left = atMost; left > 0; left -= STEP) {
    const limit = Math.min(STEP, left);
    const states = await store.upcoming(owner, { limit, ...(until && { until }), ...(after && { after }) });
    yield* states;
    const last = states.at(-1);
    if (last === undefined || states.length < limit) return;
    after = { dueAt: scheduledOccurrence(last)!.dueAt!, alarmId: last.alarm.id };
    await nextTurn();
  }
}

/** The fires of an active alarm from its next one, which is before `until`, without those by events. */
function firesUntil(state: AlarmState, now: number, until: number, calendars?: Calendars): number {
  const { alarm } = state;
  if (alarm.kind === 'event') return 0;
  if (alarm.kind === 'once') return 1;
  const { nominal } = scheduledOccurrence(state)!;
  const left = alarm.maxFires === null ? Number.POSITIVE_INFINITY : alarm.maxFires - alarm.scheduledFires;
  const end = Math.min(until, alarm.endsAt ?? until);
  const following = seriesOf(alarm, calendars).latest(Math.max(nominal, now), end);
  return Math.min(left, 1 + (following?.count ?? 0));
}

async function totalsOf({ store, clock, calendars }: ChronosService, owner: string): Promise<AlarmTotals> {
  const now = clock.now();
  const until = now + DAY_MS;
  const { active } = await store.countOpen(owner);
  let [counted, wakes] = [0, 0];
  for await (const state of upcomingOf(store, owner, { until, atMost: TOTALS_MAX + 1 })) {
    if (++counted > TOTALS_MAX) return { active, wakes_per_day: wakes, at_least: true };
    wakes += firesUntil(state, now, until, calendars);
  }
  return { active, wakes_per_day: wakes };
}

function partOf(service: ChronosService, owner: string, query: Query, limit: number): Promise<Page> {
  const { store } = service;
  if (query.sort === 'next') return nextToRing(store, owner, query, limit);
  if (query.until !== undefined)
    throw new ReveilleError('invalid_request', 'until needs sort=next; add that, or omit until');
  return query.text === undefined
    ? newest(store, owner, query, limit)
    : holding(service, owner, query.text, query, limit);
}

/** The position after an alarm, as {@link Page.next}. */
const positionOf = (state: AlarmState, { sort }: Query) =>
  sort === 'next' ? { dueAt: scheduledOccurrence(state)!.dueAt, alarmId: state.alarm.id } : state.alarm.id;

/**
 * A page of encoded views. It ends at `limit` alarms or at {@link PAGE_BYTES}, and has at least one alarm. The store
 * reads in steps, so that a page of large alarms needs no more memory than its bytes and one step.
 */
async function pageOf(
  service: ChronosService,
  { owner, reader }: { owner: string; reader: string | undefined },
  query: Query,
  limit: number,
) {
  const alarms: RawJson[] = [];
  let bytes = 0;
  let last: AlarmState | undefined;
  let { cursor } = query;
  for (;;) {
    const { states, next } = await partOf(service, owner, { ...query, cursor }, Math.min(STEP, limit - alarms.length));
    for (const state of states) {
      const text = encodeJson(viewAlarm(state, { ...service, reader }));
      bytes += utf8Bytes(text);
      if (bytes > PAGE_BYTES && last) return { alarms, next: positionOf(last, query) };
      alarms.push(new RawJson(text));
      last = state;
    }
    // A search may end before its limit, because a caller waits.
    if (next === undefined || alarms.length === limit || query.text !== undefined) return { alarms, next };
    cursor = encodeCursor(next);
  }
}

export function alarmListRoutes(app: HttpApp, service: ChronosService): void {
  serve(app, CHRONOS_ROUTES.alarmMark, async (c) => {
    await ownerOfRequest(service, c);
    refuseQuery(c);
    return sendOk(c, {});
  });

  serve(app, CHRONOS_ROUTES.alarmTotals, async (c) => {
    const owner = await ownerOfRequest(service, c);
    refuseQuery(c);
    return sendOk(c, await totalsOf(service, owner));
  });

  serve(app, CHRONOS_ROUTES.listAlarms, async (c) => {
    const caller = await callerOf(service, c);
    const { owner } = caller;
    const { author: reader } = authorOfRequest(service, c, caller);
    const query = parseOrThrow(alarmListQuerySchema, c.req.query());
    const { alarms, next } = await pageOf(service, { owner, reader }, query, query.limit ?? LIST_LIMIT_DEFAULT);
    return sendOk(c, {
      alarms,
      count: alarms.length,
      next_cursor: next === undefined ? undefined : encodeCursor(next),
    });
  });
}
