/** Alarms over HTTP (docs/reference/api.md, "chronosd: alarms"): parse, decide with the domain, store, acknowledge. */
import { readJson } from '../../kit/http/body.ts';
import { type HttpApp, type HttpContext, sendOk, serve } from '../../kit/http/handlers.ts';
import { KeyedQueue } from '../../kit/queue/keyed-queue.ts';
import { continueTrace, messagingFacts, recordedTrace, type SpanFacts, TRACEPARENT } from '../../kit/trace/trace.ts';
import {
  type AlarmCreate,
  type AlarmCreated,
  type AlarmPatch,
  alarmCreateSchema,
  alarmIdSchema,
  alarmPatchSchema,
  alarmPreviewRequestSchema,
  RAW_ALARM_FIELDS,
} from '../../wire/alarm.ts';
import { storedCause } from '../../wire/cause.ts';
import type { HookView } from '../../wire/conditions.ts';
import { ReveilleError } from '../../wire/errors.ts';
import { formatInstant } from '../../wire/rfc3339.ts';
import { isByPerson } from '../../wire/set-by.ts';
import { parseOrThrow } from '../../wire/validate.ts';
import { type Alarm, type AlarmState, type Occurrence, storedBytes, type Transition } from '../alarm/alarm.ts';
import { authorOption, causeOfAuthor, neverRuns, runRefusal } from '../alarm/cause.ts';
import { followedBy } from '../alarm/chain.ts';
import { differingFields, draftAlarm, editAlarm, editsSchedule, firstOccurrence } from '../alarm/definition.ts';
import { eventStateOf, sourceSeen, withNextOfEvents, withSeen } from '../alarm/events.ts';
import { lastTurnOf } from '../alarm/fire-history.ts';
import type { Calendars } from '../alarm/holidays.ts';
import { madeSecretOf, newHookSecret, withHookSecret, withSecretOfEdit } from '../alarm/hook.ts';
import { cancelAlarm, pauseAlarm, redriveAlarm, resumeAlarm, triggerAlarm } from '../alarm/lifecycle.ts';
import { encodeOptions, optionsOf } from '../alarm/options.ts';
import { previewAlarm } from '../alarm/preview.ts';
import { hookOf, nextFireAt, viewAlarm } from '../alarm/view.ts';
import { readingOf, timezoneOf, type WordContext } from '../alarm/when.ts';
import { catchUpWith, confirmChain, follow, releaseFollowers, unfollow } from '../dispatch/chains.ts';
import { withFirstLook } from '../dispatch/looks.ts';
import { tooManyActive, tooManyBytes, tooManyStored } from '../store/limits.ts';
import type { NewAlarm } from '../store/store.ts';
import type { Trust } from './admission.ts';
import { createAlarmIds } from './alarm-id.ts';
import { refuseForClient, refuseTextByClient } from './client-rights.ts';
import { refuseBody, refuseQuery } from './no-arguments.ts';
import { CHRONOS_ROUTES } from './routes.ts';
import { type Author, authorOfRequest, type ChronosService, callerOf } from './service.ts';

/**
 * One answer for an id that does not exist, belongs to another owner, or is invalid: the cases must be
 * indistinguishable.
 */
export function alarmNotFound(): ReveilleError {
  return new ReveilleError('not_found', 'you have no alarm with this id; alarm_list shows the ones you have');
}

/** The alarm id in the path. */
export function alarmIdOf(c: HttpContext): string {
  const id = alarmIdSchema.safeParse(c.req.param('id'));
  if (!id.success) throw alarmNotFound();
  return id.data;
}

type AnswerContext = WordContext & {
  readonly calendars: Calendars | undefined;
  readonly publicUrl: string | undefined;
  readonly reader: string | undefined;
};

/** The hook of an answer. @param secret that the answer shows */
const hookWith = (secret: string | undefined, hook: HookView | undefined) =>
  hook && { hook: { ...hook, ...(secret !== undefined && { secret }) } };

/** @param words when the request's time in words is read */
function created(state: AlarmState, deduped: boolean, asked: AlarmCreate, words: AnswerContext): AlarmCreated {
  const next = nextFireAt(state);
  const timezone = timezoneOf(state.alarm);
  const secret = deduped ? undefined : madeSecretOf(state.alarm);
  return {
    id: state.alarm.id,
    ...(next === undefined ? {} : { next_fire_at: formatInstant(next) }),
    status: state.alarm.status,
    deduped,
    ...(timezone !== undefined && { timezone }),
    reading: readingOf(state.alarm, asked.timezone, words),
    ...hookWith(secret, hookOf(state, words)),
  };
}

