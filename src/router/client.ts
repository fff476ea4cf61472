/** The typed clients of the router: its admin routes (contracts §4), and what chronosd asks of it. */
import { z } from 'zod';
import { type Clock, systemClock } from '../kit/clock/clock.ts';
import { type Attend, type Call, createCaller, NoAnswer, withinTime } from '../kit/http/caller.ts';
import type { Budget } from '../wire/budget.ts';
import { ReveilleError } from '../wire/errors.ts';
import { elementsOf, RawJson, sliceAt } from '../wire/json.ts';
import { type MachineChangeList, machineChangeListSchema } from '../wire/machine-change.ts';
import { type MachineTurnList, machineTurnListSchema } from '../wire/machine-turn.ts';
import { receiptKeysSchema } from '../wire/receipt.ts';
import {
  type MachinePut,
  type MachinePutAnswer,
  type MachineView,
  machinePutAnswerSchema,
  machineViewSchema,
} from './machines/machine-schema.ts';

const pageSchema = z.object({ machines: z.array(machineViewSchema), next_cursor: z.string().optional() });

export type RouterClient = {
  put(userId: string, machine: MachinePut): Promise<MachinePutAnswer>;
  /** All machines but the deleted ones. */
  list(): Promise<MachineView[]>;
  show(userId: string): Promise<MachineView>;
  /** Turns of a machine without a daemon, newest first. Payloads are as JavaScript reads them; the source text is in `texts`. */
  turns(userId: string, query: Record<string, string>): Promise<MachineTurnList & { texts: RawJson[] }>;
  /** Sets the machine's budget, or with `null` leaves it to the router's own setting. */
  bound(userId: string, budget: Budget | null): Promise<MachineView>;
  /** What was done to a machine, newest first. */
  changes(userId: string, limit: number | undefined): Promise<MachineChangeList>;
  suspend(userId: string): Promise<MachineView>;
  restore(userId: string): Promise<MachineView>;
  /** Gives the machine a new token, which is in this answer and in no other. */
  rotateToken(userId: string): Promise<MachinePutAnswer>;
  remove(userId: string): Promise<MachineView>;
};

const CALL_MS = 30_000;

/** Where a router is, what it asks for, and how long one call may take. */
type RouterPlace = { url: string; token?: string | undefined; attend?: Attend };

const machinePath = (userId: string) => `/admin/machines/${encodeURIComponent(userId)}`;

/**
 * @param options.token `ROUTER_ADMIN_TOKEN`; a router for development needs none
 * @throws ReveilleError `invalid_request` for a token that cannot stand in a header
 */
export function createRouterClient({ attend = withinTime(systemClock, CALL_MS), ...place }: RouterPlace): RouterClient {
  const { call, read } = createCaller({
    ...{ ...place, name: 'the router', remedy: 'is it running? start it with "reveille up"' },
    tokenName: 'ROUTER_ADMIN_TOKEN',
    explain: (error) => (error.status === 401 ? refused(place.url) : error),
  });
  const ask = async <T extends z.ZodType>(schema: T, request: Call) => {
    const data = await attend((signal) => call(request, signal));
    return { value: read(request, schema, data), data };
  };
  const value = async <T extends z.ZodType>(
    schema: T,
    method: Call['method'],
    path: string,
    more: Pick<Call, 'query' | 'body'> = {},
  ): Promise<z.output<T>> => (await ask(schema, { method, path, ...more })).value;
  const act = (method: Call['method'], userId: string, action = '', body?: unknown): Promise<MachineView> =>
    value(machineViewSchema, method, `${machinePath(userId)}${action}`, { body });

  return {
    put: (userId, body) => value(machinePutAnswerSchema, 'PUT', machinePath(userId), { body }),
    async list() {
      const machines: MachineView[] = [];
      let cursor: string | undefined;
      do {
        const page = await value(pageSchema, 'GET', '/admin/machines', { query: { cursor } });
        machines.push(...page.machines);
        cursor = page.next_cursor;
      } while (cursor !== undefined);
      return machines;
    },
    show: (userId) => act('GET', userId),
    async turns(userId, query) {
      const path = `${machinePath(userId)}/turns`;
      const turns = await ask(machineTurnListSchema, { method: 'GET', path, query });
      const texts = elementsOf(sliceAt(turns.data.text, ['turns']) ?? '[]') ?? [];
      return { ...turns.value, texts: texts.map((text) => new RawJson(text)) };
    },
    bound: (userId, budget) =>
      budget === null ? act('DELETE', userId, '/budget') : act('PUT', userId, '/budget', budget),
    changes: (userId, limit) =>
      value(machineChangeListSchema, 'GET', `${machinePath(userId)}/changes`, { query: { limit } }),
    suspend: (userId) => act('POST', userId, '/suspend'),
    restore: (userId) => act('POST', userId, '/restore'),
    rotateToken: (userId) => value(machinePutAnswerSchema, 'POST', `${machinePath(userId)}/rotate-token`),
    remove: (userId) => act('DELETE', userId),
  };
}

function refused(url: string): ReveilleError {
  const remedy = 'set it to the token that this router was started with';
  return new ReveilleError('unauthorized', `the router at ${url} does not accept this ROUTER_ADMIN_TOKEN; ${remedy}`);
}

/** The keys with which a user's machine signs receipts; `undefined` when they have no machine. Rejects with `unavailable`. */
export type AskKeys = (userId: string) => Promise<readonly string[] | undefined>;

export type RouterKeysOptions = {
  /** Where wakes are posted; the keys are asked of the same router. */
  wakeUrl: string;
  /** Shared with the router; absent only in development. */
  token: string | undefined;
  clock: Clock;
};

const KEYS_MS = 5_000;
const RETRY_AFTER_SECONDS = 2;

export function routerKeys({ wakeUrl, token, clock }: RouterKeysOptions): AskKeys {
  const { origin } = new URL(wakeUrl);
  const tokenName = 'CHRONOS_WAKE_TOKEN';
  const { call, read } = createCaller({ name: 'the router', url: origin, remedy: 'is it running?', tokenName });
  const attend = withinTime(clock, KEYS_MS);
  const unavailable = (why: string, cause: unknown) =>
    new ReveilleError('unavailable', `the router cannot be asked who signed this: ${why}`, {
      retryAfterSeconds: RETRY_AFTER_SECONDS,
      cause,
    });

  return async (userId) => {
    const request: Call = { method: 'GET', path: `/internal/receipt-keys/${encodeURIComponent(userId)}`, token };
    try {
      return read(request, receiptKeysSchema, await attend((signal) => call(request, signal))).keys;
    } catch (thrown) {
      if (!(thrown instanceof ReveilleError)) throw thrown;
      // A route that is not there is no answer about a user: an older router must not turn news away for good.
      if (thrown.code === 'not_found' && !/is not a route/.test(thrown.message)) return undefined;
      if (thrown.code === 'unauthorized') throw unavailable(`it does not accept ${tokenName}`, thrown);
      const silent = thrown instanceof NoAnswer && thrown.retryable;
      throw unavailable(silent ? 'it does not answer' : thrown.message, thrown);
    }
  };
}
