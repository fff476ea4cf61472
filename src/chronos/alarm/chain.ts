/**
 * Chains: alarms that wait for the turn of another alarm. The followed alarm has the ids of its followers, and the end
 * of its turn is an event of each. Pure.
 */
import { jsonForTerminal } from '../../kit/text/hidden-characters.ts';
import type { AlarmEvent, ChainOutcome } from '../../wire/conditions.ts';
import { ReveilleError } from '../../wire/errors.ts';
import type { Alarm, AlarmState } from './alarm.ts';
import { encodeOptions, optionsOf } from './options.ts';

/** Alarms that may wait for one alarm. */
export const FOLLOWERS_MAX = 100;
/** Links of one chain. */
export const CHAIN_MAX = 100;

/** The end of a fire: of its turn, or of the tries to deliver it. `unknown`: the turn ended, and its outcome cannot be determined. */
export type FireEnd = {
  readonly fireId: string;
  readonly outcome: Exclude<ChainOutcome, 'any'> | 'unknown';
  /** When it ended, epoch milliseconds; the same at every notification. */
  readonly at: number;
  readonly reply?: string | null;
  readonly error?: string | null;
  /** Who caused the fire: the followers inherit it. */
  readonly cause: string;
};

/** The alarm that an alarm waits for, and the outcome; `undefined` for an alarm that waits for none. */
export function followedBy(alarm: Pick<Alarm, 'kind' | 'options'>): { id: string; on: ChainOutcome } | undefined {
  if (alarm.kind !== 'event') return undefined;
  const { after, event } = optionsOf(alarm);
  const followed = after ?? (event?.source === 'alarm' ? event : undefined);
  return followed && { id: followed.alarm, on: followed.on ?? 'finished' };
}

export const followersOf = (alarm: Pick<Alarm, 'options'>): readonly string[] => optionsOf(alarm).followers ?? [];

/** @throws ReveilleError `conflict` when too many alarms wait for this one */
export function withFollower({ alarm, occurrences }: AlarmState, id: string): AlarmState {
  const before = followersOf(alarm);
  if (before.includes(id)) return { alarm, occurrences };
  if (before.length >= FOLLOWERS_MAX)
    throw new ReveilleError(
      'conflict',
      `${FOLLOWERS_MAX} alarms wait for alarm ${alarm.id} already; cancel some of them`,
    );
  return { alarm: withFollowers(alarm, [...before, id]), occurrences };
}

export function withoutFollowers({ alarm, occurrences }: AlarmState, ids: readonly string[]): AlarmState {
  const left = followersOf(alarm).filter((id) => !ids.includes(id));
  return { alarm: left.length === followersOf(alarm).length ? alarm : withFollowers(alarm, left), occurrences };
}

const withFollowers = (alarm: Alarm, ids: readonly string[]): Alarm => ({
  ...alarm,
  options: encodeOptions({ ...optionsOf(alarm), followers: ids.length === 0 ? null : [...ids] }),
});

/** The event of a follower. Its id is the same for each notification of this end. */
export function eventOfEnd({ id, label }: Alarm, { fireId, outcome, at, reply, error, cause }: FireEnd): AlarmEvent {
  const data = {
    ...{ alarm_id: id, label: label || undefined, fire_id: fireId, outcome },
    reply: reply ?? undefined,
    error: error ?? undefined,
  };
  return { id: `${fireId} ${outcome}`, receivedAt: at, data: jsonForTerminal(JSON.stringify(data)), cause };
}

/** Whether an alarm fires no more by itself. A failed alarm, or one whose turn failed, can be redriven. */
export const hasEnded = ({ alarm: { status }, occurrences }: AlarmState): boolean =>
  status === 'failed' || ((status === 'fired' || status === 'cancelled') && occurrences.length === 0);
