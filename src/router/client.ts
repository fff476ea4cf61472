/** The typed clients of the router: its admin routes (docs/reference/routes.md), and the calls of chronosd. */
import type { z } from 'zod';
import { type Clock, systemClock } from '../kit/clock/clock.ts';
import { type Call, callOf, createCaller, type LimitedCall, NoAnswer, withinTime } from '../kit/http/caller.ts';
import { Pool } from '../kit/http/dispatchers.ts';
import { webhookSigner } from '../kit/identity/webhook-signature.ts';
import type { Budget } from '../wire/budget.ts';
import { type CheckRequest, REFUSALS } from '../wire/check-verdict.ts';
import { ReveilleError } from '../wire/errors.ts';
import { elementsOf, RawJson, sliceAt } from '../wire/json.ts';
import { LOOK_ANSWER_MS, type Looker } from '../wire/look.ts';
import type { MachineChangeList } from '../wire/machine.ts';
import type { MachineTurnList } from '../wire/machine-turn.ts';
import type { Ended, PersonRights, PersonTokenCreate, PersonTokenMade, PersonTokenView } from '../wire/person.ts';
import type { PathNames, Route } from '../wire/route.ts';
import { ROUTER_ROUTES } from './http/routes.ts';
import type { MachinePut, MachinePutAnswer, MachineView } from './machines/machine-schema.ts';

type MachineRoute = Extract<
  (typeof ROUTER_ROUTES)[keyof typeof ROUTER_ROUTES],
  { path: `/admin/machines/{user_id}${string}` }
>;

export type RouterClient = {
  put(userId: string, machine: MachinePut): Promise<MachinePutAnswer>;
  /** All machines except deleted ones. */
  list(): Promise<MachineView[]>;
  show(userId: string): Promise<MachineView>;
  /**
   * Turns of a machine without a daemon, newest first. Payloads are parsed by JavaScript; `texts` has the source text.
   */
  turns(userId: string, query: Record<string, string>): Promise<MachineTurnList & { texts: RawJson[] }>;
  /** Sets the machine's budget. `null` applies the router's own setting. */
  bound(userId: string, budget: Budget | null): Promise<MachineView>;
  /** The changes of a machine, newest first. */
  changes(userId: string, limit: number | undefined): Promise<MachineChangeList>;
  suspend(userId: string): Promise<MachineView>;
  restore(userId: string): Promise<MachineView>;
  /** Gives the machine a new token. Only this answer contains it. */
  rotateToken(userId: string): Promise<MachinePutAnswer>;
  remove(userId: string): Promise<MachineView>;
  /**
   * Authorizes a user at the public listener. Only this answer contains the token; the same holds for the next call.
   */
  addUser(userId: string, given: PersonTokenCreate): Promise<PersonTokenMade>;
  addUserToken(userId: string, given: PersonTokenCreate): Promise<PersonTokenMade>;
  /** Stores the rights of a credential at other daemons. */
  grantUser(userId: string, tokenId: string, rights: PersonRights): Promise<PersonTokenView>;
  /** Credentials of one user, or of all. */
  users(userId?: string): Promise<PersonTokenView[]>;
  /** Revokes one credential, or without an id all of this user. `ended` is absent where the router is of 0.1.0. */
  revokeUser(userId: string, tokenId?: string): Promise<{ revoked: PersonTokenView[]; ended?: Ended | undefined }>;
  /** Ends what a client whose access was revoked has set. It may be repeated. */
  endClient(userId: string, clientId: string): Promise<Ended>;
};

const CALL_MS = 30_000;

/** The address of a router, the token it requires, and the longest duration of one call. */
type RouterAddress = { url: string; token?: string | undefined; attend?: LimitedCall };

/**
 * @param options.token `ROUTER_ADMIN_TOKEN`; a router for development needs none
 * @throws ReveilleError `invalid_request` for a token that a header cannot contain
 */
