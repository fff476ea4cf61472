/**
 * Calls to the API of a machine's provider. They are bounded, follow no redirects, and quote the provider's error text.
 */
import type { Agent, Dispatcher } from 'undici';
import type { Clock } from '../../kit/clock/clock.ts';
import { type ExchangeRequest, exchange, joinUrl, reasonOf } from '../../kit/http/exchange.ts';
import { ReveilleError } from '../../wire/errors.ts';
import { parseUntrustedJson } from '../../wire/json.ts';
import { lastOutput } from './redaction.ts';

const MAX_BYTES = 2 * 1024 * 1024;
/** The default time limit of a call, milliseconds. */
const CALL_MS = 10_000;
const LONGEST_RETRY_AFTER_MS = 60_000;

/**
 * A failure unrelated to the machine: the API is unreachable, overloaded or garbled, or temporarily cannot answer. The
 * call may be repeated.
 */
export class TransientProviderError extends ReveilleError {
  /** The retry time in milliseconds, if the API sent one. */
  readonly retryAfterMs: number;
  /** Whether the API works and only needs more time: then attempts are not counted. */
  readonly patient: boolean;

  constructor(message: string, { retryAfterMs = 0, patient = false, cause }: TransientProviderErrorOptions = {}) {
    super('unavailable', message, { cause });
    this.retryAfterMs = retryAfterMs;
    this.patient = patient;
  }
}

type TransientProviderErrorOptions = { retryAfterMs?: number; patient?: boolean; cause?: unknown };

type Passing = { patient?: boolean; atLeastMs?: number; secrets?: readonly string[] };

export type ApiCall = {
  method: ExchangeRequest['method'];
  path: string;
  signal: AbortSignal;
  /** By default 10 seconds. */
  limitMs?: number;
  headers?: Record<string, string>;
};

export type ApiAnswer = {
  status: number;
  headers: Readonly<Record<string, string | string[] | undefined>>;
  body: Buffer;
};

type ProviderApiOptions = {
  dispatcher: Dispatcher;
  /** The base address. */
  url: string;
  /** Its name in a sentence, such as `the Docker engine at unix:///var/run/docker.sock`. */
  name: string;
  headers: Readonly<Record<string, string>>;
  clock: Clock;
  /** Secrets that must not be repeated. */
  secrets: readonly string[];
};

const CONNECTIONS = 64;

/** Opens connections to an API: through a Unix socket, or to addresses that a router may call. */
export type OpenAgent = (socketPath?: string) => Agent;

/** Loads the HTTP client on demand, because commands load this module with the descriptors of providers. */
export async function loadAgents(): Promise<OpenAgent> {
  const { Agent } = await import('../../kit/http/dispatchers.ts');
  const { guardedConnector } = await import('../../kit/http/guarded-client.ts');
  return (socketPath) =>
    new Agent({
      connections: CONNECTIONS,
      pipelining: 1,
      allowH2: false,
      connect: socketPath === undefined ? guardedConnector() : { socketPath },
    });
}

function jsonOrUndefined(body: Buffer): unknown {
  try {
    return parseUntrustedJson(body.toString('utf8'));
  } catch {
    return undefined;
  }
}

/** Seconds, or an HTTP date (RFC 9110 §10.2.3); 0 for neither. */
function retryAfterMs(header: string | string[] | undefined, now: number): number {
  const text = String(Array.isArray(header) ? header[0] : (header ?? '')).trim();
  const ms = /^\d{1,9}(\.\d+)?$/.test(text) ? Number(text) * 1000 : Date.parse(text) - now;
  return Number.isFinite(ms) ? Math.min(Math.max(ms, 0), LONGEST_RETRY_AFTER_MS) : 0;
}

export class ProviderApi {
  readonly #options: ProviderApiOptions;

  constructor(options: ProviderApiOptions) {
    this.#options = options;
  }

  get name(): string {
    return this.#options.name;
  }

  /**
   * Makes a call and returns the answer, whatever its status.
   *
   * @throws the signal's reason; TransientProviderError when there was no answer in time
   */
  async call({ method, path, signal, limitMs = CALL_MS, headers = {} }: ApiCall): Promise<ApiAnswer> {
    const { dispatcher, url, clock } = this.#options;
    const outcome = await exchange(dispatcher, {
      method,
      url: joinUrl(url, path),
      headers: { accept: 'application/json', ...this.#options.headers, ...headers },
      maxBytes: MAX_BYTES,
      signal,
      limit: { clock, ms: limitMs },
    });
    signal.throwIfAborted();
    if (outcome.result === 'answered') return outcome;
    throw new TransientProviderError(`${this.name} cannot be reached: ${this.scrub(reasonOf(outcome.error))}`, {
      cause: outcome.error,
    });
  }

  /** The text of an answer: its `message` or `error`, or its body. At most 400 characters, without secrets. */
  textOf({ status, body }: ApiAnswer, secrets: readonly string[] = []): string {
    const json = jsonOrUndefined(body);
    const members: Record<string, unknown> = typeof json === 'object' && json !== null ? { ...json } : {};
    const message = [members.message, members.error].find((member) => typeof member === 'string' && member !== '');
    const text = this.scrub(typeof message === 'string' ? message : body.toString('utf8'), secrets);
    return text === '' ? `it answered ${status} without a message` : `it answered ${status}: ${text}`;
  }

  /** Text in one line, without control characters and the secrets of the API and `secrets`. */
  scrub(text: string, secrets: readonly string[] = []): string {
    return lastOutput(text, [...this.#options.secrets, ...secrets]);
  }

  /** The JSON of an answer. @throws TransientProviderError when it is invalid */
  jsonOf(answer: ApiAnswer): unknown {
    const json = jsonOrUndefined(answer.body);
    if (json !== undefined) return json;
    throw new TransientProviderError(`${this.name} answered something that is not JSON; ${this.textOf(answer)}`);
  }

  /**
   * The temporary failure that an answer means.
   *
   * @param atLeastMs the shortest time before a retry, whatever the answer says
   */
  transient(
    answer: ApiAnswer,
    { patient = answer.status === 429, atLeastMs = 0, secrets = [] }: Passing = {},
  ): TransientProviderError {
    const wait = Math.max(retryAfterMs(answer.headers['retry-after'], this.#options.clock.now()), atLeastMs);
    const message = `${this.name} cannot do it now: ${this.textOf(answer, secrets)}`;
    return new TransientProviderError(message, { retryAfterMs: wait, patient });
  }

  /** The permanent failure that an answer means. */
  refusal(what: string, answer: ApiAnswer, secrets: readonly string[] = []): ReveilleError {
    return new ReveilleError('unavailable', `${what}: ${this.name} refused; ${this.textOf(answer, secrets)}`);
  }
}
