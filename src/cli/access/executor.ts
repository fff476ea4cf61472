/** The executor's routes (contracts §6), as far as commands need them, and which executor the commands of this machine talk to. */
import { z } from 'zod';
import { shellWord } from '../../kit/identity/private-file.ts';
import { openEnvelope } from '../../wire/envelope.ts';
import { ReveilleError } from '../../wire/errors.ts';
import {
  type GateAnswer,
  gateListSchema,
  type IntentRequest,
  type IntentStatus,
  intentAcceptedSchema,
  intentStateSchema,
} from '../../wire/executor.ts';
import { type IntentView, intentListSchema, intentViewSchema } from '../../wire/intent-view.ts';
import { elementsOf, encodeJson, RawJson, sliceAt } from '../../wire/json.ts';
import { parseSettings, portSetting, urlSetting } from '../../wire/settings.ts';
import { VERSION } from '../../wire/version.ts';
import { WAKE_HEADERS } from '../../wire/wake.ts';
import type { CliContext } from '../context.ts';
import { userOf } from '../flags/machine-user.ts';
import { readRun } from '../home/home.ts';
import { localAddress } from './chronos.ts';
import { type Attend, attend, reasonOf, Unanswered } from './unreachable.ts';

export type WaitingGate = z.output<typeof gateListSchema>['pending'][number];
type IntentState = z.output<typeof intentStateSchema>;

/** What was read, and the text that it was read from, whose numbers have all their digits. */
export type Told<T> = { readonly value: T; readonly text: RawJson };

const schema = z.object({
  NEO_EXECUTOR_URL: urlSetting.optional(),
  NEO_EXECUTOR_TOKEN: z.string().optional(),
  EXECUTOR_HOST: z.string().optional(),
  EXECUTOR_TLS_CERT: z.string().optional(),
  EXECUTOR_PORT: portSetting.default(8081),
  EXECUTOR_TOKEN: z.string().optional(),
});

export type ExecutorPlace = { readonly url: string; readonly token: string | undefined };

/** Finds the executor: the one that the agent's tasks go to, else what runs here, else where it would listen. */
export function findExecutor({
  home,
  settings,
}: Pick<CliContext, 'home' | 'settings'>): ExecutorPlace & { readonly isHere: boolean } {
  const given = parseSettings(schema, settings);
  const here =
    readRun(home)?.executor_url ?? localAddress(given.EXECUTOR_HOST, given.EXECUTOR_PORT, given.EXECUTOR_TLS_CERT);
  const url = given.NEO_EXECUTOR_URL ?? here;
  // The token of this machine's executor goes to no other.
  const isHere = url === here;
  return { url, token: given.NEO_EXECUTOR_TOKEN ?? (isHere ? given.EXECUTOR_TOKEN : undefined), isHere };
}

type Method = 'GET' | 'POST' | 'DELETE';

/** A request that was sent and not answered may have been taken, and may still be: what is not known, and how to find out. */
type Doubt = { readonly taken: string; readonly remedy: string };

/** These mean that no connection came about: nothing was sent. */
const NOT_SENT = new Set([
  'ECONNREFUSED',
  'ENOTFOUND',
  'EAI_AGAIN',
  'bad port',
  'EHOSTUNREACH',
  'ENETUNREACH',
  'UND_ERR_CONNECT_TIMEOUT',
]);

const doubtWords = ({ taken, remedy }: Doubt) =>
  `. It is not known whether ${taken} was taken; it may still be carried out. ${remedy}`;

/**
 * Speaks to an executor with one token.
 *
 * @throws ReveilleError `invalid_request` for a token that cannot stand in a header
 */
export function executorExchange(
  { url, token }: ExecutorPlace,
  { tokenName, within, more = {} }: { tokenName: string; within: Attend; more?: Readonly<Record<string, string>> },
) {
  if (token !== undefined && !/^[\x21-\x7e]+$/.test(token))
    throw new ReveilleError('invalid_request', `${tokenName} must be printable ASCII without spaces`);
  const headers: Record<string, string> = {
    ...more,
    ...(token === undefined ? {} : { authorization: `Bearer ${token}` }),
  };
  const call = async (method: Method, path: string, body?: unknown, doubt?: Doubt): Promise<RawJson> => {
    let status: number;
    let text: string;
    try {
      [status, text] = await within(async (signal) => {
        const response = await fetch(`${url}${path}`, {
          method,
          headers: { ...headers, accept: 'application/json', 'content-type': 'application/json' },
          body: body === undefined ? null : encodeJson(body),
          redirect: 'manual',
          signal,
        });
        return [response.status, await response.text()];
      });
    } catch (cause) {
      const reason = reasonOf(cause);
      const lost = doubt === undefined || NOT_SENT.has(reason) ? '' : doubtWords(doubt);
      if (cause instanceof Unanswered)
        throw new ReveilleError('unavailable', `the executor at ${url} ${cause.message}${lost}`, { cause });
      const remedy = 'is it running? start it with "reveille up" or "reveille executor"';
      throw new ReveilleError('unavailable', `cannot reach the executor at ${url} (${reason}): ${remedy}${lost}`, {
        cause,
      });
    }
    return openEnvelope(text, status, `the executor at ${url}`);
  };
  const read = <T extends z.ZodType>(as: T, text: RawJson): Told<z.output<T>> => {
    const result = as.safeParse(text.value());
    if (result.success) return { value: result.data, text };
    const message = `the executor at ${url} answered with something unexpected; is it of this version (${VERSION})?`;
    throw new ReveilleError('unavailable', message, { retryable: false, cause: result.error });
  };
  return { headers, call, read };
}

