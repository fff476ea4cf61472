/**
 * The typed clients of the executor (docs/contracts.md §6, §9a): one for intents and their questions, one for the
 * rosters; and following an intent.
 */
import { createHash } from 'node:crypto';
import type { z } from 'zod';
import { type Clock, systemClock, wait } from '../kit/clock/clock.ts';
import { type Attend, type Call, callOf, createCaller, type Daemon, withinTime } from '../kit/http/caller.ts';
import { below, openStream } from '../kit/http/exchange.ts';
import { shellWord } from '../kit/identity/private-file.ts';
import type { ApproverList, ApproverRequest, ApproverView, RevocationRequest } from '../wire/approver.ts';
import { canonicalJson } from '../wire/canonical-json.ts';
import {
  type GateAnswer,
  type gateSchema,
  INTENT_EVENTS,
  type IntentRequest,
  type IntentStatus,
  type intentStateSchema,
} from '../wire/executor.ts';
import type { IntentView } from '../wire/intent-view.ts';
import { elementsOf, RawJson, sliceAt } from '../wire/json.ts';
import type { PasskeyList, PasskeyRequest } from '../wire/passkey.ts';
import type { PathNames, Route } from '../wire/route.ts';
import type { SubmitterView } from '../wire/submitter.ts';
import { WAKE_HEADERS } from '../wire/wake.ts';
import { EXECUTOR_ROUTES } from './http/routes.ts';

/** A step that waits for a human. */
export type WaitingGate = z.output<typeof gateSchema>;

/**
 * The digests of the call and of the question that a gate shows, worked out from these very texts: an answer may only be
 * signed over them, and only where they are those that the executor gives.
 */
export function digestsOf({ call, question }: WaitingGate): { call_sha256: string; displayed_sha256: string } {
  const sha256 = (text: string) => createHash('sha256').update(text, 'utf8').digest('hex');
  return {
    call_sha256: sha256(canonicalJson({ tool: call.tool, args: call.args })),
    displayed_sha256: sha256(question),
  };
}
/** How an intent stands. */
export type IntentState = z.output<typeof intentStateSchema>;

/** What was read, and the text that it was read from, whose numbers have all their digits. */
export type Told<T> = { readonly value: T; readonly text: RawJson };

export type ExecutorPlace = {
  readonly url: string;
  readonly token: string | undefined;
};

export type ExecutorClientOptions = ExecutorPlace & {
  /** Whose intents these are. */
  userId: string;
  /** Bounds each call; 15 seconds unless told. */
  attend?: Attend;
} & Pick<Daemon, 'maxBytes' | 'explain'>;

const CALL_MS = 15_000;
const REMEDY = 'is it running? start it with "reveille up" or "reveille executor"';

/** What ends the error of a request that was sent and not answered. */
const lost = (taken: string, remedy: string) =>
  `. It is not known whether ${taken} was taken; it may still be carried out. ${remedy}`;
const look = (taken: string, intentId: string) => lost(taken, `Look with: reveille intent show ${intentId}`);

type Given<R extends Route> = { readonly [Name in PathNames<R['path']>]: string };
type More = Omit<Call, 'method' | 'path'>;

/** The calls of one executor, each bounded by itself. */
function callsOf(daemon: Omit<Daemon, 'name' | 'remedy'>, attend: Attend = withinTime(systemClock, CALL_MS)) {
  const { address, call, read, reading } = createCaller({ ...daemon, name: 'the executor', remedy: REMEDY });
  const ask = (request: Call, signal?: AbortSignal): Promise<RawJson> =>
    attend((bounded) => call(request, bounded), signal);
  const told = async <R extends Route>(
    route: R,
    given: Given<R>,
    more?: More,
    signal?: AbortSignal,
  ): Promise<Told<z.output<R['data']>>> => {
    const request = callOf(route, given, more);
    const text = await ask(request, signal);
    return { value: read(request, route.data, text) as z.output<R['data']>, text };
  };
  /** Each entry of the list called `name` with its own source text. */
  const entries = <T>(request: Call, { text }: Told<unknown>, name: string, values: readonly T[]): Told<T>[] =>
    reading(request, () => {
      const texts = elementsOf(sliceAt(text.text, [name]) ?? '') ?? [];
      return values.map((value, index) => ({ value, text: new RawJson(texts[index]!) }));
    });
  return { address, ask, told, entries };
}

