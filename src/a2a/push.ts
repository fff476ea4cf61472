/**
 * Push notifications: each change of a task is posted to the address that its caller gave. The address is checked at
 * every connection, redirects are not followed, and failed deliveries are retried for a limited time.
 */
import { randomBytes } from 'node:crypto';
import { StreamResponse } from '@a2a-js/sdk';
import { V03PushNotificationSerializer } from '@a2a-js/sdk/compat/v0_3/server';
import type { Clock } from '../kit/clock/clock.ts';
import type { WebAccess } from '../kit/http/web-access.ts';
import type { Logger } from '../kit/log/log.ts';
import { createOutbox, type Delivery, type Outbox } from '../kit/outbox/outbox.ts';
import { ReveilleError } from '../wire/errors.ts';
import { LEGACY_VERSION } from './agent-card.ts';
import type { Notification, PushConfig, TaskStore } from './store.ts';
import { type StoredTask, statusOf, taskOf } from './task.ts';

const CONCURRENCY = 32;
/** Concurrent deliveries of one caller, and to one host. */
const MOST_OF_SHARE = 2;
/** Receivers whose consent this process knows. */
const MOST_CONSENTS = 10_000;
const FIRST_PAUSE_MS = 2000;
const LONGEST_PAUSE_MS = 300_000;
const MOST_ATTEMPTS = 8;
const ANSWER_BYTES = 4096;

/** The body of a notification: in version 1.0 the new state, or the task once it has a reply; in 0.3 always the task. */
export function notificationOf(task: StoredTask, version: string): string {
  const status = { taskId: task.id, contextId: task.contextId, status: statusOf(task), metadata: undefined };
  const whole: StreamResponse = { payload: { $case: 'task', value: taskOf(task, 0) } };
  if (version === LEGACY_VERSION) return new V03PushNotificationSerializer().serialize(whole, taskOf(task, 0)).body;
  const hasAnswer = task.reply !== undefined || task.result !== undefined;
  const change: StreamResponse = hasAnswer ? whole : { payload: { $case: 'statusUpdate', value: status } };
  return JSON.stringify(StreamResponse.toJSON(change));
}

function headersOf({ token, scheme, credentials, version }: PushConfig): Record<string, string> {
  return {
    'content-type': version === LEGACY_VERSION ? 'application/json' : 'application/a2a+json',
    'a2a-version': version,
    ...(token === '' ? {} : { 'x-a2a-notification-token': token }),
    ...(scheme === '' || credentials === '' ? {} : { authorization: `${scheme} ${credentials}` }),
  };
}

export type PushOptions = {
  store: Pick<TaskStore, 'outbox'>;
  web: Pick<WebAccess, 'get' | 'post' | 'isAllowed'>;
  clock: Clock;
  log: Logger;
};

const isTemporary = (status: number) => status >= 500 || status === 408 || status === 429;

/** Creates the delivery of notifications; it begins with `start`. */
export function createPush({ store, web, clock, log }: PushOptions): Outbox {
  /** Callers with the addresses that accept their notifications, in the order of their last use. */
  const consents = new Set<string>();

  /**
   * Asks a receiver whether it accepts notifications, before the first one: it must answer a GET with the random
   * `validationToken` of the query. Otherwise a caller could have any host addressed. A host that the operator allows by
   * name is not asked.
   *
   * @returns why it does not
   */
  const refusal = async (
    { config, caller }: Notification,
    signal: AbortSignal,
  ): Promise<Exclude<Delivery, { result: 'done' }> | undefined> => {
    const key = `${caller} ${config.url}`;
    if (web.isAllowed(config.url)) return undefined;
    if (!consents.has(key)) {
      const token = randomBytes(24).toString('base64url');
      const url = new URL(config.url);
      url.searchParams.set('validationToken', token);
      const { status, body } = await web.get({ url: url.href, redirects: 0, maxBytes: ANSWER_BYTES, signal });
      if (isTemporary(status)) return { result: 'later', why: `it answered ${status} to the challenge` };
      if (status !== 200 || body.toString('utf8').trim() !== token)
        return { result: 'drop', why: 'it did not answer the challenge with the validationToken' };
    }
    consents.delete(key);
    consents.add(key);
    if (consents.size > MOST_CONSENTS) consents.delete(consents.values().next().value!);
    return undefined;
  };

  const deliver = async (item: Notification, signal: AbortSignal): Promise<Delivery> => {
    const { id, config, body } = item;
    try {
      const refused = await refusal(item, signal);
      if (refused) return refused;
      const { status } = await web.post({
        url: config.url,
        headers: { ...headersOf(config), 'webhook-id': id },
        body,
        maxBytes: ANSWER_BYTES,
        signal,
      });
      if (status >= 200 && status <= 299) return { result: 'done' };
      const why = `it answered ${status}`;
      return { result: isTemporary(status) ? 'later' : 'drop', why };
    } catch (thrown) {
      if (!(thrown instanceof ReveilleError)) throw thrown;
      return { result: thrown.code === 'unavailable' ? 'later' : 'drop', why: thrown.message };
    }
  };
  return createOutbox<Notification>({
    ...{ store: store.outbox, deliver, clock, log },
    now: () => clock.now(),
    random: Math.random,
    concurrency: CONCURRENCY,
    shares: {
      of: ({ caller, config }) => [`caller ${caller}`, `host ${new URL(config.url).host}`],
      most: MOST_OF_SHARE,
    },
    ...{ firstPauseMs: FIRST_PAUSE_MS, longestPauseMs: LONGEST_PAUSE_MS, mostAttempts: () => MOST_ATTEMPTS },
    noun: 'a push notification',
    about: ({ config }) => ({ task_id: config.taskId, config_id: config.id }),
    lastRoundMs: 0,
  });
}
