/**
 * `/langgraph` of the router's public listener: the routes that LangGraph's `CronsClient` calls. Each request acts for
 * the user of the token in `x-api-key`.
 */
import { type ChronosClient, eachAlarm } from '../chronos/client.ts';
import type { Clock } from '../kit/clock/clock.ts';
import { bearerOf } from '../kit/http/bearer.ts';
import { markProved } from '../kit/http/body.ts';
import { type AlarmView, alarmIdSchema } from '../wire/alarm.ts';
import { ReveilleError, toReveilleError } from '../wire/errors.ts';
import { encodeJson, refuseDeepNesting } from '../wire/json.ts';
import { utf8Bytes } from '../wire/text.ts';
import {
  alarmOf,
  type Cron,
  type CronFilter,
  type CronKey,
  type CronSearch,
  changesOf,
  cronOf,
  isWanted,
  keyOf,
  pageOf,
  readFilter,
  readSearch,
  selectedOf,
} from './crons.ts';

const LANGGRAPH_ROOT = '/langgraph';
const BODY_BYTES = 128 * 1024;
const ANSWER_BYTES = 8 * 1024 * 1024;

/** Clients of chronosd are cached, so that not every request proves the user's key: how many, and for how long. */
const MOST_CLIENTS = 500;
const KEPT_MS = 10 * 60_000;

/** The user of a verified token. */
type LanggraphUser = { readonly user: string; readonly credential: string; readonly rights: string };

export type LanggraphOptions = {
  /** The user of a token; `undefined` for a wrong one. @throws ReveilleError `rate_limited` while it is locked */
  readonly authenticate: (token: string, remoteAddress: string) => LanggraphUser | undefined;
  /** Admits one request of a user. @returns releases its slot */
  readonly enter: (userId: string, kind: 'requests') => () => void;
  /** A client with the user's rights at chronosd. @throws ReveilleError `forbidden` if the token has no such rights */
  readonly clientFor: (user: LanggraphUser) => ChronosClient | Promise<ChronosClient>;
  readonly clock: Pick<Clock, 'monotonic' | 'now'>;
};

type LanggraphService = {
  readonly name: string;
  owns(target: string): boolean;
  readonly bodyBytes: number;
  answer(request: Request, info: { readonly remoteAddress: string }): Promise<Response>;
  figures(): Readonly<Record<string, number>>;
  close(): Promise<void>;
};

const JSON_TYPE = { 'content-type': 'application/json; charset=utf-8', 'cache-control': 'no-store' };
const json = (data: unknown) => new Response(encodeJson(data), { headers: JSON_TYPE });

/** The same answer for an id that is malformed, unknown, of another user, or of an alarm that is not a cron. */
const noSuchCron = () => new ReveilleError('not_found', 'there is no such cron');

/** An error in the form that LangGraph's client reads: it shows `detail`. */
function failure(error: ReveilleError): Response {
  const { status, retryAfterSeconds } = error;
  const detail = error.code === 'internal' ? 'the request failed' : error.message;
  return new Response(JSON.stringify({ detail }), {
    status,
    headers: {
      ...JSON_TYPE,
      ...(retryAfterSeconds !== undefined && { 'retry-after': String(Math.max(0, Math.ceil(retryAfterSeconds))) }),
    },
  });
}

/** The crons of a user. */
class Crons {
  readonly #client: ChronosClient;
  readonly #user: string;
  readonly #clock: LanggraphOptions['clock'];

  constructor(client: ChronosClient, user: string, clock: LanggraphOptions['clock']) {
    this.#client = client;
    this.#user = user;
    this.#clock = clock;
  }

  #shown(alarm: AlarmView): Cron {
    const cron = cronOf(alarm, this.#user);
    if (cron === undefined) throw noSuchCron();
    return cron;
  }

