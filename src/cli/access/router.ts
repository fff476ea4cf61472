/** The router's admin routes (contracts §4), as far as commands need them. */
import { z } from 'zod';
import {
  type MachinePut,
  type MachinePutAnswer,
  type MachineView,
  machinePutAnswerSchema,
  machineViewSchema,
} from '../../router/machines/machine-schema.ts';
import type { Budget } from '../../wire/budget.ts';
import { openEnvelope } from '../../wire/envelope.ts';
import { ReveilleError } from '../../wire/errors.ts';
import { elementsOf, encodeJson, RawJson, sliceAt } from '../../wire/json.ts';
import { type MachineChangeList, machineChangeListSchema } from '../../wire/machine-change.ts';
import { type MachineTurnList, machineTurnListSchema } from '../../wire/machine-turn.ts';
import { parseSettings, portSetting } from '../../wire/settings.ts';
import { VERSION } from '../../wire/version.ts';
import type { CliContext } from '../context.ts';
import { readRun } from '../home/home.ts';
import { localAddress } from './chronos.ts';
import { type Attend, attend, reasonOf, Unanswered } from './unreachable.ts';

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

/** For a router in the same process, which cannot be asked whether it lives. */
const withoutPatience: Attend = (work) => work(AbortSignal.timeout(30_000));

/** Where a router is, what it asks for, and how long one call may take. */
type RouterPlace = { url: string; token?: string | undefined; attend?: Attend };

/**
 * @param options.token `ROUTER_ADMIN_TOKEN`; a router for development needs none
 * @throws ReveilleError `invalid_request` for a token that cannot stand in a header
 */
export function createRouterClient({ url, token, attend: within = withoutPatience }: RouterPlace): RouterClient {
  // `fetch` would repeat such a token in its error message.
  if (token !== undefined && !/^[\x21-\x7e]+$/.test(token))
    throw new ReveilleError('invalid_request', 'ROUTER_ADMIN_TOKEN must be printable ASCII without spaces');

  const call = async (method: 'GET' | 'PUT' | 'POST' | 'DELETE', path: string, body?: unknown): Promise<RawJson> => {
    let status: number;
    let text: string;
    try {
      [status, text] = await within(async (signal) => {
        const response = await fetch(`${url}${path}`, {
          method,
          headers: {
            accept: 'application/json',
            ...(token === undefined ? {} : { authorization: `Bearer ${token}` }),
            ...(body === undefined ? {} : { 'content-type': 'application/json' }),
          },
          body: body === undefined ? null : encodeJson(body),
          redirect: 'manual',
          signal,
        });
        return [response.status, await response.text()];
      });
    } catch (cause) {
      if (cause instanceof Unanswered)
        throw new ReveilleError('unavailable', `the router at ${url} ${cause.message}`, { cause });
      const remedy = 'is it running? start it with "reveille up"';
      throw new ReveilleError('unavailable', `cannot reach the router at ${url} (${reasonOf(cause)}): ${remedy}`, {
        cause,
      });
    }
    if (status === 401) {
      const remedy = 'set it to the token that this router was started with';
      throw new ReveilleError(
        'unauthorized',
        `the router at ${url} does not accept this ROUTER_ADMIN_TOKEN; ${remedy}`,
      );
    }
    return openEnvelope(text, status, `the router at ${url}`);
  };
  const machinePath = (userId: string) => `/admin/machines/${encodeURIComponent(userId)}`;
  const read = <T extends z.ZodType>(schema: T, answer: RawJson): z.output<T> => {
    const result = schema.safeParse(answer.value());
    if (result.success) return result.data;
    const message = `the router at ${url} answered with something unexpected; is it of this version (${VERSION})?`;
    throw new ReveilleError('unavailable', message, { retryable: false, cause: result.error });
  };
  const view = async (answer: Promise<RawJson>) => read(machineViewSchema, await answer);

  return {
    put: async (userId, machine) => read(machinePutAnswerSchema, await call('PUT', machinePath(userId), machine)),
    async list() {
      const machines: MachineView[] = [];
      let cursor: string | undefined;
      do {
        const query = cursor === undefined ? '' : `?cursor=${encodeURIComponent(cursor)}`;
        const page = read(pageSchema, await call('GET', `/admin/machines${query}`));
        machines.push(...page.machines);
        cursor = page.next_cursor;
      } while (cursor !== undefined);
      return machines;
    },
    show: (userId) => view(call('GET', machinePath(userId))),
    async turns(userId, query) {
      const answer = await call('GET', `${machinePath(userId)}/turns?${new URLSearchParams(query)}`);
      const texts = elementsOf(sliceAt(answer.text, ['turns']) ?? '[]') ?? [];
      return { ...read(machineTurnListSchema, answer), texts: texts.map((text) => new RawJson(text)) };
    },
    bound: (userId, budget) =>
      view(
        budget === null
          ? call('DELETE', `${machinePath(userId)}/budget`)
          : call('PUT', `${machinePath(userId)}/budget`, budget),
      ),
    async changes(userId, limit) {
      const query = limit === undefined ? '' : `?limit=${limit}`;
      return read(machineChangeListSchema, await call('GET', `${machinePath(userId)}/changes${query}`));
    },
    suspend: (userId) => view(call('POST', `${machinePath(userId)}/suspend`)),
    restore: (userId) => view(call('POST', `${machinePath(userId)}/restore`)),
    rotateToken: async (userId) =>
      read(machinePutAnswerSchema, await call('POST', `${machinePath(userId)}/rotate-token`)),
    remove: (userId) => view(call('DELETE', machinePath(userId))),
  };
}

const schema = z.object({
  ROUTER_HOST: z.string().optional(),
  ROUTER_PORT: portSetting.default(8088),
  ROUTER_TLS_CERT: z.string().optional(),
});

/** Where this machine's router is, or would be. */
export function routerUrl({ home, settings }: Pick<CliContext, 'home' | 'settings'>): string {
  const { ROUTER_HOST, ROUTER_PORT, ROUTER_TLS_CERT } = parseSettings(schema, settings);
  return readRun(home)?.router_url ?? localAddress(ROUTER_HOST, ROUTER_PORT, ROUTER_TLS_CERT);
}

/** A client for this machine's router. */
export function routerClient(context: Pick<CliContext, 'home' | 'settings' | 'clock'>): RouterClient {
  const { home, clock, settings } = context;
  const url = routerUrl(context);
  return createRouterClient({ url, token: settings.ROUTER_ADMIN_TOKEN, attend: attend({ url, home, clock }) });
}
