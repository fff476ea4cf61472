/**
 * The typed HTTP client of chronosd (docs/reference/api.md, "chronosd: alarms"), used by all other components.
 *
 * A call that needs a principal proves the identity again (challenge, sign, verify) unless the client has a holder for
 * the token. `timeoutMs` limits the whole call, proof included.
 */
import { z } from 'zod';
import { type Clock, systemClock } from '../kit/clock/clock.ts';
import { type Call, callOf, checkToken, createCaller, type LimitedCall, withinTime } from '../kit/http/caller.ts';
import { headerSafe, openStream, StreamRefused } from '../kit/http/exchange.ts';
import type { FollowStreamOptions } from '../kit/http/follow-stream.ts';
import { oneLine } from '../kit/text/hidden-characters.ts';
import { shortIds } from '../kit/text/short-ids.ts';
import {
  type ClientEnded,
  challengeMessage,
  challengeSchema,
  type EnrolledKey,
  type Orphan,
  PERSON_HEADER,
  PRINCIPAL_HEADER,
  principalSchema,
  type Reowned,
  type RotatedKey,
  rotatedSchema,
  rotationMessage,
} from '../wire/agent.ts';
import {
  type AlarmBackfilled,
  type AlarmCreated,
  type AlarmEdited,
  type AlarmPreview,
  type AlarmSort,
  type AlarmTotals,
  type AlarmView,
  type alarmBackfillSchema,
  type alarmCreateSchema,
  alarmIdSchema,
  type alarmPatchSchema,
  type alarmPreviewRequestSchema,
  type CalendarDays,
  type FireView,
  LIST_LIMIT_MAX,
  RAW_ALARM_FIELDS,
} from '../wire/alarm.ts';
import { ALARM_STATUSES, type AlarmKind, type AlarmStatus } from '../wire/alarm-fields.ts';
import type { CalendarFeedMade, CalendarFeedView } from '../wire/calendar-feed.ts';
import { type ChronosEvent, type ChronosEventType, chronosEventSchema } from '../wire/chronos-event.ts';
import { parseDid } from '../wire/did.ts';
import { ReveilleError } from '../wire/errors.ts';
import { ANSWER_DEPTH, elementsOf, parseJsonObject, type RawJson, sliceAt } from '../wire/json.ts';
import type { Route } from '../wire/route.ts';
import type { TurnUsage } from '../wire/usage.ts';
import { showValue } from '../wire/validate.ts';
import { CHRONOS_ROUTES } from './http/routes.ts';

/** The caller's identity, as chronosd needs it. `AgentIdentity` of the identity kit implements it. */
export type Prover = {
  readonly did: string;
  /** 64 hex digits. */
  readonly publicKeyHex: string;
  /** 128 hex digits: the ed25519 signature of the text's UTF-8 form. */
  sign(message: string): string;
  /** Other keys of the label, to be tried when chronosd refuses this one: a rotation may have replaced it. */
  successors?(): readonly { readonly identity: Prover; accepted(): Promise<void> }[];
};

export type Principal = z.output<typeof principalSchema>;
type Challenge = z.output<typeof challengeSchema>;

/** The body of a create; `payload` is given as source text. Instants stay text. */
export type AlarmCreateBody = z.input<typeof alarmCreateSchema>;
/** The body of an edit; `null` removes an optional field. */
export type AlarmPatchBody = z.input<typeof alarmPatchSchema>;

/** The body of a preview; instants are text. */
export type AlarmPreviewBody = z.input<typeof alarmPreviewRequestSchema>;

/** The body of a backfill; instants are text. */
export type AlarmBackfillBody = z.input<typeof alarmBackfillSchema>;

export type AlarmQuery = {
  limit?: number | undefined;
  status?: AlarmStatus | undefined;
  kind?: AlarmKind | undefined;
  cursor?: string | undefined;
  text?: string | undefined;
  sort?: AlarmSort | undefined;
  /** An instant. */
  until?: string | undefined;
};
export type FireQuery = { limit?: number; cursor?: string };
export type EventOptions = FollowStreamOptions & {
  /** Only these; `reset` is always received. */
  types?: readonly ChronosEventType[] | undefined;
  /** Merges the events into `changed`: the first soon after a change, then at most one in this time. */
  coalesceMs?: number | undefined;
};
export type AlarmPage = { alarms: AlarmView[]; count: number; next_cursor?: string };
export type FirePage = { fires: FireView[]; next_cursor?: string };
export type AgentPage = { agents: EnrolledKey[]; count: number; next_cursor?: string };
export type OrphanPage = { orphans: Orphan[]; count: number; next_cursor?: string };
/** The answer to a trigger: the alarm and the created occurrence. */
export type TriggeredAlarm = AlarmView & { fire_id: string };

