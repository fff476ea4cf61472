/** Connects the parts of MCP Events: the store, the daemons' streams, the webhooks and the methods. */
import type { Clock } from '../../kit/clock/clock.ts';
import type { Resolve } from '../../kit/http/guarded-lookup.ts';
import type { Logger } from '../../kit/log/log.ts';
import { ownerOf } from '../../wire/did.ts';
import type { TrustedIssuer } from '../../wire/remote-caller.ts';
import type { Wake } from '../../wire/wake.ts';
import type { RemoteBackends } from '../backends.ts';
import type { RemoteMessage } from '../servers.ts';
import { Access } from './access.ts';
import { Callbacks } from './callbacks.ts';
import { dueEvent, EVENT_TYPES, type Source, selects } from './event-types.ts';
import { createMethods, type Method } from './methods.ts';
import { Rates } from './rates.ts';
import { Sources } from './sources.ts';
import { EventStore, type Reader, type Subscription } from './store.ts';
import { Webhooks } from './webhooks.ts';

/** A subscription is terminated after its callback has failed for a day. */
const GIVE_UP_MS = 24 * 3600_000;
/** How long a client counts as a reader after its last poll or stream. */
const PRESENT_MS = 3600_000;

export type EventsOptions = {
  /** The folder of the router. */
  dataDir: string;
  backends: RemoteBackends;
  issuers: readonly TrustedIssuer[];
  /** Private hosts that callbacks may name. */
  allow: string | undefined;
  clock: Clock;
  log: Logger;
  /** For tests. */
  limits?: { giveUpMs?: number; mostOfSubject?: number; resolve?: Resolve };
};

export type EventsService = {
  readonly methods: Readonly<Record<string, Method>>;
  /** Records the token of a request if it is newer than the client's recorded one. */
  note(message: RemoteMessage): void;
  /**
   * Stores the event `alarm.due` of a wake, once per fire.
   *
   * @returns whether an active subscription selects it: for a user without a machine, the stored event is the delivery
   * @throws ReveilleError when it could not be stored
   */
  offer(wake: Wake): Promise<boolean>;
  /** Terminates the subscriptions of a client whose access was revoked. @returns how many there were */
  endClient(userId: string, clientId: string): Promise<number>;
  close(): Promise<void>;
};

/** @throws ReveilleError when the database cannot be opened, or for a wrong setting */
export function openEvents(options: EventsOptions): EventsService {
  const { dataDir, backends, issuers, allow, clock, log, limits = {} } = options;
  const callbacks = new Callbacks({ allow, clock, resolve: limits.resolve });
  const store = new EventStore(dataDir, clock);
  const access = new Access(issuers, clock);
  const closing = new AbortController();
  const webhooks = new Webhooks({ store, access, callbacks, clock, log, giveUpMs: limits.giveUpMs ?? GIVE_UP_MS });
  const sourceOf = ({ name }: Pick<Reader, 'name'>) => EVENT_TYPES.get(name)?.source;
  const isWanted = (userId: string, source: Source) =>
    [...webhooks.ofUser(userId), ...store.readersOf(userId)].some((one) => sourceOf(one) === source);
  const sources = new Sources({ store, backends, clock, log, isWanted });
  const stop = store.onEvents((userId, added) => webhooks.notify(userId, added));
  const { mostOfSubject } = limits;
  const methods = createMethods({
    ...{ store, webhooks, sources, access, callbacks, clock, mostOfSubject },
    ...{ rates: new Rates(clock), closing: closing.signal },
  });

  webhooks.open();
  for (const userId of new Set([...webhooks.users(), ...store.readingUsers()]))
    for (const one of [...webhooks.ofUser(userId), ...store.readersOf(userId)]) {
      const source = sourceOf(one);
      // The stream itself reconnects to a daemon that is down.
      if (source !== undefined) sources.follow(store.principal(one.principal), source).catch(() => {});
    }

  const isAlive = (one: Subscription | Reader): boolean => {
    const now = clock.now();
    if ('seenAt' in one) return now - one.seenAt < PRESENT_MS;
    return one.expiresAt === null || one.expiresAt > now;
  };

  return {
    methods,
    note({ caller, grant }) {
      const known = store.knownPrincipal(caller);
      if (known?.userId !== caller.userId || (grant.issuedAt ?? 0) <= (known.grant.issuedAt ?? 0)) return;
      const scopes = [...caller.scopes].toSorted();
      store.putPrincipal({ ...known, clientName: caller.clientName, scopes, grant }).then(
        (principal) => access.renewed(principal),
        (err: unknown) => log.warn({ err }, 'the token of a client could not be stored'),
      );
    },
    async offer(wake) {
      const userId = ownerOf(wake.user_id);
      const due = 'alarm.due';
      const subscriptions = webhooks.ofUser(userId).filter(({ name }) => name === due);
      const interested = [...subscriptions, ...store.readersOf(userId, due)];
      if (interested.length === 0) return false;
      const event = dueEvent(wake);
      await store.add(userId, [event]);
      for (const one of interested) {
        const principal = store.principal(one.principal);
        if (!isAlive(one) || !selects(one.arguments, event.facts, principal.clientId)) continue;
        if ((await access.endOf(principal, 'alarms:read')) === undefined) return true;
      }
      return false;
    },
    async endClient(userId, clientId) {
      let ended = 0;
      for (const principal of store.principalsOf(userId, clientId)) {
        access.renewed(principal);
        ended += await webhooks.endAll(principal.id);
        await store.dropReaders(principal.id);
      }
      return ended;
    },
    async close() {
      closing.abort(new Error('the router is shutting down'));
      stop();
      await Promise.all([sources.close(), webhooks.close()]);
      await callbacks.close();
      await store.close();
    },
  };
}
