/** The requests of MCP Events: `events/list`, `events/poll`, `events/stream`, `events/subscribe`, `events/unsubscribe`. */
import { createHash } from 'node:crypto';
import { setImmediate as nextTurn } from 'node:timers/promises';
import type { ServerContext } from '@modelcontextprotocol/server';
import { z } from 'zod';
import { type Clock, wait } from '../../kit/clock/clock.ts';
import { KeyedQueue } from '../../kit/queue/keyed-queue.ts';
import { canonicalJson } from '../../wire/canonical-json.ts';
import { exactJson } from '../../wire/json.ts';
import type { McpEndpoint } from '../../wire/remote-caller.ts';
import { formatInstant } from '../../wire/rfc3339.ts';
import { parseOrThrow } from '../../wire/validate.ts';
import type { RemoteMessage } from '../servers.ts';
import type { Access } from './access.ts';
import type { Callbacks } from './callbacks.ts';
import {
  type Arguments,
  catalogueOf,
  dataFor,
  EVENT_TYPES,
  type EventType,
  parseArguments,
  selects,
} from './event-types.ts';
import { EventsError, isSigningSecret, SUBSCRIPTION_META } from './protocol.ts';
import type { Rates } from './rates.ts';
import type { Sources } from './sources.ts';
import { type EventStore, isGap, type Principal, type StoredEvent, type Subscription } from './store.ts';
import type { Webhooks } from './webhooks.ts';

const NEXT_POLL_MS = 5000;
const POLL_EVENTS = 50;
const POLL_MOST_EVENTS = 200;
/** Maximum size of the data in one answer. */
const POLL_BYTES = 512 * 1024;
const HEARTBEAT_MS = 15_000;
const STREAM_PAGE = 50;
/** Maximum number of pages that one poll searches for selected events. */
const POLL_PAGES = 20;

/** Limits of active subscriptions: of one subject, and of all. */
export const MOST_OF_SUBJECT = 100;
export const MOST_IN_ALL = 10_000;

const MINUTE_MS = 60_000;
const DAY_MS = 24 * 60 * MINUTE_MS;
const TTL_LEAST_MS = MINUTE_MS;
const TTL_DEFAULT_MS = 7 * DAY_MS;
const TTL_MOST_MS = 365 * DAY_MS;
/** The longest lifetime where the issuer does not report revocations: only a refresh proves that access continues. */
const TTL_UNCHECKED_MS = 30 * DAY_MS;
/** After a change of the secret, deliveries are signed with both secrets for this time. */
const ROTATION_MS = 10 * MINUTE_MS;

const ARGUMENTS_MAX = 4096;
const eventName = z.string().min(1).max(100);
const givenArguments = z.record(z.string().max(100), z.unknown()).optional();
const subject = { name: eventName, arguments: givenArguments };
const start = {
  cursor: z.string().max(200).nullish(),
  maxAgeMs: z.int().min(0).optional(),
};
const listSchema = z.looseObject({ cursor: z.string().optional() });
const pollSchema = z.looseObject({ ...subject, ...start, maxEvents: z.int().min(1).optional() });
const streamSchema = z.looseObject({ ...subject, ...start });
const subscribeSchema = z.looseObject({
  ...subject,
  ...start,
  delivery: z.looseObject({ mode: z.string().max(100).optional(), url: z.string(), secret: z.string() }),
  ttlMs: z.int().min(1).nullish(),
});
const unsubscribeSchema = z.looseObject({ ...subject, delivery: z.looseObject({ url: z.string() }) });

export type MethodsOptions = {
  store: EventStore;
  webhooks: Webhooks;
  sources: Sources;
  access: Access;
  callbacks: Callbacks;
  rates: Rates;
  clock: Clock;
  closing: AbortSignal;
  /** Replaces the limit in tests. */
  mostOfSubject?: number | undefined;
};

type Selection = { readonly type: EventType; readonly name: string; readonly given: Arguments; readonly key: string };

