/** One request of somebody who is in: what a screen gets, and what it may answer. */
import type { Clock } from '../kit/clock/clock.ts';
import { ReveilleError } from '../wire/errors.ts';
import type { Desk, Part } from './desk.ts';
import type { Page } from './page.ts';
import type { Session } from './sessions.ts';
import type { SharedReads } from './shared-reads.ts';
import type { Here } from './times.ts';

export type RequestContext = {
  readonly session: Session;
  /** The address that the browser has come by, as `http://localhost:8087`. */
  readonly origin: string;
  readonly backend: Desk;
  readonly here: Here;
  readonly clock: Clock;
  /** Below the base, as `alarms/0198…`. */
  readonly path: string;
  readonly query: URLSearchParams;
  /** What varies in the path. */
  readonly params: Readonly<Record<string, string>>;
  /** Of a write; its CSRF token was checked. */
  readonly form: URLSearchParams;
  readonly signal: AbortSignal;
  /** Shares what pages of the same moment read. */
  readonly reads: SharedReads;
};

/** Where a write leads to, below the base. */
export type Redirect = { readonly to: string };
/** A file to take away. */
export type Download = { readonly download: { readonly name: string; readonly text: string } };
/** What our own script asks for. */
export type JsonAnswer = { readonly json: object };
export type Screen = (context: RequestContext) => Promise<Page | Redirect | Download | JsonAnswer>;

/** @throws ReveilleError `unavailable` with the reason and what to do */
export function there<T>(part: Part<T>): T {
  if ('there' in part) return part.there;
  throw new ReveilleError('unavailable', part.missing, { retryable: false });
}

/** A field of a form, without the blanks around it; `undefined` when it was left empty. */
export function field({ form }: Pick<RequestContext, 'form'>, name: string): string | undefined {
  const text = form.get(name)?.trim();
  return text === '' ? undefined : text;
}

/** A query with members set, or taken away. */
export function withQuery(path: string, query: URLSearchParams, change: Record<string, string | undefined>): string {
  const changed = new URLSearchParams(query);
  for (const [name, value] of Object.entries(change)) {
    if (value === undefined || value === '') changed.delete(name);
    else changed.set(name, value);
  }
  const text = changed.toString();
  return text === '' ? path : `${path}?${text}`;
}