/** The answer to a request with the key of an existing alarm: that alarm, when the request defines the same. */
function repeated(earlier: AlarmState, requested: Alarm, asked: AlarmCreate, words: AnswerContext): AlarmCreated {
  const differing = differingFields(earlier.alarm, requested);
  if (differing.length === 0) return created(earlier, true, asked, words);
  throw new ReveilleError(
    'conflict',
    `idempotency_key ${JSON.stringify(requested.idempotencyKey)} belongs to alarm ${earlier.alarm.id}, which differs in ${differing.join(', ')}; use another key, or edit that alarm`,
  );
}

/** How many cancelled alarms are deleted at most to free storage for a new one. */
const DELETED_PER_CREATE = 100;

/** The delivered attempt is searched among this many latest attempts at an alarm. */
const ATTEMPTS_SEARCHED = 100;

type Caller = { owner: string; publicKey: string; trust: Trust };

/** Event sources that read the user's machine. */
const ON_MACHINE: ReadonlySet<string> = new Set(['file', 'process', 'mcp']);

/** What the user's machine would run or read for an alarm. */
const onMachine = ({ run, check, event }: AlarmCreate | AlarmPatch): string => {
  const what = [
    ...(run ? ['run'] : []),
    ...(check?.command ? ['check.command'] : []),
    ...(check?.path ? ['check.path'] : []),
    ...(event && ON_MACHINE.has(event.source) ? [`event.source ${event.source}`] : []),
  ];
  return what.join(' or ');
};

const isOfClient = (author: string | undefined) => author !== undefined && !isByPerson(author);

/**
 * A request may not cause what it must not: the dispatcher would skip the fire. @param isChecked as `runRefusal`
 *
 * @throws ReveilleError `forbidden`
 */
export function refuseCause(author: string | undefined, { alarm }: AlarmState, isChecked = false): void {
  const refusal = runRefusal(alarm, causeOfAuthor(author), isChecked);
  if (refusal !== undefined) throw new ReveilleError('forbidden', refusal);
}

/** @throws ReveilleError `invalid_request` */
function refuseNeverRuns(alarm: Alarm): void {
  const refusal = neverRuns(alarm);
  if (refusal !== undefined) throw new ReveilleError('invalid_request', `the alarm would never fire: ${refusal}`);
}

/**
 * A program with an access token may not decide when a command of the user runs: it may only pause or cancel such an alarm.
 *
 * @throws ReveilleError `forbidden`
 */
function refuseStartByClients(author: string | undefined, { alarm }: AlarmState): void {
  const what = isOfClient(author) ? onMachine(optionsOf(alarm) as AlarmPatch) : '';
  if (what === '') return;
  throw new ReveilleError(
    'forbidden',
    `a client with an access token may only pause or cancel an alarm with ${what}; the user can change it with: reveille alarm edit`,
  );
}

const creating = (): SpanFacts => ({ kind: 'producer', attributes: messagingFacts('create') });

async function createAlarm(
  service: ChronosService,
  {
    id,
    owner,
    trust,
    author,
    madeBy,
    ownsConversation,
    body,
  }: { id: (now: number) => string; body: Record<string, unknown> } & Author & Omit<Caller, 'publicKey'>,
): Promise<AlarmCreated> {
  const { store, clock, limits, hours, publicUrl, calendars, tryCheck } = service;
  const now = clock.now();
  const input = parseOrThrow(alarmCreateSchema, body);
  await refuseForClient(store, owner, { author, madeBy, ownsConversation }, input, true);
  const { check, run } = input;
  if (check || run) await tryCheck?.({ user_id: owner, check, run, by_person: isByPerson(author) });
  const hoursOfUser = input.when === undefined ? undefined : await hours?.();
  const words: AnswerContext = { now, hours: hoursOfUser, calendars, publicUrl, reader: author };
  const context = { now, hours: hoursOfUser, id: id(now), owner, limits, author, madeBy, traceparent: recordedTrace() };
  let alarm: Alarm;
  let occurrence: Occurrence;
  try {
    alarm = withHookSecret(draftAlarm(input, context), newHookSecret(), authorOption(author));
    refuseNeverRuns(alarm);
    occurrence = firstOccurrence(alarm, now, limits, calendars);
    alarm = await withFirstLook(service.looker, alarm);
    if (followedBy(alarm)) await follow(service, alarm);
  } catch (refusal) {
    // A request that is repeated after its instant has passed gets the original answer.
    const earlier = input.idempotency_key && (await store.findByKey(owner, input.idempotency_key));
    if (earlier) return repeated(earlier, draftAlarm(input, { ...context, earlier: earlier.alarm }), input, words);
    throw refusal;
  }
  const state = await storeAlarm(service, { alarm, occurrence }, trust);
  if (state.alarm.id !== alarm.id) return repeated(state, alarm, input, words);
  return created(state, false, input, words);
}