/** The method of an extension. Its errors are for the client. */
export type Method = (
  params: unknown,
  message: RemoteMessage,
  context: ServerContext,
) => Promise<Record<string, unknown>>;

const complete = <Result extends object>(result: Result) => ({ resultType: 'complete', ...result });

export function createMethods(options: MethodsOptions): Readonly<Record<string, Method>> {
  const { store, webhooks, sources, access, callbacks, rates, clock, closing } = options;
  const { mostOfSubject = MOST_OF_SUBJECT } = options;
  const queue = new KeyedQueue();

  const selectionOf = (endpoint: McpEndpoint, { name, arguments: given }: z.output<typeof streamSchema>): Selection => {
    const type = EVENT_TYPES.get(name);
    if (type?.endpoint !== endpoint)
      throw new EventsError('NotFound', `this endpoint has no event ${JSON.stringify(name)}; see events/list`, {
        kind: 'event',
      });
    const key = canonicalJson(given ?? {});
    if (key.length > ARGUMENTS_MAX)
      throw new EventsError('InvalidParams', `arguments must have at most ${ARGUMENTS_MAX} characters`);
    return { type, name, given: parseArguments(type, given), key };
  };

  const principalOf = async ({ caller, grant }: RemoteMessage): Promise<Principal> => {
    const { issuer, subject: sub, clientId, userId, clientName, scopes } = caller;
    const principal = await store.putPrincipal({
      ...{ issuer, subject: sub, clientId, userId, clientName, grant },
      scopes: [...scopes].toSorted(),
    });
    access.renewed(principal);
    return principal;
  };

  const begin = async (principal: Principal, { type }: Selection): Promise<void> => {
    if (type.source !== undefined) await sources.follow(principal, type.source);
  };

  const occurrence = ({ eventId, name, at, facts }: StoredEvent, data: string, principal: Principal) => ({
    ...{ eventId, name, timestamp: formatInstant(at) },
    data: exactJson(dataFor({ data, facts }, principal)),
  });

  const poll: Method = async (params, message) => {
    const { cursor = null, maxAgeMs, maxEvents = POLL_EVENTS, ...rest } = parseOrThrow(pollSchema, params);
    const selection = selectionOf(message.endpoint, rest);
    const principal = await principalOf(message);
    const { userId, clientId } = principal;
    await store.seen(principal.id, selection.name, JSON.stringify(selection.given));
    await begin(principal, selection);
    let { position, isTruncated } = store.positionOf(userId, cursor, maxAgeMs);
    const most = Math.min(maxEvents, POLL_MOST_EVENTS);
    const events: object[] = [];
    let bytes = 0;
    const answer = (hasMore: boolean) =>
      complete({
        ...{ events, cursor: store.cursorAt(position) },
        ...{ truncated: isTruncated, hasMore, nextPollMs: NEXT_POLL_MS },
      });
    for (let pages = 0; pages < POLL_PAGES; pages++) {
      const head = store.head(userId);
      const page = store.page(userId, position, selection.name, POLL_EVENTS);
      for (const event of page.events) {
        if (isGap(event)) isTruncated = true;
        else if (selects(selection.given, event.facts, clientId)) {
          if (events.length >= most) return answer(true);
          const data = store.dataOf(userId, event.seq)!;
          bytes += data.length;
          if (events.length > 0 && bytes > POLL_BYTES) return answer(true);
          events.push(occurrence(event, data, principal));
        }
        position = event.seq;
      }
      position = page.end;
      if (position >= head) return answer(false);
    }
    return answer(true);
  };

  const stream: Method = async (params, message, { mcpReq }) => {
    const { cursor = null, maxAgeMs, ...rest } = parseOrThrow(streamSchema, params);
    const selection = selectionOf(message.endpoint, rest);
    const principal = await principalOf(message);
    const { userId, clientId } = principal;
    const gone = AbortSignal.any([mcpReq.signal, closing]);
    const seen = () => store.seen(principal.id, selection.name, JSON.stringify(selection.given));
    await seen();
    await begin(principal, selection);
    let { position, isTruncated } = store.positionOf(userId, cursor, maxAgeMs);
    const notify = (what: string, body: object) => {
      const _meta = { [SUBSCRIPTION_META]: mcpReq.id };
      return mcpReq.notify({ method: `notifications/events/${what}`, params: { ...body, _meta } });
    };
    const active = () => notify('active', { cursor: store.cursorAt(position), truncated: isTruncated });
    let wake = () => {};
    const stop = store.onEvents((user) => {
      if (user === userId) wake();
    });
    try {
      await active();
      while (!gone.aborted) {
        const news = new AbortController();
        wake = () => news.abort();
        const head = store.head(userId);
        const page = store.page(userId, position, selection.name, STREAM_PAGE);
        for (const event of page.events) {
          if (gone.aborted) break;
          const data = isGap(event) ? undefined : store.dataOf(userId, event.seq);
          position = event.seq;
          if (data === undefined) {
            isTruncated = true;
            await active();
          } else if (selects(selection.given, event.facts, clientId)) {
            await notify('event', { ...occurrence(event, data, principal), cursor: store.cursorAt(position) });
          }
        }
        if (gone.aborted) continue;
        position = Math.max(position, page.end);
        if (position < head) {
          await nextTurn();
          continue;
        }
        await wait(clock, HEARTBEAT_MS, AbortSignal.any([gone, news.signal]));
        if (gone.aborted || news.signal.aborted) continue;
        await seen();
        await notify('heartbeat', { cursor: store.cursorAt(position) });
      }
    } finally {
      stop();
    }
    return complete({ _meta: {} });
  };

  /** The expiry for a requested lifetime; `null`: none. */
  const expiryOf = (principal: Principal, ttlMs: number | null | undefined): number | null => {
    const isChecked = access.canBeRevoked(principal);
    if (ttlMs === null && isChecked) return null;
    const most = isChecked ? TTL_MOST_MS : TTL_UNCHECKED_MS;
    return clock.now() + Math.min(Math.max(ttlMs === undefined ? TTL_DEFAULT_MS : (ttlMs ?? most), TTL_LEAST_MS), most);
  };

  const idOf = ({ issuer, subject: sub, clientId }: Principal, url: string, { name, key }: Selection): string => {
    const digest = createHash('sha256').update(JSON.stringify([issuer, sub, clientId, url, name, key]));
    return `sub_${digest.digest('hex').slice(0, 32)}`;
  };

  const refuseTooMany = ({ userId, issuer, subject: sub }: Principal): void => {
    const refuse = (max: number) => {
      const text = `the limit of ${max} subscriptions is reached; end one with events/unsubscribe`;
      return new EventsError('ResourceExhausted', text, { limit: 'subscriptions', max });
    };
    if (webhooks.size >= MOST_IN_ALL) throw refuse(MOST_IN_ALL);
    const own = webhooks.ofUser(userId).filter(({ principal }) => {
      const other = store.principal(principal);
      return other.issuer === issuer && other.subject === sub;
    });
    if (own.length >= mostOfSubject) throw refuse(mostOfSubject);
  };

  const verify = async (principal: Principal, address: Parameters<Callbacks['challenge']>[0]): Promise<void> => {
    if (store.isVerified(principal.id, address.url)) return;
    rates.take(principal, new URL(address.url).host);
    await callbacks.challenge(address, closing);
    await store.verify(principal.id, address.url);
  };

  const renew = async (known: Subscription, secret: string, expiresAt: number | null) => {
    const status = {
      active: true,
      lastDeliveryAt: known.lastDeliveryAt === null ? null : formatInstant(known.lastDeliveryAt),
      lastError: known.lastError,
      ...(known.failedSince !== null && { failedSince: formatInstant(known.failedSince) }),
    };
    if (secret !== known.secret) {
      known.old = { secret: known.secret, until: clock.now() + ROTATION_MS };
      known.secret = secret;
    }
    known.expiresAt = expiresAt;
    await store.update(known);
    webhooks.begin(known);
    return { cursor: store.cursorAt(known.position), truncated: false, deliveryStatus: status };
  };

  const subscribe: Method = async (params, message) => {
    // Error messages must not quote these members: they contain the secret.
    const parsed = parseOrThrow(subscribeSchema, params, ['secret', 'delivery']);
    const { cursor = null, maxAgeMs, ttlMs, delivery, ...rest } = parsed;
    const { mode = 'webhook', secret } = delivery;
    const selection = selectionOf(message.endpoint, rest);
    if (mode !== 'webhook')
      throw new EventsError('Unsupported', 'delivery.mode must be "webhook"; use events/poll or events/stream', {
        feature: 'deliveryMode',
        value: mode,
      });
    if (!isSigningSecret(secret))
      throw new EventsError(
        'InvalidParams',
        'delivery.secret must be whsec_ followed by the base64 of 24 to 64 random bytes',
      );
    const url = callbacks.parse(delivery.url);
    const principal = await principalOf(message);
    const id = idOf(principal, url, selection);
    return queue.run(`${principal.id} ${url}`, async () => {
      const known = webhooks.get(id);
      const isOwn = known?.principal === principal.id;
      const isLive = isOwn && (known.expiresAt === null || known.expiresAt > clock.now());
      if (!isLive) refuseTooMany(principal);
      await verify(principal, { url, subscriptionId: id, secrets: [secret] });
      await begin(principal, selection);
      const expiresAt = expiryOf(principal, ttlMs);
      const refreshBefore = expiresAt === null ? null : formatInstant(expiresAt);
      // The subscription may have ended during the challenge.
      const live = webhooks.get(id);
      if (isLive && live?.principal === principal.id)
        return complete({ id, refreshBefore, ...(await renew(live, secret, expiresAt)) });
      const { position, isTruncated } = store.positionOf(principal.userId, cursor, maxAgeMs);
      const created: Subscription = {
        ...{
          id,
          principal: principal.id,
          name: selection.name,
          arguments: selection.given,
          url,
          secret,
          expiresAt,
          position,
        },
        ...{ old: undefined, failures: 0, failedSince: null, lastDeliveryAt: null, lastError: null },
      };
      const { issuer, subject: sub } = principal;
      // Subscriptions to other callbacks, which were challenged at the same time, count too.
      await queue.run(JSON.stringify([issuer, sub]), async () => {
        refuseTooMany(principal);
        webhooks.forget(id);
        await store.create(created);
        webhooks.begin(created);
      });
      return complete({ id, refreshBefore, cursor: store.cursorAt(position), truncated: isTruncated });
    });
  };

  const unsubscribe: Method = async (params, message) => {
    const { delivery, ...rest } = parseOrThrow(unsubscribeSchema, params, ['delivery']);
    const selection = selectionOf(message.endpoint, rest);
    const { caller } = message;
    const principal = store.knownPrincipal(caller);
    const url = URL.parse(delivery.url)?.href;
    if (principal?.userId === caller.userId && url !== undefined) {
      const id = idOf(principal, url, selection);
      const isRemoved = await queue.run(`${principal.id} ${url}`, async () => {
        webhooks.forget(id);
        return store.remove(id);
      });
      if (isRemoved) return complete({});
    }
    throw new EventsError('NotFound', 'there is no such subscription', { kind: 'subscription' });
  };

  return {
    'events/list': async (params, { endpoint }) => {
      parseOrThrow(listSchema, params ?? {});
      return complete({ events: catalogueOf(endpoint) });
    },
    'events/poll': poll,
    'events/stream': stream,
    'events/subscribe': subscribe,
    'events/unsubscribe': unsubscribe,
  };
}
