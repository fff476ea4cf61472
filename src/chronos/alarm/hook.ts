/**
 * Webhooks that wake an alarm: the address, the verification of the sender, and the event in a request. Pure but for
 * hashing.
 */
import { createHash, createHmac, randomBytes, timingSafeEqual } from 'node:crypto';
import { verifyWebhook, WEBHOOK_HEADERS } from '../../kit/identity/webhook-signature.ts';
import { hasValue } from '../../kit/json/pointer.ts';
import { alarmIdSchema } from '../../wire/alarm.ts';
import type { AlarmEvent, HookScheme } from '../../wire/conditions.ts';
import { labelSchema, ownerOf } from '../../wire/did.ts';
import { ReveilleError } from '../../wire/errors.ts';
import { HOOKS_ROOT, type HookView } from '../../wire/hook.ts';
import { refuseDeepNesting } from '../../wire/json.ts';
import type { Alarm } from './alarm.ts';
import { encodeOptions, optionsOf } from './options.ts';

/** The alarm that an address names, and the secret in it. */
export type HookName = { readonly owner: string; readonly alarmId: string; readonly token: string | undefined };

/** The scheme of an alarm that takes webhooks; `undefined` for any other alarm. */
export function hookSchemeOf(alarm: Pick<Alarm, 'kind' | 'options'>): HookScheme | undefined {
  if (alarm.kind !== 'event') return undefined;
  const { event, after, expect } = optionsOf(alarm);
  if (event?.source === 'webhook') return event.verify ?? 'standard';
  // A heartbeat is called by programs that sign nothing.
  return event === undefined && after === undefined && expect !== undefined ? 'path' : undefined;
}

/** A secret in the form of Standard Webhooks, which GitHub takes too. */
export const newHookSecret = (): string => `whsec_${randomBytes(24).toString('base64')}`;

/** A secret in a path is another one: the address must not sign, nor the signature's secret be an address. */
const tokenOf = (secret: string): string => createHmac('sha256', secret).update('hook path').digest('hex').slice(0, 32);

const secretOf = (alarm: Pick<Alarm, 'options'>): string | undefined => {
  const { event, hook_secret } = optionsOf(alarm);
  return (event?.source === 'webhook' ? event.secret : undefined) ?? hook_secret;
};

/** The path that senders post to; `undefined` for an alarm that takes no webhooks. */
export function hookPathOf(alarm: Pick<Alarm, 'id' | 'owner' | 'kind' | 'options'>): string | undefined {
  const scheme = hookSchemeOf(alarm);
  const secret = secretOf(alarm);
  if (scheme === undefined || secret === undefined) return undefined;
  const name = `${alarm.id}.${Buffer.from(alarm.owner).toString('base64url')}`;
  return `${HOOKS_ROOT}${name}${scheme === 'path' ? `.${tokenOf(secret)}` : ''}`;
}

/** The address of an alarm as its owner sees it; `undefined` for one that takes no webhooks. */
export function hookViewOf(
  alarm: Pick<Alarm, 'id' | 'owner' | 'kind' | 'options'>,
  publicUrl = '',
): HookView | undefined {
  const path = hookPathOf(alarm);
  return path === undefined ? undefined : { address: `${publicUrl}${path}`, verify: hookSchemeOf(alarm)! };
}

/** The secret that senders sign with, if chronosd made it; a secret address needs none. */
export function madeSecretOf(alarm: Pick<Alarm, 'kind' | 'options'>): string | undefined {
  const { event, hook_secret } = optionsOf(alarm);
  const isGiven = event?.source === 'webhook' && event.secret !== undefined;
  return isGiven || hookSchemeOf(alarm) === 'path' ? undefined : hook_secret;
}

/** The alarm with a secret, if it takes webhooks and has none. */
export function withHookSecret(alarm: Alarm, secret: string): Alarm {
  if (hookSchemeOf(alarm) === undefined || optionsOf(alarm).hook_secret !== undefined) return alarm;
  return { ...alarm, options: encodeOptions({ ...optionsOf(alarm), hook_secret: secret }) };
}

