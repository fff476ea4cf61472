/** Alarms, claims and outcomes for the contract's tests. */
import assert from 'node:assert/strict';
import type { Alarm, AlarmState, Attempt, Occurrence, Transition } from '../../../src/chronos/alarm/alarm.ts';
import { type DefinitionLimits, draftAlarm } from '../../../src/chronos/alarm/definition.ts';
import { encodeOptions } from '../../../src/chronos/alarm/options.ts';
import type {
  AgentKey,
  AlarmStore,
  Claim,
  ClaimKey,
  ClaimRequest,
  Completion,
  NewAlarm,
} from '../../../src/chronos/store/store.ts';
import {
  type FieldType,
  fieldOf,
  isOption,
  type MemberOf,
  memberOf,
  OPTION_FIELDS,
  type OptionField,
  OWNER_FIELDS,
  type OwnerField,
} from '../../../src/wire/alarm-fields.ts';
import { ReveilleError } from '../../../src/wire/errors.ts';
import { fireIdOf } from '../../../src/wire/fire-id.ts';

/** The tests' present, epoch milliseconds: after the present of every store, which some rules use. */
export const NOW = Date.UTC(2127, 2, 4, 5, 6, 7, 89);

export const ADA = '7f000000-0000-4000-8000-00000000ada0';
export const BOB = '7f000000-0000-4000-8000-00000000b0b0';

export const NO_LIMIT = { maxActive: 1_000_000 };
/** The draft settings of the store's alarms; this test reads none of them. */
const DRAFT_LIMITS: DefinitionLimits = { minIntervalSeconds: 10, maxFailures: 100 };

let made = 0;

/** An id that sorts after all earlier ones, as UUIDv7 do. */
export function newId(): string {
  made++;
  return `01977777-0000-7000-8000-${made.toString(16).padStart(12, '0')}`;
}

export function occurrenceOf(alarm: Alarm, at: number, change: Partial<Occurrence> = {}): Occurrence {
  return {
    fireId: fireIdOf(alarm.id, at),
    alarmId: alarm.id,
    owner: alarm.owner,
    source: 'schedule',
    scheduledFor: at,
    nominal: at,
    dueAt: at,
    attempt: 0,
    missedCount: 0,
    fence: 0,
    claimedAt: null,
    heldReason: null,
    heldUntil: null,
    cause: null,
    ...change,
  };
}

/** For each type of a field, a value that no new alarm has. */
const OTHER_VALUES: Readonly<Record<FieldType, unknown>> = {
  choice: 'cron',
  text: 'orchids',
  string: '@hourly',
  message: 'mist the orchids\0 ',
  identifier: 'conv:2',
  json: '[1.0]',
  instant: NOW + 77,
  seconds: 2.5,
  count: 3,
  switch: true,
  list: ['orchids', 'ferns'],
  object: { path: 'orchids' },
  author: 'Ada "the first" \\',
};

const otherValue = (name: OwnerField | OptionField) => {
  const { type, of } = fieldOf(name);
  return of?.at(-1) ?? OTHER_VALUES[type];
};

/** Another value for everything that an edit may set. */
export const OTHER_DEFINITION = {
  ...Object.fromEntries(
    OWNER_FIELDS.filter((name) => !isOption(name) && fieldOf(name).edit !== 'never').map((name) => [
      memberOf(name as Exclude<OwnerField, OptionField>),
      otherValue(name),
    ]),
  ),
  options: encodeOptions(Object.fromEntries(OPTION_FIELDS.map((name) => [name, otherValue(name)]))),
} as Omit<Pick<Alarm, MemberOf<Exclude<OwnerField, OptionField>> | 'options'>, 'kind' | 'idempotencyKey'>;

/** A new alarm that is due at an instant. */
export function alarmDue(at: number, change: Partial<Alarm> = {}): NewAlarm {
  const asked = { kind: 'once', wake_message: 'water the plants', label: 'plants', fire_at: at } as const;
  const alarm: Alarm = {
    ...draftAlarm(asked, { id: newId(), owner: ADA, now: NOW, limits: DRAFT_LIMITS }),
    ...change,
  };
  return { alarm, occurrence: occurrenceOf(alarm, at) };
}

/** Creates an alarm and returns the stored one. */
export async function create(store: AlarmStore, entry: NewAlarm): Promise<AlarmState> {
  const created = await store.create(entry, NO_LIMIT);
  assert.equal(created.result, 'created');
  return created.result === 'created' ? created.state : assert.fail();
}