/**
 * Keeps a principal token between calls of one command, until shortly before it expires. Create one with {@link
 * holdPrincipal}.
 */
export type PrincipalHolder = { entry: { token: string; usableUntil: number } | undefined };

export function holdPrincipal(): PrincipalHolder {
  return { entry: undefined };
}

/** Makes the proof that a person makes one request. */
export type PersonProver = (request: { method: string; path: string; body: string }) => string;

export type ChronosClientOptions = {
  /** The address of chronosd, for example `http://127.0.0.1:9096`. */
  url: string;
  /** The transport bearer, `CHRONOS_TOKEN`. */
  token: string;
  /** For `/v1/admin/*`, `CHRONOS_ADMIN_TOKEN`. */
  adminToken?: string | undefined;
  /** Milliseconds for one call, proof of identity included. */
  timeoutMs?: number | undefined;
  /** Limits each call in another way than `timeoutMs`. */
  attend?: LimitedCall | undefined;
  /** Required by all calls about alarms. */
  identity?: Prover | undefined;
  /** `false`: the key must be known already, and is not pinned as the first of its label. */
  mayPin?: boolean | undefined;
  /** Lets several calls share one proof. Without it every call proves the identity again. */
  principal?: PrincipalHolder | undefined;
  /** Proves that a person sets and changes alarms. Without it they are set by the agent. */
  person?: PersonProver | undefined;
  clock?: Clock | undefined;
};

type CallOptions = {
  /** Cancels the call. A request that chronosd has received may still be carried out. */
  signal?: AbortSignal | undefined;
};

/**
 * Every method rejects with `ReveilleError`: chronosd's own error, or `unavailable` when it cannot be reached in time.
 */
export type ChronosClient = {
  challenge(did: string, options?: CallOptions): Promise<Challenge>;
  /** Proves the identity given, or the client's own. */
  authenticate(identity?: Prover, options?: CallOptions): Promise<Principal>;
  createAlarm(alarm: AlarmCreateBody, options?: CallOptions): Promise<AlarmCreated>;
  /** When an alarm would fire; nothing is stored. */
  previewAlarm(alarm: AlarmPreviewBody, options?: CallOptions): Promise<AlarmPreview>;
  listAlarms(query?: AlarmQuery, options?: CallOptions): Promise<AlarmPage>;
  /** How many alarms are active, and how often they wake in the next 24 hours. */
  alarmTotals(options?: CallOptions): Promise<AlarmTotals>;
  getAlarm(id: string, options?: CallOptions): Promise<AlarmView>;
  cancelAlarm(id: string, options?: CallOptions): Promise<AlarmView>;
  patchAlarm(id: string, changes: AlarmPatchBody, options?: CallOptions): Promise<AlarmEdited>;
  pauseAlarm(id: string, options?: CallOptions): Promise<AlarmView>;
  resumeAlarm(id: string, options?: CallOptions): Promise<AlarmView>;
  triggerAlarm(id: string, options?: CallOptions): Promise<TriggeredAlarm>;
  redriveAlarm(id: string, options?: CallOptions): Promise<AlarmView>;
  /** Fires a series for its instants in a part of the past that were not delivered; `dry_run` only counts them. */
  backfillAlarm(id: string, part: AlarmBackfillBody, options?: CallOptions): Promise<AlarmBackfilled>;
  listFires(id: string, query?: FireQuery, options?: CallOptions): Promise<FirePage>;
  /** Pauses the alarms of a program whose access was revoked, and ends their addresses. */
  endClient(clientId: string, options?: CallOptions): Promise<ClientEnded>;
  /** The days of an installed calendar in a zone. @throws ReveilleError `not_found` if it is missing or unusable */
  getCalendar(name: string, query?: { timezone?: string }, options?: CallOptions): Promise<CalendarDays>;
  /** An address at which calendar apps read the coming fires; only with a proof of a person. It is shown once. */
  createFeed(feed: { name?: string; messages?: boolean }, options?: CallOptions): Promise<CalendarFeedMade>;
  listFeeds(options?: CallOptions): Promise<CalendarFeedView[]>;
  /** @throws ReveilleError `not_found` */
  removeFeed(id: string, options?: CallOptions): Promise<CalendarFeedView>;
  /**
   * The events of the owner's alarms, over any number of connections, until the signal aborts. After `reset`, events may
   * be missing. @throws ReveilleError chronosd's permanent refusals
   */
  events(options: EventOptions): AsyncGenerator<ChronosEvent>;
  enrollAgent(agent: { label: string; public_key: string }, options?: CallOptions): Promise<EnrolledKey>;
  listAgents(query?: { cursor?: string }, options?: CallOptions): Promise<AgentPage>;
  /** Revokes one key of a label, or all of them; returns the keys that this call revoked. */
  revokeAgent(agent: { label: string; public_key?: string }, options?: CallOptions): Promise<EnrolledKey[]>;
  /** Replaces a key by its successor; both sign. Repeated, it is answered as done. */
  rotateKey(from: Prover, to: Prover, options?: CallOptions): Promise<RotatedKey>;
  /** Owners with waiting alarms and no usable key. */
  listOrphans(query?: { cursor?: string }, options?: CallOptions): Promise<OrphanPage>;
  /** Moves all alarms of a label without a usable key to another one. */
  reownAlarms(move: { label: string; to: string }, options?: CallOptions): Promise<Reowned>;
  /** `GET /healthz`: the process is alive. */
  health(options?: CallOptions): Promise<Record<string, unknown>>;
  /** `GET /readyz`: the process can serve requests. */
  ready(options?: CallOptions): Promise<Record<string, unknown>>;
};

