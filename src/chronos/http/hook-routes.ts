/** `/hooks/{hook_id}`: events from outside, proved by a signature or a secret address. */
import { bodyBytes } from '../../kit/http/body.ts';
import { type HttpApp, type HttpContext, sendOk, serve } from '../../kit/http/handlers.ts';
import type { Logger } from '../../kit/log/log.ts';
import { storedCause } from '../../wire/cause.ts';
import { EVENT_MAX_BYTES } from '../../wire/conditions.ts';
import { ReveilleError } from '../../wire/errors.ts';
import { HEARTBEAT_SIGNALS, HOOK_ROUTES } from '../../wire/hook.ts';
import { isSubscription } from '../../wire/look.ts';
import type { Alarm, AlarmState } from '../alarm/alarm.ts';
import { causeOfEvents } from '../alarm/cause.ts';
import { withCursor, withEvents } from '../alarm/events.ts';
import { hookSchemeOf, readHookId } from '../alarm/hook.ts';
import { triggerAlarm } from '../alarm/lifecycle.ts';
import { optionsOf } from '../alarm/options.ts';
import { eventOf, type HookRequest, isVerified, subscriptionMessageOf } from '../auth/hook.ts';
import { recordAlarmEvents } from '../dispatch/record-events.ts';
import { trustSince } from './admission.ts';
import type { ChronosService } from './service.ts';

/** One answer for an address that never existed and for one of an alarm that was deleted. */
const noSuchHook = () => new ReveilleError('not_found', 'no alarm has this address');

const notProved = () =>
  new ReveilleError(
    'unauthorized',
    'this address takes only requests with the current time and a valid signature of the secret that came with it',
  );

/** @throws ReveilleError 413 */
function refuseLargerThan(most: number, bytes: number): void {
  if (bytes <= most) return;
  const message = `an event must be at most ${EVENT_MAX_BYTES} bytes of JSON (got ${bytes})`;
  throw new ReveilleError('invalid_request', message, { status: 413 });
}

type HookServiceOptions = { log: Logger; onUnproved: () => void };

export function hookRoutes(app: HttpApp, service: ChronosService, { log, onUnproved }: HookServiceOptions): void {
  const { store, clock, admission, calendars } = service;

  /** The alarm of an address, when the request is proved to be its sender's. */
  async function proved(c: HttpContext): Promise<{ state: AlarmState; request: HookRequest }> {
    const name = readHookId(c.req.param('hook_id') ?? '');
    if (!name) throw noSuchHook();
    const state = await store.get(name.owner, name.alarmId);
    if (!state || hookSchemeOf(state.alarm) === undefined) throw noSuchHook();
    const request = { headers: c.req.header(), body: bodyBytes(c), nowMs: clock.now() };
    if (!isVerified(state.alarm, name, request)) {
      onUnproved();
      log.warn({ alarm_id: name.alarmId }, 'a webhook without a valid signature was refused');
      throw notProved();
    }
    const { status } = state.alarm;
    if (status !== 'active' && status !== 'paused')
      throw new ReveilleError('not_found', `this alarm is ${status} and takes no more events`, { status: 410 });
    // Reading the owner's key for each event would cost more than it shows.
    admission?.enter('events', name.owner, trustSince(state.alarm.createdAt, clock.now()));
    return { state, request };
  }

  const isHeartbeat = ({ alarm }: AlarmState) => optionsOf(alarm).expect !== undefined;

  async function record(c: HttpContext): Promise<Response> {
    const { state, request } = await proved(c);
    const { alarm } = state;
    if (isSubscription(optionsOf(alarm).event)) return recordOfServer(c, alarm, request);
    refuseLargerThan(EVENT_MAX_BYTES, request.body.length);
    const event = eventOf(alarm, request);
    // Escapes may make it larger, and what stands around a body of GitHub's.
    if (event) refuseLargerThan(EVENT_MAX_BYTES + 2048, Buffer.byteLength(event.data));
    if (!event) return sendOk(c, { recorded: 0, known: 0 });
    const limits = await admission?.eventLimits();
    const cause = causeOfEvents(alarm);
    const fresh = await recordAlarmEvents(service, alarm.owner, alarm.id, [event], { limits, cause });
    if (fresh === undefined) throw noSuchHook();
    return sendOk(c, { recorded: fresh, known: 1 - fresh });
  }

  /** Records what a server of MCP Events has posted. An event beyond the limit of events is recorded without its data. */
  async function recordOfServer(c: HttpContext, alarm: Alarm, request: HookRequest): Promise<Response> {
    const { owner, id } = alarm;
    const message = subscriptionMessageOf(alarm, request);
    if (message.kind === 'verification') return c.json({ challenge: message.challenge });
    const { event, cursor, isLast } = message;
    if (!event) return sendOk(c, { recorded: 0, known: 0 });
    const fresh = await recordAlarmEvents(service, owner, id, [event], {
      limits: await admission?.eventLimits(),
      cause: causeOfEvents(alarm),
      arrive: (before, events, now) => {
        const after = withEvents(before, events, now, isLast);
        return { ...after, alarm: withCursor(after.alarm, cursor) };
      },
    });
    if (fresh === undefined) throw noSuchHook();
    return sendOk(c, { recorded: fresh, known: 1 - fresh });
  }

  /** A program that failed is not waited for: the alarm fires now. */
  async function signal(c: HttpContext): Promise<Response> {
    const given = c.req.param('signal') ?? '';
    const { state } = await proved(c);
    const { alarm } = state;
    if (!isHeartbeat(state) || !HEARTBEAT_SIGNALS.test(given)) throw noSuchHook();
    if (Number(given) === 0) return record(c);
    if (given === 'start' || given === 'log') return sendOk(c, { recorded: 0, known: 0 });
    const now = clock.now();
    const bounds = await admission?.storeLimits('known');
    const after = await store.update(
      alarm.owner,
      alarm.id,
      (before) => triggerAlarm(before, now, calendars, storedCause(causeOfEvents(before.alarm))).state,
      bounds,
    );
    if (!after) throw noSuchHook();
    service.onDue(now);
    return sendOk(c, { recorded: 1, known: 0 });
  }

  serve(app, HOOK_ROUTES.hook, (c) => record(c as HttpContext));
  serve(app, HOOK_ROUTES.heartbeat, async (c) => {
    const name = readHookId(c.req.param('hook_id'));
    const state = name && (await store.get(name.owner, name.alarmId));
    if (!state || !isHeartbeat(state)) throw noSuchHook();
    return record(c as HttpContext);
  });
  serve(app, HOOK_ROUTES.hookSignal, (c) => signal(c as HttpContext));
  serve(app, HOOK_ROUTES.heartbeatSignal, (c) => signal(c as HttpContext));
}
