/** Alarms for tests, created as clients create them, and the store's changes to their claims. */
import { type AlarmCreate, type AlarmPatch, alarmCreateSchema, alarmPatchSchema } from '../../../wire/alarm.ts';
import { RawJson } from '../../../wire/json.ts';
import { parseOrThrow } from '../../../wire/validate.ts';
import { type AlarmState, type Occurrence, scheduledOccurrence, type Transition } from '../alarm.ts';
import { type DefinitionLimits, draftAlarm, editAlarm, firstOccurrence } from '../definition.ts';
import type { Calendars } from '../holidays.ts';

/** A Monday, in whole minutes. */
export const NOW = Date.UTC(2026, 5, 15, 8, 10);
export const LIMITS: DefinitionLimits = { minIntervalSeconds: 10, maxFailures: 100 };
export const ALARM_ID = '01977777-0000-7000-8000-000000000001';
export const OWNER = 'ada';

/** A request body; its payload is given as source text. */
export type Body = Record<string, unknown> & { payload?: string };

function raw({ payload, ...body }: Body): Record<string, unknown> {
  return payload === undefined ? body : { ...body, payload: new RawJson(payload) };
}

export function createInput(body: Body): AlarmCreate {
  return parseOrThrow(alarmCreateSchema, raw({ wake_message: 'water the plants', ...body }));
}

export function patchInput(body: Body): AlarmPatch {
  return parseOrThrow(alarmPatchSchema, raw(body));
}

/** The alarm that a create body makes at `now`, with its first occurrence. */
export function setAlarm(body: Body, now = NOW, limits = LIMITS, calendars?: Calendars): AlarmState {
  const alarm = draftAlarm(createInput(body), { id: ALARM_ID, owner: OWNER, now, limits });
  return { alarm, occurrences: [firstOccurrence(alarm, now, limits, calendars)] };
}

export function edit(state: AlarmState, body: Body, now = NOW, calendars?: Calendars): AlarmState {
  return editAlarm(state, patchInput(body), now, LIMITS, calendars);
}

/** The pending occurrence of the schedule; throws when there is none. */
export function scheduled(state: AlarmState): Occurrence {
  const occurrence = scheduledOccurrence(state);
  if (!occurrence) throw new Error('the alarm has no pending occurrence of its schedule');
  return occurrence;
}

function replace(state: AlarmState, fireId: string, change: (occurrence: Occurrence) => Occurrence): AlarmState {
  const occurrences = state.occurrences.map((occurrence) =>
    occurrence.fireId === fireId ? change(occurrence) : occurrence,
  );
  return { ...state, occurrences };
}

/** Changes an occurrence as a store's claim does. */
export function claim(state: AlarmState, fireId = scheduled(state).fireId, now = NOW): AlarmState {
  return replace(state, fireId, (occurrence) => ({
    ...occurrence,
    attempt: occurrence.attempt + 1,
    fence: occurrence.fence + 1,
    claimedAt: now,
  }));
}

/** Removes the claim, as a store does before it passes a state to a completion. */
export function release(state: AlarmState, fireId: string): AlarmState {
  return replace(state, fireId, (occurrence) => ({ ...occurrence, claimedAt: null }));
}

/** Completes a claimed occurrence. */
export function complete(state: AlarmState, fireId: string, settle: Transition): AlarmState {
  return settle(release(state, fireId));
}