  async #alarm(id: string): Promise<AlarmView> {
    if (!alarmIdSchema.safeParse(id).success) throw noSuchCron();
    const alarm = await this.#client.getAlarm(id).catch((thrown: unknown) => {
      if (thrown instanceof ReveilleError && thrown.code === 'not_found') throw noSuchCron();
      throw thrown;
    });
    this.#shown(alarm);
    return alarm;
  }

  async create(text: string, threadId: string | undefined): Promise<Cron> {
    const { alarm, enabled } = alarmOf(text, threadId);
    const { id } = await this.#client.createAlarm(alarm);
    return this.#shown(enabled ? await this.#client.getAlarm(id) : await this.#client.pauseAlarm(id));
  }

  async update(id: string, text: string): Promise<Cron> {
    const before = await this.#alarm(id);
    const { changes, enabled } = changesOf(text, before, this.#clock.now());
    if (Object.keys(changes).length > 0) await this.#client.patchAlarm(id, changes);
    if (enabled === true && before.status === 'paused') await this.#client.resumeAlarm(id);
    if (enabled === false && before.status === 'active') await this.#client.pauseAlarm(id);
    return this.#shown(await this.#client.getAlarm(id));
  }

  async delete(id: string): Promise<void> {
    await this.#alarm(id);
    await this.#client.cancelAlarm(id);
  }

  async *#each(filter: CronFilter): AsyncGenerator<Cron> {
    const wanted = filter.enabled;
    for (const status of ['active', 'paused'] as const) {
      if (wanted != null && wanted !== (status === 'active')) continue;
      for await (const alarm of eachAlarm(this.#client, { status, kind: 'cron' })) {
        const cron = cronOf(alarm, this.#user);
        if (cron !== undefined && isWanted(cron, filter)) yield cron;
      }
    }
  }

  /**
   * One page of the crons that match. It keeps their ids and what they are sorted by, and then reads those of the page,
   * so that its memory does not grow with the texts of the user's crons.
   */
  async search(search: CronSearch): Promise<readonly object[]> {
    const keys: CronKey[] = [];
    for await (const cron of this.#each(search)) keys.push(keyOf(cron, search));
    const page: object[] = [];
    let bytes = 0;
    for (const { id } of pageOf(keys, search)) {
      // It may have been cancelled since.
      const cron = cronOf(await this.#client.getAlarm(id), this.#user);
      if (cron === undefined) continue;
      const shown = selectedOf(cron, search);
      bytes += utf8Bytes(encodeJson(shown));
      if (bytes > ANSWER_BYTES)
        throw new ReveilleError(
          'invalid_request',
          `the answer has more than ${ANSWER_BYTES} bytes; use a smaller limit, or select fewer members`,
        );
      page.push(shown);
    }
    return page;
  }

  async count(filter: CronFilter): Promise<number> {
    let count = 0;
    for await (const _ of this.#each(filter)) count++;
    return count;
  }
}

/** The answer to a route below the root. @throws ReveilleError */
async function route(crons: Crons, method: string, path: string, text: string): Promise<Response> {
  const segments = segmentsOf(path);
  const [first, second, third, fourth] = segments;
  if (method === 'POST' && segments.length === 4 && first === 'threads' && third === 'runs' && fourth === 'crons')
    return json(await crons.create(text, second));
  if (first !== 'runs' || second !== 'crons' || segments.length > 3) throw noSuchRoute();
  if (third === undefined) {
    if (method !== 'POST') throw noSuchRoute();
    return json(await crons.create(text, undefined));
  }
  if (method === 'POST' && third === 'search') {
    return json(await crons.search(readSearch(text)));
  }
  if (method === 'POST' && third === 'count') return json(await crons.count(readFilter(text)));
  if (method === 'PATCH') return json(await crons.update(third, text));
  if (method !== 'DELETE') throw noSuchRoute();
  await crons.delete(third);
  return new Response(null, { status: 204 });
}

function segmentsOf(path: string): string[] {
  try {
    return path.split('/').slice(1).map(decodeURIComponent);
  } catch (thrown) {
    if (thrown instanceof URIError) throw noSuchRoute();
    throw thrown;
  }
}

const noSuchRoute = () =>
  new ReveilleError('not_found', 'this server has only the crons of LangGraph: no threads, runs, assistants or store');

export function createLanggraph({ authenticate, enter, clientFor, clock }: LanggraphOptions): LanggraphService {
  const counts = { answered: 0, refused: 0, unauthorized: 0 };
  const clients = new Map<string, { client: ChronosClient; usedAt: number }>();

  async function clientOf(user: LanggraphUser): Promise<ChronosClient> {
    const now = clock.monotonic();
    const key = `${user.user} ${user.credential}`;
    const client = clients.get(key)?.client ?? (await clientFor(user));
    clients.delete(key);
    clients.set(key, { client, usedAt: now });
    // Ordered by last use.
    for (const [oldest, { usedAt }] of clients) {
      if (now - usedAt < KEPT_MS && clients.size <= MOST_CLIENTS) break;
      clients.delete(oldest);
    }
    return client;
  }

  async function answer(request: Request, remoteAddress: string): Promise<Response> {
    const given = request.headers.get('x-api-key') ?? bearerOf(request.headers.get('authorization') ?? undefined);
    const user = given ? authenticate(given, remoteAddress) : undefined;
    if (user === undefined) {
      counts.unauthorized++;
      throw new ReveilleError('unauthorized', 'x-api-key must be a valid token of a user');
    }
    markProved(request);
    const leave = enter(user.user, 'requests');
    try {
      const text = await request.text();
      refuseDeepNesting(text);
      const { pathname } = new URL(request.url);
      const crons = new Crons(await clientOf(user), user.user, clock);
      return await route(crons, request.method, pathname.slice(LANGGRAPH_ROOT.length), text);
    } catch (thrown) {
      if (thrown instanceof SyntaxError)
        throw new ReveilleError('invalid_request', 'the body must be JSON', { cause: thrown });
      throw thrown;
    } finally {
      leave();
    }
  }

  return {
    name: 'langgraph',
    owns: (target) => target.startsWith(`${LANGGRAPH_ROOT}/`),
    bodyBytes: BODY_BYTES,
    async answer(request, { remoteAddress }) {
      try {
        const response = await answer(request, remoteAddress);
        counts.answered++;
        return response;
      } catch (thrown) {
        const error = toReveilleError(thrown);
        if (error.code !== 'unauthorized') counts.refused++;
        return failure(error);
      }
    },
    figures: () => ({ ...counts }),
    async close() {
      clients.clear();
    },
  };
}
