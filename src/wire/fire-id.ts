/**
 * Fire ids: the name of one wake, the same for every attempt at it, by which a repetition is recognised. chronosd names
 * its own after the occurrence. A wake that comes without one gets a name that is derived from what it says, here and
 * nowhere else (docs/contracts.md §4).
 */
import { createHash } from 'node:crypto';
import { z } from 'zod';

const OCCURRENCE = /^[0-9a-f-]{36}@\d{1,16}$/;

/** The fire id of an occurrence that a chronosd made. */
export const fireIdSchema = z.string().regex(OCCURRENCE, 'must look like <alarm id>@<due, epoch milliseconds>');

/** The fire id that any caller may give: it travels in a header, so it is visible ASCII. */
export const givenFireIdSchema = z.string().regex(/^[\x21-\x7e]{1,128}$/, 'must be 1 to 128 visible ASCII characters');

/** The name of one occurrence of one alarm; the same for every attempt at it. */
export function fireIdOf(alarmId: string, dueEpochMs: number): string {
  return `${alarmId}@${dueEpochMs}`;
}

/** Takes the name of an occurrence apart: one that {@link fireIdSchema} lets pass. */
export function partsOfFireId(fireId: string): { alarmId: string; dueEpochMs: number } {
  const at = fireId.lastIndexOf('@');
  return { alarmId: fireId.slice(0, at), dueEpochMs: Number(fireId.slice(at + 1)) };
}

/** Whether a chronosd may know this fire, so that it is worth telling it what came of it. */
export function isOccurrence(fireId: string): boolean {
  return OCCURRENCE.test(fireId);
}

/** Headers with which a caller names its wake, besides the `fire_id` of the body; the first that is there counts. */
export const WAKE_NAME_HEADERS = ['idempotency-key', 'webhook-id'] as const;

/**
 * For how long the same wake without a name is the same: a day, less a minute so that a series which rings daily is not
 * taken for a repetition when one of its wakes is a little early.
 */
export const REPEAT_SECONDS = 24 * 3600 - 60;
export const REPEAT_SECONDS_MAX = 30 * 24 * 3600;

/** What a wake says that arrived without a fire id. `payload` is source text. */
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
 * The first half of a derived fire id. Two wakes have the same one when they were given the same name, or, without a
 * name, when user, conversation, alarm, due instant, message and the payload's source text are the same.
 *
 * @param name what the caller called the wake
 */
export function derivedName(facts: WakeFacts, name?: string): string {
  const { userId, conversationId, alarmId, scheduledFor, message, payload } = facts;
  const said =
    name === undefined ? [userId, conversationId, alarmId, scheduledFor, message, payload] : ['named', userId, name];
  // JSON has null for what is absent, which no text can be mistaken for.
  const digest = createHash('sha256').update(JSON.stringify(said)).digest('hex');
  return `wake-${digest.slice(0, 32)}`;
}
