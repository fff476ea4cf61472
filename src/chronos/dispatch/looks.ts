/** Looks at sources of events that cannot report by themselves. The router looks, because it knows the machine. */

import type { Logger } from '../../kit/log/log.ts';
import type { AlarmEvent } from '../../wire/conditions.ts';
import { ReveilleError, toReveilleError } from '../../wire/errors.ts';
import { hasValue } from '../../wire/json-pointer.ts';
import type { LookAnswer, Looker } from '../../wire/look.ts';
import { beginningOf } from '../../wire/text.ts';
import type { Alarm } from '../alarm/alarm.ts';
import { eventStateOf, type LookEnd, lookedAtBy, sourceSeen, withEvents, withSeen } from '../alarm/events.ts';
import { optionsOf } from '../alarm/options.ts';
import type { Claim } from '../store/store.ts';
import { type EventSink, recordAlarmEvents } from './record-events.ts';

const ERROR_CHARACTERS = 500;

type LookParts = EventSink & { looker: Looker | undefined; log: Logger };

/**
 * Takes the look of a claim and records what it has shown, together with what the next look needs. It never rejects.
 *
 * @param now when the look begins
 */
export async function takeLook(parts: LookParts, { alarm, occurrence }: Claim, now: number): Promise<LookEnd> {
  const { clock, log } = parts;
  try {
    const answer = await look(parts.looker, alarm, eventStateOf(alarm).seen);
    const { seen, more, ends, wait_ms } = answer;
    const events = eventsOf(alarm, answer, clock.now());
    if (events.length > 0)
      await recordAlarmEvents(parts, alarm.owner, alarm.id, events, {
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
  const filter = optionsOf(alarm).event?.filter;
  return events.flatMap(({ id, data }) => (filter && !hasValue(data, filter) ? [] : [{ id, receivedAt, data }]));
}

/**
 * The alarm with what its source shows now, so that the first look has something to compare with. Others are unchanged.
 *
 * @throws ReveilleError the router's refusal of a source that it cannot look at
 */
export async function withFirstLook(looker: Pick<Looker, 'look'> | undefined, alarm: Alarm): Promise<Alarm> {
  if (lookedAtBy(alarm) === undefined) return alarm;
  return withSeen(alarm, (await look(looker, alarm, undefined)).seen);
}

async function look(
  looker: Pick<Looker, 'look'> | undefined,
  alarm: Alarm,
  seen: string | undefined,
): Promise<LookAnswer> {
  const event = lookedAtBy(alarm)!;
  if (!looker) throw new ReveilleError('unavailable', 'no router is known that could look at the source');
  return looker.look({ user_id: alarm.owner, alarm_id: alarm.id, event, ...(seen !== undefined && { seen }) });
}