const createdSchema = z.looseObject({ id: z.string(), status: z.enum(ALARM_STATUSES), deduped: z.boolean() });

const DEFAULT_TIMEOUT_MS = 30_000;
/** A held token with less than this left is not used, so that it does not expire during the request. */
const EXPIRY_MARGIN_MS = 5_000;

const lost = (remedy: string) => `; it is unknown whether the request was carried out: ${remedy}`;
const REPEAT_SAFELY = lost(
  'send it again with the same idempotency_key; without one, list the alarms before setting it again',
);
const ASK_AGAIN = lost('ask again, which is harmless');
const READ_FIRST = lost('read the alarm before repeating it');
const BACKFILL_AGAIN = lost('send it again, which adds no fire twice');
const ROTATE_AGAIN = lost('rotate again with the same new key, which is harmless');
const REOWN_AGAIN = lost('send it again, which moves the rest');
const END_AGAIN = lost('send it again, which ends the rest');
const LIST_FEEDS = lost('list the calendar feeds before repeating it');
const CANCEL_AGAIN = lost('cancel it again, which is harmless');

/**
 * @throws ReveilleError `invalid_request` for an address or token that cannot be used
 */
export function createChronosClient(options: ChronosClientOptions): ChronosClient {
  const { token, adminToken, principal: holder, clock = systemClock } = options;
  const { timeoutMs = DEFAULT_TIMEOUT_MS, attend = withinTime(clock, timeoutMs) } = options;
  const remedy = 'is chronosd running? start it with "reveille up", or correct the address';
  const tokenName = "chronosd's token";
  const caller = createCaller({ name: 'chronosd', url: options.url, remedy, tokenName });
  for (const secret of [token, adminToken]) checkToken(secret, tokenName);
  const { call: exchange, read: readAnswer, reading } = caller;
  const { person } = options;
  const sign: Call['sign'] = person && ((request) => ({ [PERSON_HEADER]: person(request) }));

  const within = <T>(callOptions: CallOptions | undefined, work: (signal: AbortSignal) => Promise<T>) =>
    attend(work, callOptions?.signal);

  const unexpected = (call: Call, detail: string) =>
    reading(call, () => {
      throw new ReveilleError('unavailable', detail);
    });

  const objectOf = (call: Call, text: string) => reading(call, () => parseJsonObject(text, [], ANSWER_DEPTH));

  /** The source text of each entry of the list called `name`. */
  const listOf = (call: Call, text: string, name: string): string[] =>
    elementsOf(sliceAt(text, [name]) ?? 'null') ?? unexpected(call, `${name} must be a list`);

  /** An alarm, its payload as source text. */
  const viewOf = (call: Call, text: string): AlarmView => {
    const view = reading(call, () => parseJsonObject(text, RAW_ALARM_FIELDS, ANSWER_DEPTH));
    return typeof view.id === 'string' ? (view as AlarmView) : unexpected(call, 'an alarm without an id');
  };

  const challenge = async (did: string, signal: AbortSignal): Promise<Challenge> => {
    const call = callOf(CHRONOS_ROUTES.challenge, {}, { token, body: { did } });
    return readAnswer(call, challengeSchema, await exchange(call, signal));
  };

  /** A nonce for a proof of this identity. A server must not get a signature for anything but this proof. */
  const nonceFor = async (identity: Prover, signal: AbortSignal): Promise<string> => {
    const { did, nonce } = await challenge(identity.did, signal);
    if (did === identity.did && headerSafe(nonce)) return nonce;
    throw new ReveilleError('unavailable', 'chronosd sent a challenge that is not for this identity', {
      retryable: false,
    });
  };

  const prove = async (identity: Prover, mayPin: boolean, signal: AbortSignal): Promise<Principal> => {
    const { did } = identity;
    const nonce = await nonceFor(identity, signal);
    const signature = identity.sign(challengeMessage(did, nonce));
    const known = { did, public_key: identity.publicKeyHex, nonce, signature };
    const body = mayPin ? known : { ...known, pin: false };
    const call = callOf(CHRONOS_ROUTES.verify, {}, { token, body });
    const principal = readAnswer(call, principalSchema, await exchange(call, signal));
    if (!headerSafe(principal.token)) unexpected(call, 'the token contains characters that a header does not allow');
    return principal;
  };

  const authenticate = async (identity: Prover | undefined, signal: AbortSignal): Promise<Principal> => {
    if (!identity) {
      throw new ReveilleError('unauthorized', 'this call needs an agent identity, and the client has none');
    }
    const refused = (thrown: unknown) => thrown instanceof ReveilleError && thrown.code === 'forbidden';
    try {
      return await prove(identity, options.mayPin !== false, signal);
    } catch (thrown) {
      if (!refused(thrown)) throw thrown;
      for (const { identity: successor, accepted } of identity.successors?.() ?? []) {
        const principal = await prove(successor, false, signal).catch((error: unknown) => {
          if (!refused(error)) throw error;
        });
        if (!principal) continue;
        await accepted();
        return principal;
      }
      throw thrown;
    }
  };

  const rotateKey = async (from: Prover, to: Prover, signal: AbortSignal): Promise<RotatedKey> => {
    const nonce = await nonceFor(from, signal);
    const message = rotationMessage(parseDid(from.did)!.label, from.publicKeyHex, to.publicKeyHex, nonce);
    const body = {
      ...{ did: from.did, public_key: from.publicKeyHex, new_public_key: to.publicKeyHex, nonce },
      ...{ signature: from.sign(message), new_signature: to.sign(message) },
    };
    const call = callOf(CHRONOS_ROUTES.rotateKey, {}, { token, body, ifLost: ROTATE_AGAIN });
    return readAnswer(call, rotatedSchema, await exchange(call, signal));
  };

  const freshToken = async (signal: AbortSignal): Promise<string> => {
    const proved = await authenticate(options.identity, signal);
    const usableUntil = clock.monotonic() + proved.expires_in * 1000 - EXPIRY_MARGIN_MS;
    if (holder) holder.entry = { token: proved.token, usableUntil };
    return proved.token;
  };

  const withPrincipal = (call: Call, principal: string): Call => ({
    ...{ ...call, token },
    headers: { [PRINCIPAL_HEADER]: principal },
  });

  /** A call about alarms, with the transport bearer and a principal token. */
  const asPrincipal = async (call: Call, signal: AbortSignal): Promise<RawJson> => {
    const cached = holder?.entry;
    if (cached && cached.usableUntil > clock.monotonic()) {
      try {
        return await exchange(withPrincipal(call, cached.token), signal);
      } catch (thrown) {
        // The held token may have become invalid early (chronosd has another secret, the key was revoked): one new
        // proof decides.
        if (!(thrown instanceof ReveilleError) || thrown.code !== 'unauthorized') throw thrown;
      }
    }
    return exchange(withPrincipal(call, await freshToken(signal)), signal);
  };

  /** Opens one connection for events. */
  const openEvents = async (url: URL, resume: Record<string, string>, signal: AbortSignal) => {
    const bearer = { authorization: `Bearer ${token}`, ...resume };
    const open = (principal: string) =>
      openStream(url, { headers: { ...bearer, [PRINCIPAL_HEADER]: principal }, signal });
    const cached = holder?.entry;
    if (cached && cached.usableUntil > clock.monotonic()) {
      try {
        return await open(cached.token);
      } catch (thrown) {
        if (!(thrown instanceof StreamRefused) || thrown.status !== 401) throw thrown;
      }
    }
    return open(await attend((limited) => freshToken(limited), signal));
  };

  async function* events({ types, coalesceMs, ...follow }: EventOptions): AsyncGenerator<ChronosEvent> {
    // Most commands follow nothing, and the parser would cost each of them time at its start.
    const { followStream } = await import('../kit/http/follow-stream.ts');
    const url = new URL(`${options.url.replace(/\/$/, '')}${CHRONOS_ROUTES.events.path}`);
    if (types) url.searchParams.set('types', types.join(','));
    if (coalesceMs !== undefined) url.searchParams.set('coalesce_ms', String(coalesceMs));
    const read = (_type: string, data: unknown) => chronosEventSchema.safeParse(data).data;
    const open = (resume: Record<string, string>, signal: AbortSignal) => openEvents(url, resume, signal);
    yield* followStream({ open, read, name: `chronosd at ${options.url}`, clock }, follow);
  }

  const alarmCall = (call: Call, callOptions?: CallOptions): Promise<AlarmView> =>
    within(callOptions, async (signal) => viewOf(call, (await asPrincipal(call, signal)).text));

  type AlarmAction = (typeof CHRONOS_ROUTES)[`${'pause' | 'resume' | 'trigger' | 'redrive'}Alarm`];
  const act = (id: string, route: AlarmAction, callOptions?: CallOptions) =>
    alarmCall(callOf<AlarmAction>(route, { id }, { sign, ifLost: READ_FIRST }), callOptions);

  const adminCall = (call: Call, signal: AbortSignal): Promise<RawJson> => {
    if (adminToken === undefined) {
      throw new ReveilleError('unauthorized', 'this call needs the admin token of chronosd; set CHRONOS_ADMIN_TOKEN');
    }
    return exchange({ ...call, token: adminToken }, signal);
  };

  const probe = (route: Route, callOptions?: CallOptions) => {
    const call = callOf(route, {});
    return within(callOptions, async (signal) => objectOf(call, (await exchange(call, signal)).text));
  };

  return {
    challenge: (did, callOptions) => within(callOptions, (signal) => challenge(did, signal)),
    authenticate: (identity = options.identity, callOptions = undefined) =>
      within(callOptions, (signal) => authenticate(identity, signal)),
    createAlarm: (alarm, callOptions) =>
      within(callOptions, async (signal) => {
        const call = callOf(CHRONOS_ROUTES.createAlarm, {}, { body: alarm, sign, ifLost: REPEAT_SAFELY });
        return readAnswer(call, createdSchema, await asPrincipal(call, signal)) as AlarmCreated;
      }),
    previewAlarm: (alarm, callOptions) =>
      within(callOptions, async (signal) => {
        const call = callOf(CHRONOS_ROUTES.previewAlarm, {}, { body: alarm, ifLost: ASK_AGAIN });
        const { text } = await asPrincipal(call, signal);
        listOf(call, text, 'occurrences');
        return objectOf(call, text) as AlarmPreview;
      }),
    listAlarms: (query, callOptions) =>
      within(callOptions, async (signal) => {
        const call = callOf(CHRONOS_ROUTES.listAlarms, {}, { query, sign });
        const { text } = await asPrincipal(call, signal);
        const page = objectOf(call, text);
        const alarms = listOf(call, text, 'alarms').map((element) => viewOf(call, element));
        return { ...page, alarms } as AlarmPage;
      }),
    alarmTotals: (callOptions) =>
      within(callOptions, async (signal) => {
        const call = callOf(CHRONOS_ROUTES.alarmTotals, {}, { sign });
        return readAnswer(call, CHRONOS_ROUTES.alarmTotals.data, await asPrincipal(call, signal));
      }),
    getAlarm: (id, callOptions) => alarmCall(callOf(CHRONOS_ROUTES.getAlarm, { id }, { sign }), callOptions),
    cancelAlarm: (id, callOptions) =>
      alarmCall(callOf(CHRONOS_ROUTES.cancelAlarm, { id }, { sign, ifLost: CANCEL_AGAIN }), callOptions),
    patchAlarm: (id, changes, callOptions) =>
      alarmCall(callOf(CHRONOS_ROUTES.patchAlarm, { id }, { body: changes, sign, ifLost: READ_FIRST }), callOptions),
    pauseAlarm: (id, callOptions) => act(id, CHRONOS_ROUTES.pauseAlarm, callOptions),
    resumeAlarm: (id, callOptions) => act(id, CHRONOS_ROUTES.resumeAlarm, callOptions),
    triggerAlarm: (id, callOptions) => act(id, CHRONOS_ROUTES.triggerAlarm, callOptions) as Promise<TriggeredAlarm>,
    backfillAlarm: (id, part, callOptions) =>
      alarmCall(
        callOf(CHRONOS_ROUTES.backfillAlarm, { id }, { body: part, sign, ifLost: BACKFILL_AGAIN }),
        callOptions,
      ) as Promise<AlarmBackfilled>,
    redriveAlarm: (id, callOptions) => act(id, CHRONOS_ROUTES.redriveAlarm, callOptions),
    listFires: (id, query, callOptions) =>
      within(callOptions, async (signal) => {
        const call = callOf(CHRONOS_ROUTES.listFires, { id }, { query, sign });
        const { text } = await asPrincipal(call, signal);
        listOf(call, text, 'fires');
        return objectOf(call, text) as FirePage;
      }),
    endClient: (client_id, callOptions) =>
      within(callOptions, async (signal) => {
        const call = callOf(CHRONOS_ROUTES.endClient, {}, { body: { client_id }, sign, ifLost: END_AGAIN });
        return readAnswer(call, CHRONOS_ROUTES.endClient.data, await asPrincipal(call, signal));
      }),
    getCalendar: (name, query, callOptions) =>
      within(callOptions, async (signal) => {
        const call = callOf(CHRONOS_ROUTES.getCalendar, { name }, { query });
        return readAnswer(call, CHRONOS_ROUTES.getCalendar.data, await asPrincipal(call, signal));
      }),
    createFeed: (feed, callOptions) =>
      within(callOptions, async (signal) => {
        const call = callOf(CHRONOS_ROUTES.createFeed, {}, { body: feed, sign, ifLost: LIST_FEEDS });
        return readAnswer(call, CHRONOS_ROUTES.createFeed.data, await asPrincipal(call, signal));
      }),
    listFeeds: (callOptions) =>
      within(callOptions, async (signal) => {
        const call = callOf(CHRONOS_ROUTES.listFeeds, {}, { sign });
        return readAnswer(call, CHRONOS_ROUTES.listFeeds.data, await asPrincipal(call, signal)).feeds;
      }),
    removeFeed: (id, callOptions) =>
      within(callOptions, async (signal) => {
        const call = callOf(CHRONOS_ROUTES.removeFeed, { id }, { sign, ifLost: LIST_FEEDS });
        return readAnswer(call, CHRONOS_ROUTES.removeFeed.data, await asPrincipal(call, signal));
      }),
    events,
    enrollAgent: (agent, callOptions) =>
      within(callOptions, async (signal) => {
        const call = callOf(CHRONOS_ROUTES.enrollAgent, {}, { body: agent });
        return readAnswer(call, CHRONOS_ROUTES.enrollAgent.data, await adminCall(call, signal));
      }),
    listAgents: (query, callOptions) =>
      within(callOptions, async (signal) => {
        const call = callOf(CHRONOS_ROUTES.listAgents, {}, { query });
        return readAnswer(call, CHRONOS_ROUTES.listAgents.data, await adminCall(call, signal)) as AgentPage;
      }),
    revokeAgent: (agent, callOptions) =>
      within(callOptions, async (signal) => {
        const call = callOf(CHRONOS_ROUTES.revokeAgent, {}, { body: agent });
        return readAnswer(call, CHRONOS_ROUTES.revokeAgent.data, await adminCall(call, signal)).revoked;
      }),
    rotateKey: (from, to, callOptions) => within(callOptions, (signal) => rotateKey(from, to, signal)),
    listOrphans: (query, callOptions) =>
      within(callOptions, async (signal) => {
        const call = callOf(CHRONOS_ROUTES.listOrphans, {}, { query });
        return readAnswer(call, CHRONOS_ROUTES.listOrphans.data, await adminCall(call, signal)) as OrphanPage;
      }),
    reownAlarms: (move, callOptions) =>
      within(callOptions, async (signal) => {
        const call = callOf(CHRONOS_ROUTES.reownAlarms, {}, { body: move, ifLost: REOWN_AGAIN });
        return readAnswer(call, CHRONOS_ROUTES.reownAlarms.data, await adminCall(call, signal));
      }),
    health: (callOptions) => probe(CHRONOS_ROUTES.health, callOptions),
    ready: (callOptions) => probe(CHRONOS_ROUTES.ready, callOptions),
  };
}

