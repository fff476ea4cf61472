/**
 * Connections of a user's requests to their own machine. A request wakes the machine and keeps it awake for its
 * duration.
 */
import type { Dispatcher } from 'undici';
import type { Clock } from '../../kit/clock/clock.ts';
import { bodyBytes, readJson } from '../../kit/http/body.ts';
import type { HttpContext } from '../../kit/http/handlers.ts';
import type { Logger } from '../../kit/log/log.ts';
import { beginTrace, TRACEPARENT, traceHeaders } from '../../kit/trace/trace.ts';
import { ReveilleError, toReveilleError } from '../../wire/errors.ts';
import { encodeJson } from '../../wire/json.ts';
import { personChatSchema } from '../../wire/person.ts';
import { parseOrThrow } from '../../wire/validate.ts';
import { RAW_WAKE_FIELDS, WAKE_HEADERS, withoutEmptyMembers } from '../../wire/wake.ts';
import type { Fleet } from '../fleet.ts';
import { type DaemonMachine, hasDaemon, wakeable } from '../machines/machine.ts';
import type { Registry } from '../machines/registry.ts';
import type { Lease } from '../supervisor.ts';
import type { Person } from './person-tokens.ts';
import { type ProxyRequest, type ProxyResult, proxyRequest } from './proxy.ts';
import { PROXIED_ROUTES, type RouteMatch } from './routes.ts';

export type ProxyOptions = {
  registry: Registry;
  fleet: Fleet;
  /** Connections that are separate from those of wakes. */
  dispatcher: Dispatcher;
  clock: Clock;
  log: Logger;
  /** The time limit for starting the machine and becoming ready. */
  timeoutMs: number;
};

/** A silent daemon fails a request after this time; a stream may be silent for ever. */
const SILENCE_MS = 60_000;
/** The retry time for a user whose machine is being provisioned or does not start, in seconds. */
const RETRY_SECONDS = 5;

/** Request headers that are passed to the daemon. */
const REQUEST_HEADERS = ['accept', 'content-type', 'last-event-id'] as const;

export class ProxyConnections {
  readonly #options: ProxyOptions;
  readonly #closing = new AbortController();
  /** Requests that wait for a machine. */
  readonly #waiting = new Set<AbortController>();

  constructor(options: ProxyOptions) {
    this.#options = options;
  }

