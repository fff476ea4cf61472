/**
 * Standard Webhooks, symmetric signatures `v1` (https://github.com/standard-webhooks/standard-webhooks, spec v1.0.0).
 */
import { createHmac, createSecretKey, type Hmac, type KeyObject, timingSafeEqual } from 'node:crypto';
import { ReveilleError } from '../../wire/errors.ts';

/**
 * The key of turn reports, derived from the machine's token. Its holder can verify turn reports without the token, and
 * cannot act as the router towards the machine's daemon.
 *
 * @returns 64 hex digits; the HMAC key of the signatures is this text
 */
export function turnReportKey(machineToken: string): string {
  return createHmac('sha256', machineToken).update('reveille receipts').digest('hex');
}

/** Allowed difference between the sender's clock and this one, in both directions. */
const TOLERANCE_SECONDS = 300;
/** Maximum of checked signatures; a rotation of secrets needs only a few. */
const MAX_SIGNATURES = 16;
const ENCODED_SECRET = 'whsec_';

export const WEBHOOK_HEADERS = {
  id: 'webhook-id',
  timestamp: 'webhook-timestamp',
  signature: 'webhook-signature',
} as const;

export type SignedWebhookHeaders = {
  'webhook-id': string;
  'webhook-timestamp': string;
  'webhook-signature': string;
};

/** Why a webhook was refused; for the log only, callers get the same sentence for each. */
export type WebhookRefusal = 'missing_header' | 'bad_id' | 'bad_timestamp' | 'too_old' | 'too_new' | 'no_match';
export type WebhookVerdict = { ok: true } | { ok: false; reason: WebhookRefusal };

/**
 * The HMAC key of a secret: the part after `whsec_` is base64, any other text is used as UTF-8 bytes. A key object
 * makes `createHmac` four times as fast as bytes.
 */
function keyOf(secret: string): KeyObject {
  const key = secret.startsWith(ENCODED_SECRET)
    ? Buffer.from(secret.slice(ENCODED_SECRET.length), 'base64')
    : Buffer.from(secret);
  if (key.length === 0) throw new ReveilleError('internal', 'a webhook secret must not be empty', { retryable: false });
  return createSecretKey(key);
}

function macOf(id: string, timestamp: string, body: string | Uint8Array, key: KeyObject): Hmac {
  const mac = createHmac('sha256', key);
  const start = `${id}.${timestamp}.`;
  return typeof body === 'string' ? mac.update(start + body) : mac.update(start).update(body);
}

export type WebhookToSign = {
  /** Dots are sent, and signed, as `%2E`. */
  id: string;
  /** Time of this attempt, seconds since the epoch; a fraction is dropped. */
  timestampSeconds: number;
  /** The exact body, as bytes or text. */
  body: string | Uint8Array;
};

/** Signs webhooks with one secret. Create it once, because it prepares the key. */
export function webhookSigner(secret: string): (webhook: WebhookToSign) => SignedWebhookHeaders {
  const key = keyOf(secret);
  return ({ id: given, timestampSeconds, body }) => {
    const id = given.replaceAll('.', '%2E');
    const timestamp = String(Math.floor(timestampSeconds));
    return {
      'webhook-id': id,
      'webhook-timestamp': timestamp,
      'webhook-signature': `v1,${macOf(id, timestamp, body, key).digest('base64')}`,
    };
  };
}

/**
 * Verifies a webhook: one of its signatures must match one of the secrets, and its time must be close to `nowMs`.
 *
 * @param headers by lower-case name
 * @param body the exact bytes that arrived
 */
export function verifyWebhook(webhook: {
  headers: Readonly<Record<string, string | undefined>>;
  body: string | Uint8Array;
  secrets: readonly string[];
  nowMs: number;
  toleranceSeconds?: number;
}): WebhookVerdict {
  const id = webhook.headers[WEBHOOK_HEADERS.id];
  const timestamp = webhook.headers[WEBHOOK_HEADERS.timestamp];
  const signature = webhook.headers[WEBHOOK_HEADERS.signature];
  if (!id || !timestamp || !signature) return { ok: false, reason: 'missing_header' };
  // The signed text separates its parts with dots: with one in the id, it would also be that of another id and body.
  if (id.includes('.')) return { ok: false, reason: 'bad_id' };
  if (!/^\d{1,12}$/.test(timestamp)) return { ok: false, reason: 'bad_timestamp' };
  const tolerance = webhook.toleranceSeconds ?? TOLERANCE_SECONDS;
  const age = Math.floor(webhook.nowMs / 1000) - Number(timestamp);
  if (age > tolerance) return { ok: false, reason: 'too_old' };
  if (age < -tolerance) return { ok: false, reason: 'too_new' };
  const expected = webhook.secrets.map((secret) => macOf(id, timestamp, webhook.body, keyOf(secret)).digest());
  const given = signature
    .split(' ', MAX_SIGNATURES)
    .filter((entry) => entry.startsWith('v1,'))
    .map((entry) => Buffer.from(entry.slice(3), 'base64'));
  // Every pair is compared, so that timing does not reveal the matching one.
  let matches = 0;
  for (const mac of expected) {
    for (const candidate of given) {
      if (candidate.length === mac.length && timingSafeEqual(candidate, mac)) matches++;
    }
  }
  return matches > 0 ? { ok: true } : { ok: false, reason: 'no_match' };
}