/**
 * All alarms that match a query, newest first. The next page is requested when the previous one is consumed.
 *
 * @throws ReveilleError as the client
 */
export async function* eachAlarm(
  client: Pick<ChronosClient, 'listAlarms'>,
  query: Omit<AlarmQuery, 'limit' | 'cursor'> = {},
  options?: CallOptions,
): AsyncGenerator<AlarmView, void, void> {
  let cursor: string | undefined;
  do {
    const request = { ...query, limit: LIST_LIMIT_MAX, ...(cursor === undefined ? {} : { cursor }) };
    const page = await client.listAlarms(request, options);
    yield* page.alarms;
    cursor = page.next_cursor;
  } while (cursor !== undefined);
}

/** Statuses that are not final: active, paused, and failed until it is resolved. */
export const PRESENT: readonly AlarmStatus[] = ['active', 'paused', 'failed'];

const SHORTEST_PREFIX = 6;
const PREFIX = /^[0-9a-f][0-9a-f-]*$/;
/** Alarms listed when a name is ambiguous, and characters of their texts. */
const NAMED = 5;
const NAME_CHARACTERS = 30;

function ambiguous(word: string, found: readonly AlarmView[]): ReveilleError {
  const ids = shortIds(found.map(({ id }) => id));
  const nameOf = ({ label, wake_message: message }: AlarmView) => {
    const text = oneLine(label === '' ? message : `${label}: ${message}`);
    return text.length > NAME_CHARACTERS ? `${text.slice(0, NAME_CHARACTERS).toWellFormed()}…` : text;
  };
  const named = found.slice(0, NAMED).map((alarm) => `${ids.get(alarm.id)} (${nameOf(alarm)})`);
  const others = found.length > NAMED ? ', and others' : '';
  return new ReveilleError('conflict', `${word} matches ${named.join(', ')}${others}; give more of the id`);
}

