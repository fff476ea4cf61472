/** One call of a target's HTTP interface: JSON request and answer, no redirects, bounded in time and size. */
import type { Dispatcher } from 'undici';
import { exchange, reasonOf, retryAfterOf } from '../kit/http/exchange.ts';
import { parseUntrustedJson } from '../wire/json.ts';
import { oneLine } from './prompt.ts';
import { objectOf } from './terminal/readers.ts';

type CallRequest = {
  method: 'GET' | 'POST';
  url: URL;
  headers: Record<string, string>;
  /** JSON text. */
  body?: string;
  signal: AbortSignal;
  /** Secrets that errors must not repeat. */
  secrets: readonly string[];
  /** Of a longer answer only the beginning is read; by default 32 MiB. */
  maxBytes?: number;
};

export type Answered = {
  result: 'answered';
  status: number;
  /** The body, if it is a complete JSON object; a list is in `list`. */
  json: Record<string, unknown> | undefined;
  list: unknown[] | undefined;
  /** The body, up to the limit. */
  text: string;
  retryAfterSeconds: number | undefined;
  /** The status with the beginning of the body, for errors. */
  summary: string;
};

export type CallResult =
  | Answered
  /** No byte of the request was sent. */
  | { result: 'unsent'; why: string; error: Error }
  /** It may have arrived. */
  | { result: 'unknown'; why: string };

const MAX_BYTES = 32 * 1024 * 1024;

function parsed(text: string): Pick<Answered, 'json' | 'list'> {
  if (!text.trimStart().startsWith('[')) return { json: objectOf(text), list: undefined };
  try {
    return { json: undefined, list: parseUntrustedJson(text) as unknown[] };
  } catch {
    return { json: undefined, list: undefined };
  }
}

/** Never rejects. */
export async function call(dispatcher: Dispatcher, request: CallRequest): Promise<CallResult> {
  const { method, url, headers, body, signal, secrets, maxBytes = MAX_BYTES } = request;
  const outcome = await exchange(dispatcher, {
    ...{ method, url, signal },
    headers: {
      accept: 'application/json',
      ...(body === undefined ? {} : { 'content-type': 'application/json' }),
      ...headers,
    },
    ...(body === undefined ? {} : { body }),
    maxBytes,
  });
  if (outcome.result === 'unsent') return { result: 'unsent', why: reasonOf(outcome.error), error: outcome.error };
  if (outcome.result === 'unknown') return { result: 'unknown', why: reasonOf(outcome.error) };
  const { status } = outcome;
  const text = outcome.body.toString('utf8');
  const beginning = oneLine(text.slice(0, 4096), secrets);
  const redirected = status >= 300 && status <= 399 ? ' (redirects are not followed)' : '';
  return {
    result: 'answered',
    status,
    text,
    ...(outcome.truncated ? { json: undefined, list: undefined } : parsed(text)),
    retryAfterSeconds: retryAfterOf(outcome.headers['retry-after']),
    summary: `${status}${redirected}${beginning === '' ? '' : `: ${beginning}`}`,
  };
}
