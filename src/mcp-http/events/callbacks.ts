/**
 * Posts to callback addresses of clients, signed by Standard Webhooks. Addresses must be public or allowed by the
 * operator. Redirects are not followed. A failure has a category and contains no part of the answer.
 */
import { randomBytes } from 'node:crypto';
import type { Clock } from '../../kit/clock/clock.ts';
import { codeOf, ExchangeTimeout } from '../../kit/http/exchange.ts';
import type { Resolve } from '../../kit/http/guarded-lookup.ts';
import { WebAccess } from '../../kit/http/web-access.ts';
import { sameSecret } from '../../kit/identity/secrets.ts';
import { webhookSigner } from '../../kit/identity/webhook-signature.ts';
import { ReveilleError } from '../../wire/errors.ts';
import { parseUntrustedJson } from '../../wire/json.ts';
import { type CallbackError, EventsError, SUBSCRIPTION_HEADER } from './protocol.ts';

const URL_MAX = 2048;
const ANSWER_BYTES = 4096;
const CHALLENGE_MS = 10_000;
const DELIVERY_MS = 20_000;

/** A request to a callback. */
export type Message = { readonly id: string; readonly body: string };
export type Address = { readonly url: string; readonly subscriptionId: string; readonly secrets: readonly string[] };

/** `detail` narrows the category. `isFinal`: a repetition of this message cannot succeed. */
export type Failure = { readonly error: CallbackError; readonly detail?: string; readonly isFinal?: boolean };

const TLS_CODE = /^(?:ERR_TLS|ERR_SSL|CERT_|DEPTH_ZERO|SELF_SIGNED|UNABLE_TO_(?:VERIFY|GET)|EPROTO|HOSTNAME_MISMATCH)/;

function categoryOf(thrown: unknown): Failure {
  if (thrown instanceof ReveilleError && thrown.code !== 'unavailable')
    return { error: 'connection_refused', detail: 'address_not_public' };
  const cause = thrown instanceof Error ? thrown.cause : undefined;
  if (cause instanceof ExchangeTimeout) return { error: 'timeout' };
  const code = codeOf(cause);
  if (TLS_CODE.test(code)) return { error: 'tls_error' };
  return { error: /TIMEOUT|TIMEDOUT/.test(code) ? 'timeout' : 'connection_refused' };
}

function failureOf(status: number): Failure | undefined {
  if (status >= 200 && status <= 299) return undefined;
  if (status >= 500) return { error: 'http_5xx' };
  if (status < 400) return { error: 'http_4xx', detail: 'redirect' };
  return { error: 'http_4xx', isFinal: status === 413 };
}

export class Callbacks {
  readonly #web: WebAccess;
  readonly #clock: Clock;

  /**
   * @param allow hosts of private networks, `host` or `host:port`, separated by commas
   * @throws ReveilleError `invalid_request` for an invalid `allow`
   */
  constructor({ allow, clock, resolve }: { allow: string | undefined; clock: Clock; resolve?: Resolve | undefined }) {
    this.#clock = clock;
    this.#web = new WebAccess({
      ...{ clock, allow, setting: 'ROUTER_MCP_CALLBACK_ALLOW' },
      ...(resolve && { resolve }),
    });
  }

  /**
   * The address in its normal form.
   *
   * @throws EventsError `InvalidParams` unless it is an https:// address without credentials and fragment;
   *   `CallbackEndpointError` for a numeric address that is not public
   */
  parse(text: string): string {
    const url = text.length > URL_MAX ? null : URL.parse(text);
    const isAllowed = url !== null && /^https?:$/.test(url.protocol) && this.#web.isAllowed(url.href);
    const isPlain = url !== null && url.username === '' && url.password === '' && url.hash === '';
    if (!url || !isPlain || !(url.protocol === 'https:' || isAllowed))
      throw new EventsError(
        'InvalidParams',
        'delivery.url must be an https:// address without user, password or fragment',
      );
    try {
      this.#web.refuse(url.href);
    } catch (thrown) {
      throw endpointError(categoryOf(thrown));
    }
    return url.href;
  }

  /**
   * Sends a challenge, which proves that the address accepts events of this client.
   *
   * @throws EventsError `CallbackEndpointError` with `data.reason`
   */
  async challenge(address: Address, signal: AbortSignal): Promise<void> {
    const challenge = randomBytes(24).toString('base64url');
    const body = JSON.stringify({ type: 'verification', challenge });
    const message = { id: `msg_verification_${randomBytes(12).toString('hex')}`, body };
    const answer = await this.#send(address, message, CHALLENGE_MS, signal);
    if ('error' in answer) throw endpointError(answer);
    const failure = failureOf(answer.status);
    if (failure?.detail === 'redirect') throw endpointError({ error: 'challenge_failed', detail: 'redirect' });
    if (failure) throw endpointError(failure);
    // A page that repeats any request has not agreed to anything.
    const isReflection = answer.body.toString('utf8').trim() === body;
    if (isReflection || !sameSecret(echoOf(answer.body), challenge)) throw endpointError({ error: 'challenge_failed' });
  }

  /** @returns `undefined` for an accepted message, else the failure */
  async post(address: Address, message: Message, signal: AbortSignal): Promise<Failure | undefined> {
    const answer = await this.#send(address, message, DELIVERY_MS, signal);
    return 'error' in answer ? answer : failureOf(answer.status);
  }

  close(): Promise<void> {
    return this.#web.close();
  }

  async #send({ url, subscriptionId, secrets }: Address, { id, body }: Message, limitMs: number, signal: AbortSignal) {
    const timestampSeconds = this.#clock.now() / 1000;
    const signed = secrets.map((secret) => webhookSigner(secret)({ id, timestampSeconds, body }));
    const headers = {
      'content-type': 'application/json',
      ...signed[0]!,
      'webhook-signature': signed.map((one) => one['webhook-signature']).join(' '),
      [SUBSCRIPTION_HEADER]: subscriptionId,
    };
    try {
      return await this.#web.post({ url, headers, body, maxBytes: ANSWER_BYTES, signal, limitMs });
    } catch (thrown) {
      return categoryOf(thrown);
    }
  }
}

function endpointError({ error: reason, detail }: Failure): EventsError {
  const text = 'delivery.url could not be verified; see data.reason';
  return new EventsError('CallbackEndpointError', text, { reason, ...(detail !== undefined && { detail }) });
}

function echoOf(body: Buffer): string {
  try {
    const value = parseUntrustedJson(body.toString('utf8'), 'the answer') as { challenge?: unknown } | null;
    return typeof value?.challenge === 'string' ? value.challenge : '';
  } catch {
    return '';
  }
}