type Lister = Pick<ChronosClient, 'listAlarms'>;

async function beginningWith(client: Lister, prefix: string, options: CallOptions): Promise<AlarmView[]> {
  const found: AlarmView[] = [];
  for await (const alarm of eachAlarm(client, {}, options)) {
    // Ids are UUIDv7, newest first: no match follows below the prefix.
    if (alarm.id < prefix) break;
    if (alarm.id.startsWith(prefix)) found.push(alarm);
  }
  return found;
}

/** The longest text that a search takes, and that a label can be. */
const LABEL_MAX = 200;

/** Alarms with this label: active ones, else paused or failed ones, else finished ones. */
async function labelled(client: Lister, label: string, options: CallOptions): Promise<AlarmView[]> {
  if (label.length > LABEL_MAX) return [];
  for (const status of [...PRESENT, undefined]) {
    const found: AlarmView[] = [];
    for await (const alarm of eachAlarm(client, { status, text: label }, options))
      if (alarm.label === label) found.push(alarm);
    if (found.length > 0) return found;
  }
  return [];
}

/**
 * The id of an alarm of the caller.
 *
 * @param given an id, its first six or more characters in any case, or an exact label
 * @param options.remedy where the caller finds its alarms, for an error
 * @throws ReveilleError `not_found` or `conflict` when no alarm, or more than one, matches
 */
