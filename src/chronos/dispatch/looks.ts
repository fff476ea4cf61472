/** Looks at sources of events that cannot report by themselves. The router looks, because it knows the machine. */

import type { Logger } from '../../kit/log/log.ts';
import type { AlarmEvent } from '../../wire/conditions.ts';
import { ReveilleError, toReveilleError } from '../../wire/errors.ts';
import { hasValue } from '../../wire/json-pointer.ts';
import { isSubscription, type LookAnswer, type Looker } from '../../wire/look.ts';
import { beginningOf } from '../../wire/text.ts';
import type { Alarm } from '../alarm/alarm.ts';
import { eventStateOf, type LookEnd, lookedAtBy, sourceSeen, withEvents, withSeen } from '../alarm/events.ts';
import { hookPathOf, hookSecretOf } from '../alarm/hook.ts';
import { optionsOf } from '../alarm/options.ts';
import type { Claim, StoreLimits } from '../store/store.ts';
import { type EventSink, recordAlarmEvents } from './record-events.ts';

const ERROR_CHARACTERS = 500;

type Eye = Pick<Looker, 'look' | 'publicUrl'>;
/** `limits`: of what the owner may store at present. */
type LookParts = EventSink & { looker: Eye | undefined; log: Logger; limits: () => Promise<StoreLimits> };

/**
 * Takes the look of a claim and records what it has shown, together with what the next look needs. It never rejects.
 *
 * @param now when the look begins
 */
export async function takeLook(parts: LookParts, { alarm, occurrence }: Claim, now: number): Promise<LookEnd> {
  const { clock, log } = parts;
  try {
    const answer = await look(parts.looker, alarm, { seen: eventStateOf(alarm).seen, isFirst: false });
    const { seen, more, ends, wait_ms } = answer;
    const events = eventsOf(alarm, answer, clock.now());
    if (events.length > 0)
      await recordAlarmEvents(parts, alarm.owner, alarm.id, events, {
        limits: await parts.limits(),
        arrive: (state, fresh, at) => {
          // An edit has named another source meanwhile.
          if (sourceSeen(state.alarm) !== sourceSeen(alarm)) return state;
          const after = withEvents(state, fresh, at, ends && !more);
          return { ...after, alarm: withSeen(after.alarm, seen) };
        },
      });
    return { at: Math.max(clock.now(), now), seen, again: more, ends: ends && !more, waitMs: wait_ms };
  } catch (thrown) {
    const { message, retryAfterSeconds } = toReveilleError(thrown);
    log.warn({ fire_id: occurrence.fireId, reason: message }, 'a look at the source of an alarm failed');
    const error = beginningOf(message.toWellFormed().replaceAll('\0', ' '), ERROR_CHARACTERS);
    const waitMs = retryAfterSeconds === undefined ? undefined : retryAfterSeconds * 1000;
    return { at: Math.max(clock.now(), now), error: `its source could not be looked at: ${error}`, waitMs };
  }
}

/** The events that the alarm's filter does not exclude. */
function eventsOf(alarm: Alarm, { events }: LookAnswer, receivedAt: number): AlarmEvent[] {
  const { event, expect } = optionsOf(alarm);
  return events.flatMap(({ id, data, is_notice }) => {
    // A word about the source is not what is expected.
    const isWanted = is_notice ? expect === undefined : event?.filter === undefined || hasValue(data, event.filter);
    return isWanted ? [{ id, receivedAt, data, cause: 'source' }] : [];
  });
}

/**
 * The alarm with what its source shows now, so that the first look has something to compare with. Others are unchanged.
 * A server that delivers by webhook is only asked whether it can: it posts to the alarm's address at once, which exists
 * when the alarm is stored.
 *
 * @throws ReveilleError the router's refusal of a source that it cannot look at
 */
export async function withFirstLook(looker: Eye | undefined, alarm: Alarm): Promise<Alarm> {
  if (lookedAtBy(alarm) === undefined) return alarm;
  const { seen } = await look(looker, alarm, { seen: undefined, isFirst: true });
  return withSeen(alarm, isSubscription(optionsOf(alarm).event) ? undefined : seen);
}

async function look(
  looker: Eye | undefined,
  alarm: Alarm,
  { seen, isFirst }: { seen: string | undefined; isFirst: boolean },
): Promise<LookAnswer> {
  const event = lookedAtBy(alarm)!;
  if (!looker) throw new ReveilleError('unavailable', 'no router is known that could look at the source');
  const isSubscribing = isSubscription(event);
  if (isSubscribing && looker.publicUrl === undefined)
    throw new ReveilleError(
      'invalid_request',
      'event.delivery "webhook" needs an address that the server reaches; set CHRONOS_PUBLIC_URL where chronosd runs, or omit delivery, so that the server is asked (poll)',
    );
  const callback =
    isSubscribing && !isFirst
      ? { url: `${looker.publicUrl}${hookPathOf(alarm)}`, secret: hookSecretOf(alarm)! }
      : undefined;
  const asked = { user_id: alarm.owner, alarm_id: alarm.id, event };
  return looker.look({ ...asked, ...(seen !== undefined && { seen }), ...(callback && { callback }) });
}