/** Stores a new alarm; returns the alarm that holds its key, if there is one. */
async function storeAlarm(service: ChronosService, entry: NewAlarm, trust: Trust): Promise<AlarmState> {
  const { alarm } = entry;
  if (!followedBy(alarm)) return stored(service, entry, trust);
  const state = await stored(service, entry, trust).catch(leaving(service, alarm));
  if (state.alarm.id === alarm.id) await catchUpWith(service, alarm);
  else await unfollow(service, alarm);
  return state;
}

/** Handles a refusal of an alarm that follows another one already. An error of the store may come after it has written. */
const leaving = (service: ChronosService, follower: Alarm) => async (refusal: unknown) => {
  if (!(refusal instanceof ReveilleError && refusal.code === 'unavailable')) await unfollow(service, follower);
  throw refusal;
};

async function stored(
  { store, limits, admission, onDue }: ChronosService,
  { alarm, occurrence }: NewAlarm,
  trust: Trust,
): Promise<AlarmState> {
  const { owner } = alarm;
  const bounds = { ...(await admission?.storeLimits(trust)), maxActive: limits.maxActiveAlarms };
  let answer = await store.create({ alarm, occurrence }, bounds);
  // Cancelled alarms are deleted first, before a request is refused.
  if (answer.result === 'too_much' && (await store.deleteCancelled(owner, DELETED_PER_CREATE)) > 0)
    answer = await store.create({ alarm, occurrence }, bounds);
  switch (answer.result) {
    case 'created':
      admission?.recordStored(storedBytes(alarm));
      onDue(occurrence.dueAt!);
      return answer.state;
    case 'too_many':
      throw tooManyActive(answer.active);
    case 'too_much': {
      const { maxStored = Number.POSITIVE_INFINITY, maxBytes = 0 } = bounds;
      throw answer.alarms >= maxStored ? tooManyStored(answer.alarms) : tooManyBytes(answer.bytes, maxBytes);
    }
    case 'key_taken':
      return answer.state;
  }
}