export async function alarmIdOf(
  client: Lister,
  given: string,
  { remedy, ...options }: CallOptions & { remedy: string },
): Promise<string> {
  const prefix = given.toLowerCase();
  if (alarmIdSchema.safeParse(prefix).success) return prefix;
  const mayBeId = prefix.length >= SHORTEST_PREFIX && PREFIX.test(prefix);
  const byId = mayBeId ? await beginningWith(client, prefix, options) : [];
  const found = byId.length > 0 || given === '' ? byId : await labelled(client, given, options);
  if (found.length > 1) throw ambiguous(showValue(given), found);
  const [only] = found;
  if (only) return only.id;
  throw new ReveilleError(
    'not_found',
    `no alarm has the id or label ${showValue(given)}; ${remedy} (an id may be shortened to ${SHORTEST_PREFIX} characters)`,
  );
}

/**
 * The attempts at an alarm, latest first, in whole pages: all that began since an instant, and some before it.
 *
 * @param from epoch milliseconds
 * @param limit attempts per page
 * @throws ReveilleError as the client
 */
export async function firesSince(
  client: Pick<ChronosClient, 'listFires'>,
  id: string,
  { from, limit = LIST_LIMIT_MAX }: { from: number; limit?: number },
  options?: CallOptions,
): Promise<FireView[]> {
  const fires: FireView[] = [];
  let cursor: string | undefined;
  do {
    const page = await client.listFires(id, { limit, ...(cursor === undefined ? {} : { cursor }) }, options);
    fires.push(...page.fires);
    const last = page.fires.at(-1);
    cursor = last && Date.parse(last.started_at) >= from ? page.next_cursor : undefined;
  } while (cursor !== undefined);
  return fires;
}

