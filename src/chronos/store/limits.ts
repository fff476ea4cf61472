/** Errors for an owner, or all owners, that have reached a limit of the store. */
import { ReveilleError } from '../../wire/errors.ts';
import { type AlarmState, storedBytes } from '../alarm/alarm.ts';
import type { AgentKey, MoveAlarmsResult, PinLimits, StoreLimits } from './store.ts';

/** It is unknown when a waiting alarm will have fired: retry after this time. */
const RETRY_SECONDS = 60;
const HOUR_SECONDS = 3600;
const HOUR_MS = 3_600_000;

/** The limit that refused a request; a label of `chronos_refused_total`. */
export type Bound =
  | 'active_alarms'
  | 'stored_alarms'
  | 'stored_bytes'
  | 'waiting_triggers'
  | 'new_owners'
  | 'owners'
  | 'challenges'
  | 'creates'
  | 'triggers'
  | 'events'
  | 'event_streams';

/** A request that a limit refused: 429. */
export class OverBound extends ReveilleError {
  readonly bound: Bound;

  constructor(bound: Bound, message: string, options: { retryAfterSeconds: number; retryable?: boolean }) {
    super('rate_limited', message, options);
    this.bound = bound;
  }
}

export function tooManyActive(active: number): OverBound {
  return new OverBound(
    'active_alarms',
    `you have ${active} waiting alarms, the allowed maximum; cancel some before you set more`,
    { retryAfterSeconds: RETRY_SECONDS, retryable: false },
  );
}

export function tooManyStored(alarms: number): OverBound {
  return new OverBound(
    'stored_alarms',
    `${alarms} of your alarms are stored, finished ones included, the allowed maximum (CHRONOS_MAX_STORED_ALARMS); finished ones are deleted after CHRONOS_TERMINAL_RETENTION_DAYS`,
    { retryAfterSeconds: HOUR_SECONDS },
  );
}

export const tooManyStreams = (message: string) =>
  new OverBound('event_streams', message, { retryAfterSeconds: RETRY_SECONDS });

/**
 * @param bytes stored bytes of the owner
 */
export function tooManyBytes(bytes: number, maxBytes: number): OverBound {
  const mib = (count: number) => (count / 1024 / 1024).toFixed(1);
  return new OverBound(
    'stored_bytes',
    `your alarms take up ${mib(bytes)} MiB and may at present take up ${mib(maxBytes)} MiB (CHRONOS_MAX_STORED_MIB, CHRONOS_MAX_STORED_MIB_IN_ALL); use shorter messages and payloads, or cancel alarms`,
    { retryAfterSeconds: HOUR_SECONDS },
  );
}

function tooManyTriggers(max: number): OverBound {
  return new OverBound(
    'waiting_triggers',
    `${max} triggers of your alarms are waiting, the allowed maximum (CHRONOS_MAX_WAITING_TRIGGERS)`,
    { retryAfterSeconds: RETRY_SECONDS },
  );
}

type Totals = { open: number; alarms: number; bytes: number };

/**
 * Whether the alarms of an owner may not move to another one.
 *
 * @param conflicts.totals of both owners: a move does not change their sum
 */
export function refusedMove(
  { inFlight, sharedKeys, totals }: { inFlight: number; sharedKeys: number; totals: readonly Totals[] },
  { maxActive = Infinity, maxStored = Infinity, maxBytes = Infinity }: StoreLimits,
): (MoveAlarmsResult & { result: 'refused' }) | undefined {
  const sum = (name: keyof Totals) => totals.reduce((total, each) => total + each[name], 0);
  const [open, stored, bytes] = [sum('open'), sum('alarms'), sum('bytes')];
  const exceeded = open > maxActive || stored > maxStored || bytes > maxBytes;
  if (inFlight + sharedKeys === 0 && !exceeded) return undefined;
  return { result: 'refused', inFlight, sharedKeys, open, stored, bytes, exceeded };
}

/** Whether a key may be replaced by another one. */
export function isRotatable(key: AgentKey | undefined, enrolledOnly: boolean): key is AgentKey {
  return key !== undefined && key.revokedAt === null && (!enrolledOnly || key.source === 'enrolled');
}

/** Pins after this instant count as pins of the last hour. */
export const anHourBefore = (instant: number) => instant - HOUR_MS;

/**
 * @param pinned number of keys pinned within the hour
 * @param keys number of keys
 * @throws OverBound when another one would exceed a limit
 */
export function checkPins({ pinned, keys }: { pinned: number; keys: number }, limits: PinLimits): void {
  if (pinned >= limits.perHour)
    throw new OverBound(
      'new_owners',
      `${limits.perHour} new agents were added within an hour, the allowed maximum (CHRONOS_NEW_OWNERS_PER_HOUR); try later, or have an operator enrol this one with "reveille agent enroll"`,
      { retryAfterSeconds: RETRY_SECONDS },
    );
  if (keys >= limits.keysInAll)
    throw new OverBound(
      'owners',
      `${keys} agents are known, the maximum without enrolment (CHRONOS_MAX_OWNERS); an operator can enrol this one with "reveille agent enroll"`,
      { retryAfterSeconds: HOUR_SECONDS },
    );
}

/** How much a transition adds to its owner's totals. */
export type StorageIncrease = { opens: boolean; bytes: number; triggers: number };

const isOpen = ({ alarm: { status } }: AlarmState) => status === 'active' || status === 'paused';
const waitingTriggers = ({ occurrences }: AlarmState) =>
  occurrences.filter(({ source, dueAt }) => source === 'trigger' && dueAt !== null).length;

export function increaseOf(stored: AlarmState, wanted: AlarmState): StorageIncrease {
  const [before, after] = [stored.alarm, wanted.alarm];
  const sameTexts = (['wakeMessage', 'payload', 'label', 'options'] as const).every(
    (member) => before[member] === after[member],
  );
  return {
    opens: isOpen(wanted) && !isOpen(stored),
    bytes: sameTexts ? 0 : storedBytes(after) - storedBytes(before),
    triggers: waitingTriggers(wanted) - waitingTriggers(stored),
  };
}

/** The owner's current totals. */
export type OwnerTotals = { active: number; bytes: number; triggers: number };

/** Whether the owner's totals must be read to check the limits. */
export function needsTotals({ opens, bytes, triggers }: StorageIncrease, limits: StoreLimits): boolean {
  return (
    (opens && limits.maxActive !== undefined) ||
    (bytes > 0 && limits.maxBytes !== undefined) ||
    (triggers > 0 && limits.maxTriggers !== undefined)
  );
}

/**
 * @throws OverBound when the owner would exceed a limit
 */
export function checkIncrease(
  { opens, bytes, triggers }: StorageIncrease,
  limits: StoreLimits,
  totals: OwnerTotals,
): void {
  const { maxActive, maxBytes, maxTriggers } = limits;
  if (opens && maxActive !== undefined && totals.active >= maxActive) throw tooManyActive(totals.active);
  if (bytes > 0 && maxBytes !== undefined && totals.bytes + bytes > maxBytes)
    throw tooManyBytes(totals.bytes, maxBytes);
  if (triggers > 0 && maxTriggers !== undefined && totals.triggers + triggers > maxTriggers)
    throw tooManyTriggers(maxTriggers);
}