/** Reads the name in an address; `undefined` for one that {@link hookPathOf} cannot have made. */
export function readHookId(id: string): HookName | undefined {
  const [, alarmId = '', encoded = '', token] = /^([0-9a-f-]{36})\.([\w-]{1,200})(?:\.([0-9a-f]{32}))?$/.exec(id) ?? [];
  if (!alarmIdSchema.safeParse(alarmId).success) return undefined;
  const label = labelSchema.safeParse(Buffer.from(encoded, 'base64url').toString('utf8'));
  return label.success ? { owner: ownerOf(label.data), alarmId, token } : undefined;
}

/** A request at an address. Names of headers are in lower case. */
export type HookRequest = {
  readonly headers: Readonly<Record<string, string | undefined>>;
  readonly body: Buffer;
  readonly nowMs: number;
};

const GITHUB = { signature: 'x-hub-signature-256', event: 'x-github-event', delivery: 'x-github-delivery' } as const;

const isEqual = (one: string, other: string) =>
  one.length === other.length && timingSafeEqual(Buffer.from(one), Buffer.from(other));

/** Whether the request comes from someone who knows the alarm's secret, now. */
export function isVerified(
  alarm: Pick<Alarm, 'kind' | 'options'>,
  { token }: HookName,
  { headers, body, nowMs }: HookRequest,
): boolean {
  const secret = secretOf(alarm);
  if (secret === undefined) return false;
  switch (hookSchemeOf(alarm)) {
    case 'standard':
      return verifyWebhook({ headers, body, secrets: [secret], nowMs }).ok;
    case 'github': {
      const mac = createHmac('sha256', secret).update(body).digest('hex');
      return isEqual(headers[GITHUB.signature] ?? '', `sha256=${mac}`);
    }
    case 'path':
      return isEqual(token ?? '', tokenOf(secret));
    case undefined:
      return false;
  }
}

const digestOf = (text: string) => createHash('sha256').update(text).digest('hex').slice(0, 40);

/** Ids from outside are hashed: they may have any length and any characters. */
function idOf(scheme: HookScheme, { headers }: HookRequest): string {
  // GitHub's signature covers the body alone, so only the signature identifies what was signed.
  const given =
    scheme === 'standard'
      ? headers[WEBHOOK_HEADERS.id]
      : scheme === 'github'
        ? headers[GITHUB.signature]
        : (headers['idempotency-key'] ?? headers[WEBHOOK_HEADERS.id] ?? headers[GITHUB.delivery]);
  return given === undefined || given === ''
    ? `once:${randomBytes(16).toString('hex')}`
    : `${scheme}:${digestOf(given)}`;
}

const decoder = new TextDecoder('utf-8', { fatal: false, ignoreBOM: true });

/** Deeper JSON is taken as text: a wake with it would exceed the limit of every later reader. */
const DEEPEST_BODY = 64;

/** The body as JSON source text: itself if it is JSON, otherwise as one text. */
function jsonOf(body: Buffer): string {
  const text = decoder.decode(body);
  try {
    refuseDeepNesting(text, 'the body', DEEPEST_BODY);
    JSON.parse(text);
    return text;
  } catch (thrown) {
    if (thrown instanceof SyntaxError || thrown instanceof ReveilleError) return JSON.stringify(text);
    throw thrown;
  }
}

/**
 * The event in a verified request. GitHub's says in headers what it is about, so its data is
 * `{"event", "delivery", "body"}`; other data is the body.
 *
 * @returns `undefined` when the alarm's filter excludes it
 */
export function eventOf(alarm: Pick<Alarm, 'kind' | 'options'>, request: HookRequest): AlarmEvent | undefined {
  const scheme = hookSchemeOf(alarm)!;
  const body = jsonOf(request.body);
  const named = JSON.stringify({ event: request.headers[GITHUB.event], delivery: request.headers[GITHUB.delivery] });
  const data = scheme === 'github' ? `${named === '{}' ? '{' : `${named.slice(0, -1)},`}"body":${body}}` : body;
  const { event } = optionsOf(alarm);
  if (event?.filter !== undefined && !hasValue(data, event.filter)) return undefined;
  return { id: idOf(scheme, request), receivedAt: request.nowMs, data };
}