/** Creates an alarm that is due at an instant. */
export function createDue(store: AlarmStore, at: number, change: Partial<Alarm> = {}): Promise<AlarmState> {
  return create(store, alarmDue(at, change));
}

/** Claims with generous bounds by default. */
export function claim(store: AlarmStore, request: Partial<ClaimRequest> = {}): Promise<Claim[]> {
  const now = request.now ?? NOW;
  return store.claim({ now, limit: 1000, perOwner: 1000, inFlight: new Map(), ...request });
}

/** Creates one alarm that is due now, and claims it. */
export async function createClaimed(store: AlarmStore, change: Partial<Alarm> = {}): Promise<Claim> {
  const { alarm } = await createDue(store, NOW, change);
  const claims = await claim(store);
  const mine = claims.find(({ alarm: { id } }) => id === alarm.id);
  assert.ok(mine, 'a due occurrence can be claimed');
  return mine;
}

export function keyOf({ occurrence: { owner, alarmId, fireId, fence } }: Claim): ClaimKey {
  return { owner, alarmId, fireId, fence };
}

export function attemptOf({ occurrence }: Claim, change: Partial<Attempt> = {}): Attempt {
  return {
    fireId: occurrence.fireId,
    alarmId: occurrence.alarmId,
    owner: occurrence.owner,
    scheduledFor: occurrence.scheduledFor,
    attempt: occurrence.attempt,
    startedAt: NOW + 1,
    finishedAt: NOW + 20,
    outcome: 'delivered',
    httpStatus: 202,
    error: null,
    missedCount: occurrence.missedCount,
    machineReadyMs: null,
    lateBecause: null,
    cause: null,
    ...change,
  };
}

/** The alarm has fired for the last time: the occurrence is removed. */
export function firedForGood(fireId: string): Transition {
  return ({ alarm, occurrences }) => ({
    alarm: { ...alarm, status: 'fired', fireCount: alarm.fireCount + 1, lastFiredAt: NOW + 1 },
    occurrences: occurrences.filter((occurrence) => occurrence.fireId !== fireId),
  });
}

/** The occurrence is to be tried again. */
export function again(fireId: string, dueAt: number | null): Transition {
  return ({ alarm, occurrences }) => ({
    alarm: { ...alarm, failureCount: alarm.failureCount + 1, lastError: 'the machine said 503' },
    occurrences: occurrences.map((occurrence) =>
      occurrence.fireId === fireId ? { ...occurrence, dueAt } : occurrence,
    ),
  });
}

/** The alarm is cancelled; a running attempt continues to its end. */
export const cancelled: Transition = ({ alarm, occurrences }) => ({
  alarm: { ...alarm, status: 'cancelled' },
  occurrences: occurrences
    .filter(({ claimedAt }) => claimedAt !== null)
    .map((occurrence) => ({ ...occurrence, dueAt: null })),
});

/** The alarm is paused: its occurrences are parked. */
export const paused: Transition = ({ alarm, occurrences }) => ({
  alarm: { ...alarm, status: 'paused' },
  occurrences: occurrences.map((occurrence) => ({ ...occurrence, dueAt: null })),
});

/** Sets some members of the alarm. */
export function edited(change: Partial<Alarm>): Transition {
  return ({ alarm, occurrences }) => ({ alarm: { ...alarm, ...change }, occurrences });
}

/** Adds an occurrence beside the schedule. */
export function triggered(at: number): Transition {
  return ({ alarm, occurrences }) => ({
    alarm,
    occurrences: [...occurrences, occurrenceOf(alarm, at, { source: 'trigger' })],
  });
}

/** A claim that was delivered and ends its alarm. */
export function delivered(claimed: Claim): Completion {
  const key = keyOf(claimed);
  return { key, attempt: attemptOf(claimed), settle: firedForGood(key.fireId) };
}

export function agentKey(change: Partial<AgentKey> = {}): AgentKey {
  return {
    owner: ADA,
    label: ADA.toUpperCase(),
    publicKey: 'aa'.repeat(32),
    source: 'tofu',
    enrolledAt: NOW,
    revokedAt: null,
    ...change,
  };
}

/** A predicate for `assert.rejects`: a ReveilleError with this code. */
export function withCode(code: ReveilleError['code']) {
  return (thrown: unknown) => thrown instanceof ReveilleError && thrown.code === code;
}

/** All stored data of an alarm, with its ledger. */
export async function everythingOf(store: AlarmStore, owner: string, alarmId: string) {
  return {
    state: await store.get(owner, alarmId),
    attempts: await store.attempts(owner, alarmId, { limit: 1000 }),
  };
}