/**
 * @throws from its methods `ReveilleError` with what the executor answered, `NoAnswer` when there was no answer that
 *   could be
 *   understood
 */
export function createExecutorClient({ userId, attend, ...place }: ExecutorClientOptions) {
  const headers = { [WAKE_HEADERS.user]: userId };
  const { address, ask, told, entries } = callsOf({ ...place, headers, tokenName: 'EXECUTOR_TOKEN' }, attend);

  return {
    url: place.url,

    /** Submits a task; with the same idempotency key it is the same intent. */
    async submit(request: IntentRequest): Promise<string> {
      const key = request.idempotency_key;
      const again = key === undefined ? '' : ` with: --idempotency-key ${shellWord(key)}`;
      const remedy = `Look with "reveille intent list", or repeat it safely: the same command${again}`;
      const more = { body: request, ifLost: lost('your task', remedy) };
      return (await told(EXECUTOR_ROUTES.submit, {}, more)).value.intent_id;
    },

    async list(
      query: { status?: IntentStatus | undefined; limit?: number | undefined },
      signal?: AbortSignal,
    ): Promise<Told<IntentView>[]> {
      const page = await told(EXECUTOR_ROUTES.listIntents, {}, { query }, signal);
      return entries(callOf(EXECUTOR_ROUTES.listIntents, {}), page, 'intents', page.value.intents);
    },

    /** An intent with its plan. */
    view: (id: string): Promise<Told<IntentView>> => told(EXECUTOR_ROUTES.getIntent, { id }),

    /** How it stands, and no more. */
    state: (id: string, signal?: AbortSignal): Promise<Told<IntentState>> =>
      told(EXECUTOR_ROUTES.getState, { id }, {}, signal),

    async gates(id: string, signal?: AbortSignal): Promise<Told<WaitingGate>[]> {
      const page = await told(EXECUTOR_ROUTES.listGates, { id }, {}, signal);
      return entries(callOf(EXECUTOR_ROUTES.listGates, { id }), page, 'pending', page.value.pending);
    },

    /** With which passkeys a question of theirs may be answered. */
    passkeys: async (): Promise<PasskeyList> => (await told(EXECUTOR_ROUTES.listPasskeys, {})).value,

    /** Passes a person's answer on as it is: it is signed, and a changed one would count for nothing. */
    async answer(id: string, nodeId: string, answer: GateAnswer): Promise<void> {
      const ifLost = look(answer.approved ? 'your approval' : 'your refusal', id);
      await ask(callOf(EXECUTOR_ROUTES.answerGate, { id, node_id: nodeId }, { body: answer, ifLost }));
    },

    /** @param reason for the receipt */
    cancel: (id: string, reason?: string): Promise<Told<IntentState>> =>
      told(EXECUTOR_ROUTES.cancelIntent, { id }, { body: { reason }, ifLost: look('the cancelling', id) }),

    reconcile: (id: string): Promise<Told<IntentState>> =>
      told(EXECUTOR_ROUTES.reconcileIntent, { id }, { ifLost: look('the request to ask again', id) }),

    /**
     * Asks for the agent to be woken in a conversation when the intent is over.
     *
     * @returns whether it will be; it is not when the intent is over already
     */
    async park(id: string, conversationId: string, signal: AbortSignal): Promise<boolean> {
      const body = { conversation_id: conversationId };
      return (await told(EXECUTOR_ROUTES.parkIntent, { id }, { body }, signal)).value.parked;
    },

    /** As its source text: a verifier wants the very bytes. */
    receipt: (id: string): Promise<RawJson> => ask(callOf(EXECUTOR_ROUTES.getReceipt, { id })),

    /** Opens the event stream of an intent; resolves when it stands. */
    openEvents: (intentId: string, signal: AbortSignal): Promise<ReadableStream<Uint8Array>> =>
      openStream(below(address, `${EXECUTOR_ROUTES.events.path}?intent_id=${encodeURIComponent(intentId)}`), {
        headers: { ...headers, ...(place.token === undefined ? {} : { authorization: `Bearer ${place.token}` }) },
        signal,
      }),
  };
}
export type ExecutorClient = ReturnType<typeof createExecutorClient>;

