/**
 * Fire ids: the name of one wake, the same for every attempt, by which repetitions are recognised. chronosd derives it
 * from the occurrence. A wake without one gets an id derived from its content, only in this file (docs/reference/api.md
 * §4).
 */
import { createHash } from 'node:crypto';
import { z } from 'zod';

const OCCURRENCE = /^[0-9a-f-]{36}@\d{1,16}$/;

/** The fire id of a chronosd occurrence. */
export const fireIdSchema = z.string().regex(OCCURRENCE, 'must look like <alarm id>@<due, epoch milliseconds>');

/** A fire id from any caller. It is sent in a header, so it is visible ASCII. */
export const givenFireIdSchema = z.string().regex(/^[\x21-\x7e]{1,128}$/, 'must be 1 to 128 visible ASCII characters');

/** The fire id of one occurrence of one alarm; the same for every attempt. */
export function fireIdOf(alarmId: string, dueEpochMs: number): string {
  return `${alarmId}@${dueEpochMs}`;
}

/** Splits a fire id that {@link fireIdSchema} accepts. */
export function partsOfFireId(fireId: string): { alarmId: string; dueEpochMs: number } {
  const at = fireId.lastIndexOf('@');
  return { alarmId: fireId.slice(0, at), dueEpochMs: Number(fireId.slice(at + 1)) };
}

/** Whether the fire id names a chronosd occurrence, so that its outcome can be reported to chronosd. */
export function isOccurrence(fireId: string): boolean {
  return OCCURRENCE.test(fireId);
}

/** Headers that name a wake if the body has no `fire_id`; the first one present is used. */
export const WAKE_NAME_HEADERS = ['idempotency-key', 'webhook-id'] as const;

/**
 * How long an identical wake without a name counts as a repetition: a day less one minute. The minute keeps an early
 * wake of a daily series from being taken for a repetition.
 */
export const REPEAT_SECONDS = 24 * 3600 - 60;
export const REPEAT_SECONDS_MAX = 30 * 24 * 3600;

/** Content of a wake without a fire id. `payload` is source text. */
export type WakeFacts = {
  userId?: string | undefined;
  conversationId?: string | undefined;
  alarmId?: string | undefined;
  /** Epoch milliseconds. */
  scheduledFor?: number | undefined;
  message: string;
  payload?: string | undefined;
};

/**
 * First half of a derived fire id. It is equal for two wakes with the same given name. Without a name, it is equal if
 * user, conversation, alarm, due instant, message and the payload's source text are equal.
 *
 * @param name the caller's name for the wake
 */
export function derivedName(facts: WakeFacts, name?: string): string {
  const { userId, conversationId, alarmId, scheduledFor, message, payload } = facts;
  const identity =
    name === undefined ? [userId, conversationId, alarmId, scheduledFor, message, payload] : ['named', userId, name];
  // Absent members become null, which differs from every text.
  const digest = createHash('sha256').update(JSON.stringify(identity)).digest('hex');
  return `wake-${digest.slice(0, 32)}`;
}