export function createRouterClient({
  attend = withinTime(systemClock, CALL_MS),
  ...address
}: RouterAddress): RouterClient {
  const { call, read } = createCaller({
    ...{ ...address, name: 'the router', remedy: 'is it running? start it with "reveille up"' },
    tokenName: 'ROUTER_ADMIN_TOKEN',
    explain: (error) => (error.status === 401 ? refused(address.url) : error),
  });
  const request = async <R extends Route>(
    route: R,
    given: { readonly [Name in PathNames<R['path']>]: string },
    more: Pick<Call, 'query' | 'body'> = {},
  ) => {
    const request = callOf(route, given, more);
    const data = await attend((signal) => call(request, signal));
    return { value: read(request, route.data, data) as z.output<R['data']>, data };
  };
  /** The members of an answer about one machine. */
  const of = async <R extends MachineRoute>(
    userId: string,
    route: R,
    more?: Pick<Call, 'query' | 'body'>,
  ): Promise<z.output<R['data']>> =>
    (await request<MachineRoute>(route, { user_id: userId }, more)).value as z.output<R['data']>;

  return {
    put: (userId, body) => of(userId, ROUTER_ROUTES.putMachine, { body }),
    async list() {
      const machines: MachineView[] = [];
      let cursor: string | undefined;
      do {
        const { value: page } = await request(ROUTER_ROUTES.listMachines, {}, { query: { cursor } });
        machines.push(...page.machines);
        cursor = page.next_cursor;
      } while (cursor !== undefined);
      return machines;
    },
    show: (userId) => of(userId, ROUTER_ROUTES.getMachine),
    async turns(userId, query) {
      const turns = await request(ROUTER_ROUTES.listTurns, { user_id: userId }, { query });
      const texts = elementsOf(sliceAt(turns.data.text, ['turns']) ?? '[]') ?? [];
      return { ...turns.value, texts: texts.map((text) => new RawJson(text)) };
    },
    bound: (userId, budget) =>
      budget === null ? of(userId, ROUTER_ROUTES.deleteBudget) : of(userId, ROUTER_ROUTES.putBudget, { body: budget }),
    changes: (userId, limit) => of(userId, ROUTER_ROUTES.listChanges, { query: { limit } }),
    suspend: (userId) => of(userId, ROUTER_ROUTES.suspendMachine),
    restore: (userId) => of(userId, ROUTER_ROUTES.restoreMachine),
    rotateToken: (userId) => of(userId, ROUTER_ROUTES.rotateToken),
    remove: (userId) => of(userId, ROUTER_ROUTES.deleteMachine),
    addUser: async (userId, given) =>
      (await request(ROUTER_ROUTES.addUser, {}, { body: { user_id: userId, ...given } })).value,
    addUserToken: async (userId, body) =>
      (await request(ROUTER_ROUTES.addUserToken, { user_id: userId }, { body })).value,
    grantUser: async (userId, tokenId, body) =>
      (await request(ROUTER_ROUTES.grantUserToken, { user_id: userId, token_id: tokenId }, { body })).value,
    async users(userId) {
      const tokens: PersonTokenView[] = [];
      let cursor: string | undefined;
      do {
        const { value: page } = await request(ROUTER_ROUTES.listUsers, {}, { query: { user_id: userId, cursor } });
        tokens.push(...page.tokens);
        cursor = page.next_cursor;
      } while (cursor !== undefined);
      return tokens;
    },
    async revokeUser(userId, tokenId) {
      if (tokenId === undefined) return (await request(ROUTER_ROUTES.revokeUser, { user_id: userId })).value;
      const given = { user_id: userId, token_id: tokenId };
      const { ended, ...view } = (await request(ROUTER_ROUTES.revokeUserToken, given)).value;
      return { revoked: [view], ended };
    },
    endClient: async (userId, client_id) =>
      (await request(ROUTER_ROUTES.endClient, { user_id: userId }, { body: { client_id } })).value,
  };
}

function refused(url: string): ReveilleError {
  const remedy = 'set it to the token of this router';
  return new ReveilleError('unauthorized', `the router at ${url} does not accept this ROUTER_ADMIN_TOKEN; ${remedy}`);
}

/**
 * The keys with which a user's machine signs turn reports; `undefined` for a user without a machine. Rejects with
 * `unavailable`.
 */
export type ReadKeys = (userId: string) => Promise<readonly string[] | undefined>;

export type RouterKeysOptions = {
  /** The address of wakes. The keys are requested from the same router. */
  wakeUrl: string;
  /** Shared with the router; absent only in development. */
  token: string | undefined;
  clock: Clock;
};

