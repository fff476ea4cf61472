/** Errors of a model endpoint, in its own words without the key. Pure. */
import { type ErrorCode, ReveilleError } from '../../wire/errors.ts';

export type FailedCall = {
  readonly message: string;
  readonly statusCode?: number | undefined;
  readonly responseHeaders?: Readonly<Record<string, string>> | undefined;
};

const SHOWN_CHARACTERS = 500;
const REDACTED = '[redacted]';

/** Endpoints may quote a key that they refuse. */
function withoutKey(text: string, apiKey: string | undefined): string {
  if (apiKey === undefined) return text;
  return text.replaceAll(apiKey, REDACTED).replaceAll(encodeURIComponent(apiKey), REDACTED);
}

function shown(text: string, apiKey: string | undefined): string {
  const safe = withoutKey(text, apiKey).replace(/\s+/g, ' ').trim().toWellFormed();
  return safe.length > SHOWN_CHARACTERS ? `${safe.slice(0, SHOWN_CHARACTERS).toWellFormed()}…` : safe;
}

const CODE_OF_STATUS: Readonly<Record<number, ErrorCode>> = {
  401: 'unauthorized',
  403: 'forbidden',
  404: 'not_found',
  408: 'unavailable',
  409: 'unavailable',
  429: 'rate_limited',
};

function codeOf(status: number): ErrorCode {
  const known = CODE_OF_STATUS[status];
  if (known) return known;
  return status >= 500 ? 'unavailable' : 'invalid_request';
}

/** Remedy for an error that waiting does not resolve. */
function remedyFor(code: ErrorCode, prefix: string): string {
  if (code === 'unauthorized') return `; check ${prefix}_MODEL_API_KEY`;
  if (code === 'forbidden') return `; check ${prefix}_MODEL_API_KEY and its permissions`;
  if (code === 'not_found') return `; check ${prefix}_MODEL and ${prefix}_MODEL_BASE_URL`;
  return '';
}

/**
 * The wait that a `Retry-After` header requests (RFC 9110 §10.2.3: seconds or a date).
 *
 * @param now wall clock, milliseconds since the epoch
 * @returns seconds, or `undefined` if there is no valid value
 */
export function retryAfterSeconds(header: string | undefined, now: number): number | undefined {
  if (header === undefined) return undefined;
  if (/^\d{1,9}(\.\d{1,3})?$/.test(header.trim())) return Number(header);
  const at = Date.parse(header);
  return Number.isNaN(at) ? undefined : Math.max(0, (at - now) / 1000);
}

export type EndpointContext = {
  /** Wall clock, milliseconds since the epoch. */
  readonly now: number;
  readonly apiKey: string | undefined;
  /** Prefix of the variables for the endpoint's address and key: `NEO`, `EXECUTOR`. */
  readonly prefix: string;
};

/** The error of a call that the endpoint refused, or that did not reach it. */
export function endpointError(call: FailedCall, { now, apiKey, prefix }: EndpointContext): ReveilleError {
  const text = shown(call.message, apiKey);
  if (call.statusCode === undefined) {
    return new ReveilleError('unavailable', `the model endpoint cannot be reached: ${text}`);
  }
  const code = codeOf(call.statusCode);
  const wait = retryAfterSeconds(call.responseHeaders?.['retry-after'], now);
  const detail = text === '' ? '' : `: ${text}`;
  return new ReveilleError(code, `the model endpoint answered ${call.statusCode}${detail}${remedyFor(code, prefix)}`, {
    ...(wait === undefined ? {} : { retryAfterSeconds: wait }),
  });
}

/** The error of an answer that began and then failed. */
export function streamError(why: string, apiKey: string | undefined): ReveilleError {
  return new ReveilleError('unavailable', `the answer of the model endpoint failed midway: ${shown(why, apiKey)}`);
}
