/** The addresses of alarms that take webhooks or heartbeats, and their secrets. Pure but for randomness and hashing. */
import { createHmac, randomBytes } from 'node:crypto';
import { alarmIdSchema } from '../../wire/alarm.ts';
import { HOOKS_ROOT, type HookScheme, type HookView } from '../../wire/conditions.ts';
import { labelSchema, ownerOf } from '../../wire/did.ts';
import { isSubscription } from '../../wire/look.ts';
import type { Alarm } from './alarm.ts';
import { sourceSeen } from './events.ts';
import { encodeOptions, optionsOf } from './options.ts';

/** The alarm that an address names, and the secret in it. */
export type HookName = { readonly owner: string; readonly alarmId: string; readonly token: string | undefined };

/** The scheme of an alarm that takes webhooks; `undefined` for any other alarm. */
export function hookSchemeOf(alarm: Pick<Alarm, 'kind' | 'options'>): HookScheme | undefined {
  if (alarm.kind !== 'event') return undefined;
  const { event, after, expect } = optionsOf(alarm);
  if (event?.source === 'webhook') return event.verify ?? 'standard';
  if (isSubscription(event)) return 'standard';
  // A heartbeat is called by programs that sign nothing.
  return event === undefined && after === undefined && expect !== undefined ? 'path' : undefined;
}

/** Begins the id of a request that names none: nothing can repeat it. */
export const UNNAMED_EVENT = 'once:';
/** Begins the id of an event whose signature covers no time, and so never expires. */
export const TIMELESS_EVENT = 'github:';

/** A secret in the form of Standard Webhooks, which GitHub takes too. */
export const newHookSecret = (): string => `whsec_${randomBytes(24).toString('base64')}`;

/** A secret in a path is another one: the address must not sign, nor the signature's secret be an address. */
export const hookTokenOf = (secret: string): string =>
  createHmac('sha256', secret).update('hook path').digest('hex').slice(0, 32);

const givenSecretOf = (alarm: Pick<Alarm, 'options'>): string | undefined => {
  const { event } = optionsOf(alarm);
  return event?.source === 'webhook' ? event.secret : undefined;
};

/** The secret of an alarm's senders. */
export const hookSecretOf = (alarm: Pick<Alarm, 'options'>): string | undefined =>
  givenSecretOf(alarm) ?? optionsOf(alarm).hook_secret;

/** The path that senders post to; `undefined` for an alarm that takes no webhooks. */
export function hookPathOf(alarm: Pick<Alarm, 'id' | 'owner' | 'kind' | 'options'>): string | undefined {
  const scheme = hookSchemeOf(alarm);
  const secret = hookSecretOf(alarm);
  if (scheme === undefined || secret === undefined) return undefined;
  const name = `${alarm.id}.${Buffer.from(alarm.owner).toString('base64url')}`;
  return `${HOOKS_ROOT}${name}${scheme === 'path' ? `.${hookTokenOf(secret)}` : ''}`;
}

/**
 * The address of an alarm as its owner sees it; `undefined` for one that takes no webhooks, or only those of an MCP
 * server.
 */
export function hookViewOf(
  alarm: Pick<Alarm, 'id' | 'owner' | 'kind' | 'options'>,
  publicUrl = '',
): HookView | undefined {
  const path = isSubscription(optionsOf(alarm).event) ? undefined : hookPathOf(alarm);
  return path === undefined ? undefined : { address: `${publicUrl}${path}`, verify: hookSchemeOf(alarm)! };
}

/** The secret that senders sign with, if chronosd made it; a secret address and other sources need none. */
export function madeSecretOf(alarm: Pick<Alarm, 'kind' | 'options'>): string | undefined {
  const { event, hook_secret } = optionsOf(alarm);
  if (event?.source !== 'webhook' || event.secret !== undefined) return undefined;
  return hookSchemeOf(alarm) === 'path' ? undefined : hook_secret;
}

/**
 * The alarm with a secret, if it takes webhooks and has none.
 *
 * @param by who makes the request, in the form of `hook_by`
 */
export function withHookSecret(alarm: Alarm, secret: string, by: string): Alarm {
  if (hookSchemeOf(alarm) === undefined || optionsOf(alarm).hook_secret !== undefined) return alarm;
  return { ...alarm, options: encodeOptions({ ...optionsOf(alarm), hook_secret: secret, hook_by: by }) };
}

/** The alarm with another secret, in place of the one that its senders know. */
export function withOtherSecret(alarm: Alarm, secret: string): Alarm {
  if (hookSchemeOf(alarm) === undefined) return alarm;
  const { event, ...options } = optionsOf(alarm);
  const { secret: _, ...others } = event?.source === 'webhook' ? event : { secret: undefined };
  const kept = event?.source === 'webhook' ? { event: others as typeof event } : { event };
  return { ...alarm, options: encodeOptions({ ...options, ...kept, hook_secret: secret }) };
}

const subscriptionOf = (alarm: Pick<Alarm, 'kind' | 'options'>): string | undefined =>
  isSubscription(optionsOf(alarm).event) ? sourceSeen(alarm) : undefined;

/**
 * As {@link withHookSecret}, after an edit. Another scheme, another server of a subscription, and the end of a secret
 * that the owner gave, make a new secret: what an earlier sender or reader knows proves nothing any more.
 */
export function withSecretOfEdit(before: Alarm, alarm: Alarm, secret: string, by: string): Alarm {
  const proofOf = (one: Alarm) => [subscriptionOf(one), hookSchemeOf(one), givenSecretOf(one)].join();
  if (proofOf(before) === proofOf(alarm)) return withHookSecret(alarm, secret, by);
  const { hook_secret: _, ...rest } = optionsOf(alarm);
  return withHookSecret({ ...alarm, options: encodeOptions(rest) }, secret, by);
}

/** Reads the name in an address; `undefined` for one that {@link hookPathOf} cannot have made. */
export function readHookId(id: string): HookName | undefined {
  const [, alarmId = '', encoded = '', token] = /^([0-9a-f-]{36})\.([\w-]{1,200})(?:\.([0-9a-f]{32}))?$/.exec(id) ?? [];
  if (!alarmIdSchema.safeParse(alarmId).success) return undefined;
  const label = labelSchema.safeParse(Buffer.from(encoded, 'base64url').toString('utf8'));
  return label.success ? { owner: ownerOf(label.data), alarmId, token } : undefined;
}