function createExecutorClient(place: ExecutorPlace, user: string, within: Attend) {
  const { url } = place;
  const { headers, call, read } = executorExchange(place, {
    tokenName: 'EXECUTOR_TOKEN',
    within,
    more: { [WAKE_HEADERS.user]: user },
  });
  const at = (intentId: string, rest = '') => `/intents/${encodeURIComponent(intentId)}${rest}`;
  const looked = (taken: string, intentId: string): Doubt => ({
    taken,
    remedy: `Look with: reveille intent show ${intentId}`,
  });

  return {
    url,
    async submit(request: IntentRequest & { idempotency_key: string }): Promise<string> {
      const again = `the same command with: --idempotency-key ${shellWord(request.idempotency_key)}`;
      const doubt = { taken: 'your task', remedy: `Look with "reveille intent list", or repeat it safely: ${again}` };
      return read(intentAcceptedSchema, await call('POST', '/messages/async', request, doubt)).value.intent_id;
    },
    async list(query: { status?: IntentStatus | undefined; limit?: number | undefined }): Promise<Told<IntentView>[]> {
      const given = new URLSearchParams();
      for (const [name, value] of Object.entries(query)) if (value !== undefined) given.set(name, String(value));
      const text = await call('GET', `/intents?${given}`);
      const intents = read(intentListSchema, text).value.intents;
      const texts = elementsOf(sliceAt(text.text, ['intents']) ?? '[]') ?? [];
      return intents.map((value, index) => ({ value, text: new RawJson(texts[index]!) }));
    },
    view: async (intentId: string): Promise<Told<IntentView>> =>
      read(intentViewSchema, await call('GET', at(intentId))),
    async gates(intentId: string): Promise<readonly WaitingGate[]> {
      return read(gateListSchema, await call('GET', at(intentId, '/gates'))).value.pending;
    },
    async answer(intentId: string, nodeId: string, answer: GateAnswer): Promise<void> {
      const doubt = looked(answer.approved ? 'your approval' : 'your refusal', intentId);
      await call('POST', at(intentId, `/gates/${encodeURIComponent(nodeId)}/answer`), answer, doubt);
    },
    cancel: async (intentId: string): Promise<Told<IntentState>> =>
      read(
        intentStateSchema,
        await call('POST', at(intentId, '/cancel'), undefined, looked('the cancelling', intentId)),
      ),
    reconcile: async (intentId: string): Promise<Told<IntentState>> =>
      read(
        intentStateSchema,
        await call('POST', at(intentId, '/reconcile'), undefined, looked('the request to ask again', intentId)),
      ),
    /** As its source text: a verifier wants the very bytes. */
    receipt: (intentId: string): Promise<RawJson> => call('GET', at(intentId, '/receipt')),
    /** Opens the event stream of an intent; resolves when it stands. */
    async openEvents(intentId: string, signal: AbortSignal): Promise<ReadableStream<Uint8Array>> {
      const response = await fetch(`${url}/events?intent_id=${encodeURIComponent(intentId)}`, {
        headers: { ...headers, accept: 'text/event-stream' },
        redirect: 'manual',
        signal,
      });
      if (response.status === 200 && response.body) return response.body;
      await response.body?.cancel();
      throw new Error(`the executor answered ${response.status} instead of an event stream`);
    },
  };
}
export type ExecutorClient = ReturnType<typeof createExecutorClient>;

/** A client for the intents of one user: the one named, or this machine's own. */
export function executorClient(context: CliContext, user: string | undefined): ExecutorClient {
  const { home, clock } = context;
  const place = findExecutor(context);
  return createExecutorClient(place, userOf(context, user), attend({ url: place.url, home, clock }));
}
