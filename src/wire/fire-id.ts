/**
 * Fire ids: the name of one wake, the same for every attempt, by which repetitions are recognised. chronosd derives it
 * from the occurrence. A wake without one gets an id derived from its content, only in this file (docs/reference/api.md
 * §4).
 */
import { createHash, randomUUID } from 'node:crypto';
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
  /** What the alarm says of its turn. */
  terms?: object | undefined;
};

/** The first half of a derived fire id, and how long a wake with the same one is a repetition. */
export type DerivedName = { readonly derived: string; readonly windowMs: number };

/**
 * Identifies a wake without a fire id. Two wakes with the same given name are the same. Without a name, they are the same
 * if user, conversation, alarm, due instant, message, the payload's source text and the terms are equal. The second half of
 * the fire id is the instant of the first of them: {@link fireIdOf}.
 *
 * @param name the caller's name for the wake
 * @param windowMs how long an identical wake without a name is a repetition; up to 0, each wake is another one
 */
export function deriveName(facts: WakeFacts, name: string | undefined, windowMs: number): DerivedName {
  const { userId, conversationId, alarmId, scheduledFor, message, payload, terms } = facts;
  const given = name ?? (windowMs <= 0 ? randomUUID() : undefined);
  const content = [userId, conversationId, alarmId, scheduledFor, message, payload, ...(terms ? [terms] : [])];
  const identity = given === undefined ? content : ['named', userId, given];
  // Absent members become null, which differs from every text.
  const digest = createHash('sha256').update(JSON.stringify(identity)).digest('hex');
  return {
    derived: `wake-${digest.slice(0, 32)}`,
    windowMs: name === undefined ? windowMs : Number.POSITIVE_INFINITY,
  };
}