/** Pauses before a stream that broke is opened again. */
const REOPEN_MS = [500, 1000, 2000, 5000, 10_000];

const KNOWN: ReadonlySet<string> = new Set(INTENT_EVENTS);

/** A line without an end is given up at this length. */
const LONGEST_LINE = 1024 * 1024;

/** The kinds of the events of a stream, as they come (WHATWG HTML, §9.2.6). */
async function* eventKinds(stream: ReadableStream<Uint8Array>): AsyncGenerator<string> {
  let rest = '';
  let kind = 'message';
  for await (const chunk of stream.pipeThrough(new TextDecoderStream())) {
    const lines = (rest + chunk).split(/\r\n|\n|\r/);
    rest = lines.pop()!;
    if (rest.length > LONGEST_LINE) throw new Error('a line of the event stream has no end');
    for (const line of lines) {
      if (line.startsWith('event:')) kind = line.slice('event:'.length).trim();
      else if (line === '') {
        yield kind;
        kind = 'message';
      }
    }
  }
}

export type IntentEvents = {
  /** Whether the stream stands at the moment. */
  live(): boolean;
};

/**
 * Follows an intent's events until the signal aborts, over as many streams as it takes. An event is only a hint to
 * look: the executor says how an intent stands when it is asked, and it is asked now and then in any case. So a stream
 * that breaks, stands still or lies loses nothing.
 *
 * @param open opens a stream
 * @param onHint called when something may have happened: an event came, or the stream was opened anew
 */
export function followIntent(
  open: (signal: AbortSignal) => Promise<ReadableStream<Uint8Array>>,
  { clock, signal, onHint }: { clock: Clock; signal: AbortSignal; onHint: () => void },
): IntentEvents {
  let live = false;
  const follow = async () => {
    for (let failures = 0; !signal.aborted; failures++) {
      try {
        const stream = await open(signal);
        live = true;
        onHint();
        for await (const kind of eventKinds(stream)) {
          failures = 0;
          if (KNOWN.has(kind)) onHint();
        }
      } catch {
        // The executor is asked without a stream, too, and that is where its failures are told.
      }
      live = false;
      await wait(clock, REOPEN_MS[Math.min(failures, REOPEN_MS.length - 1)]!, signal);
    }
  };
  void follow();
  return { live: () => live };
}

/** Who may answer for whom, and who may hand tasks over, for whoever runs the executor. */
export function createExecutorAdmin({ attend, ...place }: ExecutorPlace & { attend?: Attend }) {
  const { told } = callsOf({ ...place, tokenName: 'EXECUTOR_ADMIN_TOKEN' }, attend);
  const value = async <R extends Route & { path: '/approvers' | '/submitters' }>(
    route: R,
    more: More,
  ): Promise<z.output<R['data']>> => (await told<Route>(route, {}, more)).value as z.output<R['data']>;
  return {
    url: place.url,
    approvers: (user?: string): Promise<ApproverList> => value(EXECUTOR_ROUTES.listApprovers, { query: { user } }),
    enroll: (body: ApproverRequest | PasskeyRequest): Promise<ApproverView> =>
      value(EXECUTOR_ROUTES.enrollApprover, { body }),
    revoke: (body: RevocationRequest): Promise<ApproverView> => value(EXECUTOR_ROUTES.revokeApprover, { body }),
    submitters: async (user?: string): Promise<readonly SubmitterView[]> =>
      (await value(EXECUTOR_ROUTES.listSubmitters, { query: { user } })).submitters,
    /** Makes a token. */
    addSubmitter: async (user: string, name: string): Promise<SubmitterView & { readonly token: string }> =>
      (await value(EXECUTOR_ROUTES.addSubmitter, { body: { user, name } })) as SubmitterView & { token: string },
    /** Lets a token in that its holder has already; of it only the SHA-256 is told. */
    enrolSubmitter: (user: string, name: string, token_sha256: string): Promise<SubmitterView> =>
      value(EXECUTOR_ROUTES.addSubmitter, { body: { user, name, token_sha256 } }),
    revokeSubmitter: (id: string): Promise<SubmitterView> => value(EXECUTOR_ROUTES.revokeSubmitter, { body: { id } }),
  };
}
export type ExecutorAdmin = ReturnType<typeof createExecutorAdmin>;
