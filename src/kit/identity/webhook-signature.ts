/**
 * Standard Webhooks, symmetric signatures `v1` (https://github.com/standard-webhooks/standard-webhooks, spec v1.0.0).
 */
import { createHmac, createSecretKey, type KeyObject, timingSafeEqual } from 'node:crypto';
import { ReveilleError } from '../../wire/errors.ts';

/**
 * Derives it from the machine's token: whoever checks receipts can do so without knowing the token, and cannot pass for
 * the router towards the machine's daemon.
 *
 * @returns 64 hex digits; the HMAC key of the signatures is this text
 */
export function receiptKey(machineToken: string): string {
  return createHmac('sha256', machineToken).update('reveille receipts').digest('hex');
}

/** How far the sender's clock may be from ours, either way. */
const TOLERANCE_SECONDS = 300;
/** More signatures than a rotation of secrets can explain are not looked at. */
const MAX_SIGNATURES = 16;
const ENCODED_SECRET = 'whsec_';

export const WEBHOOK_HEADERS = {
  id: 'webhook-id',
  timestamp: 'webhook-timestamp',
  signature: 'webhook-signature',
} as const;

/** The three headers, ready to be sent. */
export type SignedWebhookHeaders = {
  'webhook-id': string;
  'webhook-timestamp': string;
  'webhook-signature': string;
};

/** Why a webhook was not believed; for the log, callers get one sentence whatever it was. */
export type WebhookRefusal = 'missing_header' | 'bad_timestamp' | 'too_old' | 'too_new' | 'no_match';
export type WebhookVerdict = { ok: true } | { ok: false; reason: WebhookRefusal };

/**
 * The HMAC key of a secret: what follows `whsec_` is base64, any other text stands for its own UTF-8 bytes. A key
 * object, because `createHmac` takes four times as long over bare bytes.
 */
function keyOf(secret: string): KeyObject {
  const key = secret.startsWith(ENCODED_SECRET)
    ? Buffer.from(secret.slice(ENCODED_SECRET.length), 'base64')
    : Buffer.from(secret);
  if (key.length === 0) throw new ReveilleError('internal', 'a webhook secret must not be empty', { retryable: false });
  return createSecretKey(key);
}

function macOf(id: string, timestamp: string, body: string | Uint8Array, key: KeyObject): Buffer {
  return createHmac('sha256', key).update(`${id}.${timestamp}.`).update(body).digest();
}

export type WebhookToSign = {
  id: string;
  /** When this attempt is sent, seconds since the epoch; a fraction is dropped. */
  timestampSeconds: number;
  /** The very bytes, or their text, that will be sent. */
  body: string | Uint8Array;
};

/** What signs webhooks with one secret; made once, it does not prepare the key for each of them. */
export function webhookSigner(secret: string): (webhook: WebhookToSign) => SignedWebhookHeaders {
  const key = keyOf(secret);
  return ({ id, timestampSeconds, body }) => {
    const timestamp = String(Math.floor(timestampSeconds));
    const mac = macOf(id, timestamp, body, key);
    return {
      'webhook-id': id,
      'webhook-timestamp': timestamp,
      'webhook-signature': `v1,${mac.toString('base64')}`,
    };
  };
}

/**
 * Checks a webhook: one of its signatures must have been made with one of the secrets, and its time must be close to
 * `nowMs`.
 *
 * @param headers by lower-case name
 * @param body the very bytes that arrived
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
  if (!/^\d{1,12}$/.test(timestamp)) return { ok: false, reason: 'bad_timestamp' };
  const tolerance = webhook.toleranceSeconds ?? TOLERANCE_SECONDS;
  const age = Math.floor(webhook.nowMs / 1000) - Number(timestamp);
  if (age > tolerance) return { ok: false, reason: 'too_old' };
  if (age < -tolerance) return { ok: false, reason: 'too_new' };
  const expected = webhook.secrets.map((secret) => macOf(id, timestamp, webhook.body, keyOf(secret)));
  const given = signature
    .split(' ', MAX_SIGNATURES)
    .filter((entry) => entry.startsWith('v1,'))
    .map((entry) => Buffer.from(entry.slice(3), 'base64'));
  // Every pair is compared, so that the time taken does not tell which one matched.
  let matches = 0;
  for (const mac of expected) {
    for (const candidate of given) {
      if (candidate.length === mac.length && timingSafeEqual(candidate, mac)) matches++;
    }
  }
  return matches > 0 ? { ok: true } : { ok: false, reason: 'no_match' };
}
