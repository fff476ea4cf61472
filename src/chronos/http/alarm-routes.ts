/** Alarms over HTTP (contracts §2): parse, decide with the domain, store, acknowledge. */
import { v7 as uuidv7 } from 'uuid';
import { readJson } from '../../http-kit/body.ts';
import { sendOk } from '../../http-kit/envelope.ts';
import type { HttpApp, HttpContext } from '../../http-kit/environment.ts';
import {
  type AlarmCreated,
  alarmCreateSchema,
  alarmIdSchema,
  alarmListQuerySchema,
  alarmPatchSchema,
  LIST_LIMIT_DEFAULT,
  RAW_ALARM_FIELDS,
} from '../../wire/alarm.ts';
import { ReveilleError } from '../../wire/errors.ts';
import { formatInstant } from '../../wire/instant.ts';
import { parseOrThrow } from '../../wire/validate.ts';
import type { AlarmState, Transition } from '../alarm/alarm.ts';
import { defineAlarm, differingFields, editAlarm } from '../alarm/definition.ts';
import { cancelAlarm, pauseAlarm, redriveAlarm, resumeAlarm, triggerAlarm } from '../alarm/lifecycle.ts';
import { nextFireAt, viewAlarm } from '../alarm/view.ts';
import type { AlarmFilter } from '../store/store.ts';
import { decodeCursor, encodeCursor } from './cursor.ts';
import { type ChronosService, ownerOfRequest } from './service.ts';

/** One answer for an id that does not exist, belongs to someone else, or is no id: they must not be told apart. */
export function alarmNotFound(): ReveilleError {
  return new ReveilleError('not_found', 'you have no alarm with this id; alarm_list shows the ones you have');
}

/** The alarm id in the path. */
export function alarmIdOf(c: HttpContext): string {
  const id = alarmIdSchema.safeParse(c.req.param('id'));
  if (!id.success) throw alarmNotFound();
  return id.data;
}

function created(state: AlarmState, deduped: boolean): AlarmCreated {
  const next = nextFireAt(state);
  return {
    id: state.alarm.id,
    ...(next === undefined ? {} : { next_fire_at: formatInstant(next) }),
    status: state.alarm.status,
    deduped,
  };
}

async function createAlarm(
  service: ChronosService,
  owner: string,
  body: Record<string, unknown>,
): Promise<AlarmCreated> {
  const { store, clock, limits } = service;
  const now = clock.now();
  const input = parseOrThrow(alarmCreateSchema, body);
  const entry = defineAlarm(input, { id: uuidv7({ msecs: now }), owner, now, limits });
  const answer = await store.create(entry, { maxActive: limits.maxActiveAlarms });
  switch (answer.result) {
    case 'created':
      if (entry.occurrence.dueAt !== null) service.onDue(entry.occurrence.dueAt);
      return created(answer.state, false);
    case 'too_many':
      throw new ReveilleError(
        'rate_limited',
        `you have ${answer.active} alarms waiting, the most that is allowed; cancel some before you set more`,
        { retryable: false },
      );
    case 'key_taken': {
      const differing = differingFields(answer.state.alarm, entry.alarm);
      if (differing.length === 0) return created(answer.state, true);
      throw new ReveilleError(
        'conflict',
        `idempotency_key ${JSON.stringify(input.idempotency_key)} belongs to alarm ${answer.state.alarm.id}, which differs in ${differing.join(', ')}; use another key, or edit that alarm`,
      );
    }
  }
}

/** All `/v1/alarms` routes but the ledger's. */
export function alarmRoutes(app: HttpApp, service: ChronosService): void {
  const { store, clock, limits } = service;

  /** Applies a transition to the alarm in the path and wakes the dispatcher for what it now owes. */
  const change = async (c: HttpContext, transition: Transition): Promise<AlarmState> => {
    const owner = await ownerOfRequest(service, c);
    const state = await store.update(owner, alarmIdOf(c), transition);
    if (!state) throw alarmNotFound();
    for (const { dueAt } of state.occurrences) if (dueAt !== null) service.onDue(dueAt);
    return state;
  };
  const changeAndView = async (c: HttpContext, transition: (state: AlarmState, now: number) => AlarmState) => {
    const now = clock.now();
    return sendOk(c, viewAlarm(await change(c, (state) => transition(state, now)), now));
  };

  app.post('/v1/alarms', async (c) => {
    const owner = await ownerOfRequest(service, c);
    return sendOk(c, await createAlarm(service, owner, await readJson(c, { raw: RAW_ALARM_FIELDS })));
  });

  app.get('/v1/alarms', async (c) => {
    const owner = await ownerOfRequest(service, c);
    const { limit = LIST_LIMIT_DEFAULT, cursor, status, kind } = parseOrThrow(alarmListQuerySchema, c.req.query());
    const filter: AlarmFilter = { limit: limit + 1 };
    if (status) filter.status = status;
    if (kind) filter.kind = kind;
    if (cursor) filter.before = decodeCursor(alarmIdSchema, cursor);
    const found = await store.list(owner, filter);
    const page = found.slice(0, limit);
    const now = clock.now();
    return sendOk(c, {
      alarms: page.map((state) => viewAlarm(state, now)),
      count: page.length,
      next_cursor: found.length > limit ? encodeCursor(page.at(-1)!.alarm.id) : undefined,
    });
  });

  app.get('/v1/alarms/:id', async (c) => {
    const state = await store.get(await ownerOfRequest(service, c), alarmIdOf(c));
    if (!state) throw alarmNotFound();
    return sendOk(c, viewAlarm(state, clock.now()));
  });

  app.patch('/v1/alarms/:id', async (c) => {
    const body = await readJson(c, { raw: RAW_ALARM_FIELDS });
    // The owner is asked for first: a stranger learns nothing about the shape of a body.
    await ownerOfRequest(service, c);
    const patch = parseOrThrow(alarmPatchSchema, body);
    return changeAndView(c, (state, now) => editAlarm(state, patch, now, limits));
  });

  app.delete('/v1/alarms/:id', (c) => changeAndView(c, cancelAlarm));
  app.post('/v1/alarms/:id/pause', (c) => changeAndView(c, pauseAlarm));
  app.post('/v1/alarms/:id/resume', (c) => changeAndView(c, resumeAlarm));
  app.post('/v1/alarms/:id/redrive', (c) => changeAndView(c, redriveAlarm));

  app.post('/v1/alarms/:id/trigger', async (c) => {
    const now = clock.now();
    let fireId = '';
    const state = await change(c, (before) => {
      const triggered = triggerAlarm(before, now);
      fireId = triggered.fireId;
      return triggered.state;
    });
    return sendOk(c, { ...viewAlarm(state, now), fire_id: fireId });
  });
}
