/** One request of a session: the input of a screen, and its possible answers. */
import type { Clock } from '../kit/clock/clock.ts';
import { ReveilleError } from '../wire/errors.ts';
import type { ConsoleBackend, Part } from './backend.ts';
import type { Page } from './page.ts';
import type { Session } from './sessions.ts';
import type { SharedReads } from './shared-reads.ts';
import type { LocalContext } from './times.ts';

export type RequestContext = {
  readonly session: Session;
  /** The origin of the request, such as `http://localhost:8087`. */
  readonly origin: string;
  readonly backend: ConsoleBackend;
  readonly here: LocalContext;
  readonly clock: Clock;
  /** Below the base, such as `alarms/0198…`. */
  readonly path: string;
  readonly query: URLSearchParams;
  /** The parameters of the path. */
  readonly params: Readonly<Record<string, string>>;
  /** The body of a POST; its CSRF token was checked. */
  readonly form: URLSearchParams;
  readonly signal: AbortSignal;
  /** Shares reads among requests of the same moment. */
  readonly reads: SharedReads;
};

/** A redirect to a path below the base. */
export type Redirect = { readonly to: string };
export type Download = { readonly download: { readonly name: string; readonly text: string } };
/** The answer to a request of the console's script. */
export type JsonAnswer = { readonly json: object };
export type Screen = (context: RequestContext) => Promise<Page | Redirect | Download | JsonAnswer>;

/** @throws ReveilleError `unavailable` with the reason and the remedy */
export function there<T>(part: Part<T>): T {
  if ('there' in part) return part.there;
  throw new ReveilleError('unavailable', part.missing, { retryable: false });
}

/** A form field without surrounding white space; `undefined` if it is empty. */
export function field({ form }: Pick<RequestContext, 'form'>, name: string): string | undefined {
  const text = form.get(name)?.trim();
  return text === '' ? undefined : text;
}

/** A path with changed query members; `undefined` removes a member. */
export function withQuery(path: string, query: URLSearchParams, change: Record<string, string | undefined>): string {
  const changed = new URLSearchParams(query);
  for (const [name, value] of Object.entries(change)) {
    if (value === undefined || value === '') changed.delete(name);
    else changed.set(name, value);
  }
  const text = changed.toString();
  return text === '' ? path : `${path}?${text}`;
}