const KEYS_MS = 5_000;
/** The router looks for the program of a command. */
const TRY_CHECK_MS = 15_000;
const RETRY_AFTER_SECONDS = 2;

export function routerKeys({ wakeUrl, token, clock }: RouterKeysOptions): ReadKeys {
  const { origin } = new URL(wakeUrl);
  const tokenName = 'CHRONOS_WAKE_TOKEN';
  const { call, read } = createCaller({ name: 'the router', url: origin, remedy: 'is it running?', tokenName });
  const attend = withinTime(clock, KEYS_MS);
  const unavailable = (why: string, cause: unknown) =>
    new ReveilleError('unavailable', `the router cannot confirm who signed this: ${why}`, {
      retryAfterSeconds: RETRY_AFTER_SECONDS,
      cause,
    });

  return async (userId) => {
    const request = callOf(ROUTER_ROUTES.receiptKeys, { user_id: userId }, { token });
    try {
      return read(request, ROUTER_ROUTES.receiptKeys.data, await attend((signal) => call(request, signal))).keys;
    } catch (thrown) {
      if (!(thrown instanceof ReveilleError)) throw thrown;
      // A missing route says nothing about the user: an older router must not cause reports to be dropped.
      if (thrown.code === 'not_found' && !/is not a route/.test(thrown.message)) return undefined;
      if (thrown.code === 'unauthorized') throw unavailable(`it does not accept ${tokenName}`, thrown);
      const silent = thrown instanceof NoAnswer && thrown.retryable;
      throw unavailable(silent ? 'it does not answer' : thrown.message, thrown);
    }
  };
}

/** Refuses a check or a command that could never work on the machine of its user. */
export type TryCheck = (request: CheckRequest) => Promise<void>;

/** The router's refusals; where it does not answer, check and command are accepted and judged at their first fire. */
export function routerChecks({ wakeUrl, token, clock }: RouterKeysOptions): TryCheck {
  const { origin } = new URL(wakeUrl);
  const tokenName = 'CHRONOS_WAKE_TOKEN';
  const { call } = createCaller({ name: 'the router', url: origin, remedy: 'is it running?', tokenName });
  const attend = withinTime(clock, TRY_CHECK_MS);
  return async (body) => {
    const request = callOf(ROUTER_ROUTES.tryCheck, {}, { token, body });
    try {
      await attend((signal) => call(request, signal));
    } catch (thrown) {
      if (!(thrown instanceof ReveilleError)) throw thrown;
      const isRefusal = Object.values(REFUSALS).some((begin) => thrown.message.startsWith(begin));
      if (isRefusal && (thrown.code === 'invalid_request' || thrown.code === 'forbidden')) throw thrown;
    }
  };
}

/** The events of one look are at most this long together. */
const LONGEST_LOOK_BYTES = 16 * 1024 * 1024;

/** A looker that keeps its connections to the router open. */
export function routerLooker({
  wakeUrl,
  token,
  clock,
  connections,
  publicUrl,
}: RouterKeysOptions & { connections: number; publicUrl?: string | undefined }): Looker {
  const { origin } = new URL(wakeUrl);
  // Shorter than the router's own time, which avoids its resets. The call has its own time limit.
  const times = { headersTimeout: 0, bodyTimeout: 0, connect: { timeout: 10_000 }, keepAliveTimeout: 4_000 };
  const transport = new Pool(origin, { connections, pipelining: 1, ...times });
  const daemon = { name: 'the router', url: origin, remedy: 'is it running?', tokenName: 'CHRONOS_WAKE_TOKEN' };
  const { call, read } = createCaller({ ...daemon, transport, maxBytes: LONGEST_LOOK_BYTES });
  const attend = withinTime(clock, LOOK_ANSWER_MS);
  const signer = token === undefined ? undefined : webhookSigner(token);
  const { look: route } = ROUTER_ROUTES;
  return {
    publicUrl,
    async look(body) {
      const id = `look-${body.alarm_id}`;
      const sign = ({ body: text }: { body: string }) =>
        signer?.({ id, timestampSeconds: clock.now() / 1000, body: text }) ?? {};
      const request = callOf(route, {}, { token, body, sign });
      return read(request, route.data, await attend((signal) => call(request, signal)));
    },
    close: () => transport.destroy(),
  };
}