  /** Ends waits for machines, and streams. */
  close(): void {
    this.#closing.abort();
    for (const waiting of this.#waiting) waiting.abort(new Error('the router is closing'));
  }

  /**
   * Passes a request on, with the daemon's token in place of the user's.
   *
   * A request that certainly did not arrive is tried once more. One that may have arrived is not.
   *
   * @param revoked ends a stream whose credential was revoked
   * @throws ReveilleError 404, 409, 410, 451 when the user has no machine with a chat; 503 when it does not start; 502
   *   when it does not answer
   */
  pass(c: HttpContext, person: Person, match: RouteMatch, revoked: AbortSignal): Promise<Response> {
    if (match.route !== PROXIED_ROUTES.chat) return this.#pass(c, person, match, revoked);
    // A caller from outside decides neither about our traces nor about what is recorded.
    const facts = () => ({ kind: 'server' as const, links: [c.req.header(TRACEPARENT)] });
    return beginTrace('POST /chat', facts, () => this.#pass(c, person, match, revoked));
  }

  async #pass(c: HttpContext, person: Person, match: RouteMatch, revoked: AbortSignal): Promise<Response> {
    const isStream = match.route === PROXIED_ROUTES.events;
    const body = await bodyOf(c, match);
    for (let attempt = 1; ; attempt++) {
      const gone = new AbortController();
      const leave = () => gone.abort(new Error('the reader disconnected'));
      c.env.outgoing.once('close', leave);
      const lease = await this.reach(person.userId, gone.signal).finally(() => c.env.outgoing.off('close', leave));
      try {
        const result = await proxyRequest({
          ...this.#requestTo(lease, person, c, match),
          body,
          outgoing: c.env.outgoing,
          // Only a stream is aborted; an answer that is under way is completed.
          ending: isStream ? AbortSignal.any([this.#closing.signal, revoked, lease.ending]) : undefined,
          silenceMs: isStream ? 0 : SILENCE_MS,
        });
        if (match.route === PROXIED_ROUTES.chat && result.result === 'answered' && result.status <= 299) {
          await lease.accepted();
        }
        if (result.result === 'answered' || result.result === 'left') return result.response;
        this.checkBeforeUse(person.userId, lease);
        if (result.result === 'unsent' && attempt === 1) continue;
        throw notAnswered(result, match);
      } finally {
        lease.release();
      }
    }
  }

  #requestTo(
    lease: Lease,
    person: Person,
    c: HttpContext,
    { route, path, query }: RouteMatch,
  ): Omit<ProxyRequest, 'body' | 'outgoing' | 'ending' | 'silenceMs'> {
    const given = REQUEST_HEADERS.flatMap((name) => {
      const value = c.req.header(name);
      return value === undefined ? [] : [[name, value]];
    });
    const search = new URLSearchParams(query).toString();
    const { headers, ...connection } = this.connectionTo(lease, person.userId);
    return {
      ...connection,
      method: route.method.toUpperCase(),
      path: search === '' ? path : `${path}?${search}`,
      headers: { ...Object.fromEntries(given), ...traceHeaders(), ...headers },
    };
  }

  /** The connections to a leased daemon, and the headers that name the user with the daemon's token. */
  connectionTo({ daemon, machine }: Lease, userId: string) {
    return {
      dispatcher: daemon.connections?.userRequests ?? this.#options.dispatcher,
      url: daemon.url,
      headers: { authorization: `Bearer ${machine.token}`, [WAKE_HEADERS.user]: userId },
    };
  }

  /** The daemon did not answer: it is checked before its next use. */
  checkBeforeUse(userId: string, { daemon }: Lease): void {
    this.#options.fleet.of(userId).checkBeforeUse(daemon);
  }

  /**
   * Wakes the machine of a user.
   *
   * @param gone aborts when the caller no longer waits
   * @throws ReveilleError as {@link pass}
   */
  async reach(userId: string, gone: AbortSignal): Promise<Lease> {
    const { fleet, registry, clock, timeoutMs } = this.#options;
    let refusal: unknown;
    const current = () => {
      try {
        return chatMachine(registry, userId);
      } catch (thrown) {
        refusal = thrown;
        throw thrown;
      }
    };
    const wait = new AbortController();
    this.#waiting.add(wait);
    const cancel = clock.after(timeoutMs, () => wait.abort(new Error('not ready in time')));
    const leave = () => wait.abort(gone.reason);
    gone.addEventListener('abort', leave);
    try {
      if (gone.aborted) leave();
      if (this.#closing.signal.aborted) wait.abort(new Error('the router is closing'));
      return await fleet.of(userId).acquire(current, wait.signal);
    } catch (thrown) {
      if (thrown === refusal) throw thrown;
      if (this.#closing.signal.aborted) throw new ReveilleError('unavailable', 'the router is shutting down');
      const waitsFor = fleet.of(userId).waitsFor;
      const why =
        thrown === wait.signal.reason
          ? `it was not ready within ${Math.round(timeoutMs / 1000)} s${waitsFor === undefined ? '' : `: ${waitsFor}`}`
          : toReveilleError(thrown).message;
      throw new ReveilleError(
        'unavailable',
        `your agent's machine does not start: ${why}. Your request was not sent; try again, and if it still fails, see: reveille machine show ${userId}`,
        { retryAfterSeconds: RETRY_SECONDS, cause: thrown },
      );
    } finally {
      cancel();
      this.#waiting.delete(wait);
      gone.removeEventListener('abort', leave);
    }
  }
}

/** @throws ReveilleError for a user, who cannot register a machine */
function chatMachine(registry: Registry, userId: string): DaemonMachine {
  const found = registry.get(userId);
  if (found === undefined) {
    const message = `no machine has been set up for ${userId}; the operator of this router does it with: reveille machine put ${userId}`;
    throw new ReveilleError('not_found', message);
  }
  const machine = wakeable(found, userId, RETRY_SECONDS);
  if (hasDaemon(machine)) return machine;
  const message = `the agent of ${userId} is a program that runs once for each turn, so it has no chat; see its turns with: reveille machine turns ${userId}`;
  throw new ReveilleError('conflict', message);
}

/** The body for the daemon: of a message only the members that a user may send. */
async function bodyOf(c: HttpContext, { route }: RouteMatch): Promise<Buffer | undefined> {
  const given = bodyBytes(c);
  if (route === PROXIED_ROUTES.chat) {
    const sent = withoutEmptyMembers(await readJson(c, { raw: RAW_WAKE_FIELDS }));
    return Buffer.from(encodeJson(parseOrThrow(personChatSchema, sent)));
  }
  return given.length === 0 || route.method === 'get' ? undefined : given;
}

function notAnswered({ result, why }: Extract<ProxyResult, { why: string }>, { route }: RouteMatch): ReveilleError {
  const advice =
    result === 'unknown' && route.method !== 'get'
      ? '; it is unknown whether the request arrived: check the conversation before you send it again'
      : '; try again';
  const message = `your agent's machine runs and did not answer (${why})${advice}`;
  const retryable = result === 'unsent' || route.method === 'get';
  return new ReveilleError('unavailable', message, { status: 502, retryable });
}