/** The longest time for which a turn is followed after its start. */
export const LONGEST_TURN_MS = 25 * 3_600_000;

/**
 * Whether further reports about the turn of an attempt are expected.
 *
 * @param now epoch milliseconds
 * @param firstReportTimeoutMs how long to wait for the first report of a turn
 */
export function isTurnOpen(
  { outcome, finished_at, turn }: FireView,
  now: number,
  firstReportTimeoutMs = LONGEST_TURN_MS,
): boolean {
  if (turn?.finished_at !== undefined || (outcome !== 'delivered' && turn === undefined)) return false;
  return now - Date.parse(finished_at) < (turn === undefined ? firstReportTimeoutMs : LONGEST_TURN_MS);
}

export type UsageReaderOptions = {
  /** chronosd's base address; `undefined` while it is unknown. */
  url: () => string | undefined;
  /** Shared with chronosd; absent only in development. */
  token: string | undefined;
  clock: Clock;
};

/** A wake waits for the answer. */
const USAGE_MS = 3_000;

/**
 * Asks what the turns of fires used, for a router. The answer has the ended ones, with `unknown` where no usage
 * was reported. Rejects with `unavailable`.
 */
export function usageReader({ url: urlOf, token, clock }: UsageReaderOptions) {
  const attend = withinTime(clock, USAGE_MS);
  return async (userId: string, fireIds: readonly string[]): Promise<Map<string, TurnUsage | 'unknown'>> => {
    const url = urlOf();
    if (url === undefined) throw new ReveilleError('unavailable', 'the address of chronosd is not known yet');
    const remedy = 'is it running?';
    const { call, read } = createCaller({ name: 'chronosd', url, remedy, tokenName: 'ROUTER_WAKE_TOKEN' });
    const body = { user_id: userId, fire_ids: [...fireIds] };
    const request = callOf(CHRONOS_ROUTES.usageOfTurns, {}, { token, body });
    const { turns } = read(request, CHRONOS_ROUTES.usageOfTurns.data, await attend((signal) => call(request, signal)));
    return new Map(turns.map(({ fire_id, usage = 'unknown' as const }) => [fire_id, usage]));
  };
}