/** All `/v1/alarms` routes except the list and the ledger. */
export function alarmRoutes(app: HttpApp, service: ChronosService): void {
  const { store, clock, limits, admission, calendars } = service;
  const id = service.alarmIds ?? createAlarmIds();
  /** One change at a time, so that two of them cannot close a circle together. */
  const chains = new KeyedQueue();

  /** Applies a transition to the alarm in the path and wakes the dispatcher for its next occurrence. */
  const change = async (c: HttpContext, { owner, trust }: Caller, transition: Transition): Promise<AlarmState> => {
    const bounds = { ...(await admission?.storeLimits(trust)), maxActive: limits.maxActiveAlarms };
    const state = await store.update(owner, alarmIdOf(c), transition, bounds);
    if (!state) throw alarmNotFound();
    for (const { dueAt } of state.occurrences) if (dueAt !== null) service.onDue(dueAt);
    return state;
  };

  /**
   * As {@link change}, for an edit that may make the alarm follow another one.
   *
   * @param undo takes it back
   */
  const changeChain = async (
    c: HttpContext,
    caller: Caller,
    transition: Transition,
    undo: (before: AlarmState) => Transition,
  ): Promise<AlarmState> => {
    const { owner } = caller;
    const before = await store.get(owner, alarmIdOf(c));
    if (!before) throw alarmNotFound();
    const former = followedBy(before.alarm)?.id;
    const next = transition(before).alarm;
    const followed = followedBy(next)?.id;
    if (followed === former) return change(c, caller, transition);
    if (followed !== undefined) await follow(service, next);
    const after = await change(c, caller, transition).catch(leaving(service, next));
    await confirmChain(service, after.alarm).catch(async (refusal: unknown) => {
      const isStill = ({ alarm }: AlarmState) => followedBy(alarm)?.id === followed;
      await change(c, caller, (state) => (isStill(state) ? undo(before)(state) : state));
      await unfollow(service, after.alarm);
      throw refusal;
    });
    await unfollow(service, before.alarm);
    if (followed !== undefined) await catchUpWith(service, after.alarm);
    return after;
  };

  /** As the edit, with a first look at another source. */
  const withLookOfEdit = async (c: HttpContext, { owner }: Caller, edit: Transition): Promise<Transition> => {
    const before = await store.get(owner, alarmIdOf(c));
    if (!before) throw alarmNotFound();
    const { alarm } = edit(before);
    const source = sourceSeen(alarm);
    if (source === undefined || source === sourceSeen(before.alarm)) return edit;
    const { seen } = eventStateOf(await withFirstLook(service.looker, alarm));
    return (state) => {
      const edited = edit(state);
      const looked = { ...edited, alarm: withSeen(edited.alarm, seen) };
      return seen === undefined ? withNextOfEvents(looked, clock.now()) : looked;
    };
  };

  const authorOf = (c: HttpContext, caller: Caller) => authorOfRequest(service, c, caller).author;

  /** The answer to a request: the alarm, as its author may see it. */
  const sendView = (c: HttpContext, state: AlarmState, reader: string | undefined, more: object = {}) =>
    sendOk(c, { ...viewAlarm(state, { ...service, reader }), ...more });

  /** The caller, once the limits admit its request. */
  const enter = async (c: HttpContext, gate: 'creates' | 'triggers'): Promise<Caller> => {
    const caller = await callerOf(service, c);
    admission?.enter(gate, caller.owner, caller.trust);
    return caller;
  };

  /**
   * A route whose only argument is the alarm's id.
   *
   * @param starts whether the alarm may fire because of it
   */
  const act =
    (
      action: (state: AlarmState, now: number, calendars?: Calendars, cause?: string) => AlarmState,
      gate?: 'creates',
      starts = false,
    ) =>
    async (c: HttpContext) => {
      const caller = gate ? await enter(c, gate) : await callerOf(service, c);
      await refuseBody(c);
      const now = clock.now();
      const author = authorOf(c, caller);
      const state = await change(c, caller, (before) => {
        if (starts) refuseStartByClients(author, before);
        return action(before, now, calendars, storedCause(causeOfAuthor(author)));
      });
      return sendView(c, state, author);
    };

  serve(app, CHRONOS_ROUTES.createAlarm, async (c) => {
    const caller = await enter(c, 'creates');
    const body = await readJson(c, { raw: RAW_ALARM_FIELDS });
    const asked = { id, ...caller, ...authorOfRequest(service, c, caller), body };
    // Behind the transport token and the proof of identity: the caller's trace continues.
    const created = await continueTrace(c.req.header(TRACEPARENT), 'create alarms', creating, async (span) => {
      const answer = await createAlarm(service, asked);
      span?.setAttribute('reveille.alarm.id', answer.id);
      return answer;
    });
    return sendOk(c, created);
  });

  serve(app, CHRONOS_ROUTES.previewAlarm, async (c) => {
    await enter(c, 'creates');
    const request = parseOrThrow(alarmPreviewRequestSchema, await readJson(c, { raw: RAW_ALARM_FIELDS }));
    const hours = request.when === undefined ? undefined : await service.hours?.();
    return sendOk(c, previewAlarm(request, { now: clock.now(), limits, hours, calendars }));
  });

  serve(app, CHRONOS_ROUTES.getAlarm, async (c) => {
    const caller = await callerOf(service, c);
    refuseQuery(c);
    const reader = authorOf(c, caller);
    const state = await store.get(caller.owner, alarmIdOf(c));
    if (!state) throw alarmNotFound();
    return sendView(c, state, reader);
  });

  serve(app, CHRONOS_ROUTES.patchAlarm, async (c) => {
    const caller = await enter(c, 'creates');
    const patch = parseOrThrow(alarmPatchSchema, await readJson(c, { raw: RAW_ALARM_FIELDS }));
    const now = clock.now();
    const by = authorOfRequest(service, c, caller);
    const { author } = by;
    await refuseForClient(store, caller.owner, by, patch, false);
    const [check, run] = [patch.check ?? undefined, patch.run ?? undefined];
    if (check || run) await service.tryCheck?.({ user_id: caller.owner, check, run, by_person: isByPerson(author) });
    const hours = patch.when === undefined ? undefined : await service.hours?.();
    const newSecret = newHookSecret();
    let secret: string | undefined;
    const drafted: Transition = (before) => {
      refuseStartByClients(author, before);
      refuseTextByClient(by, before.alarm, patch);
      const edited = editAlarm(before, patch, now, { ...limits, author, hours }, calendars);
      const alarm = withSecretOfEdit(before.alarm, edited.alarm, newSecret, authorOption(author));
      if (patch.run ?? patch.check ?? patch.event) refuseNeverRuns(alarm);
      const made = madeSecretOf(alarm);
      secret = made === newSecret ? made : undefined;
      return { ...edited, alarm };
    };
    const undo =
      ({ alarm }: AlarmState): Transition =>
      (state) => {
        const {
          event = null,
          after = null,
          run_by_person,
          check_state,
          timed_by,
          hook_secret,
          hook_by,
        } = optionsOf(alarm);
        const undone = editAlarm(state, { event, after } as AlarmPatch, now, { ...limits, author }, calendars);
        // What else the edit has changed stays: then, what it took away does not come back.
        const isChainOnly = Object.keys(patch).every((name) => name === 'event' || name === 'after');
        const rights = isChainOnly ? { run_by_person, check_state, timed_by } : {};
        const options = encodeOptions({ ...optionsOf(undone.alarm), ...rights, hook_secret, hook_by });
        return { ...undone, alarm: { ...undone.alarm, options } };
      };
    const edit = patch.event ? await withLookOfEdit(c, caller, drafted) : drafted;
    const changesChain = patch.after !== undefined || patch.event !== undefined;
    const state = changesChain
      ? await chains.run(caller.owner, () => changeChain(c, caller, edit, undo))
      : await change(c, caller, edit);
    const hook = hookWith(secret, hookOf(state, { ...service, reader: author }));
    const isRescheduled = editsSchedule(patch);
    const reading = isRescheduled && readingOf(state.alarm, patch.timezone, { now, hours, calendars });
    return sendView(c, state, author, { ...hook, ...(reading && { reading }) });
  });

  // Cancelling is always admitted, because it frees storage.
  serve(app, CHRONOS_ROUTES.cancelAlarm, async (c) => {
    const caller = await callerOf(service, c);
    await refuseBody(c);
    const now = clock.now();
    const reader = authorOf(c, caller);
    const state = await change(c, caller, (before) => cancelAlarm(before, now));
    await releaseFollowers(service, state);
    return sendView(c, state, reader);
  });
  serve(app, CHRONOS_ROUTES.pauseAlarm, act(pauseAlarm, 'creates'));
  serve(app, CHRONOS_ROUTES.resumeAlarm, act(resumeAlarm, 'creates', true));
  serve(app, CHRONOS_ROUTES.redriveAlarm, async (c) => {
    const caller = await enter(c, 'creates');
    await refuseBody(c);
    const now = clock.now();
    const attempts = await store.attempts(caller.owner, alarmIdOf(c), { limit: ATTEMPTS_SEARCHED });
    const fireIds = [...new Set(attempts.map(({ fireId }) => fireId))];
    const reports = fireIds.length > 0 ? await store.turnReportsOf(caller.owner, alarmIdOf(c), fireIds) : [];
    const lastTurn = lastTurnOf(attempts, reports);
    const author = authorOf(c, caller);
    const cause = storedCause(causeOfAuthor(author));
    const state = await change(c, caller, (before) => {
      refuseStartByClients(author, before);
      refuseCause(author, before, before.alarm.status === 'failed');
      return redriveAlarm(before, now, lastTurn, calendars, cause);
    });
    return sendView(c, state, author);
  });

  serve(app, CHRONOS_ROUTES.triggerAlarm, async (c) => {
    const caller = await enter(c, 'triggers');
    await refuseBody(c);
    const now = clock.now();
    const author = authorOf(c, caller);
    let fireId = '';
    const state = await change(c, caller, (before) => {
      refuseStartByClients(author, before);
      refuseCause(author, before);
      const triggered = triggerAlarm(before, now, calendars, storedCause(causeOfAuthor(author)));
      fireId = triggered.fireId;
      return triggered.state;
    });
    return sendView(c, state, author, { fire_id: fireId });
  });
}
