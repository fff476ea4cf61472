/**
 * The typed clients of the executor (docs/reference/api.md, "Executor"): one for intents and their questions, one for the
 * rosters.
 */
import { createHash } from 'node:crypto';
import type { z } from 'zod';
import { type Clock, systemClock } from '../kit/clock/clock.ts';
import { type Call, callOf, createCaller, type Daemon, type LimitedCall, withinTime } from '../kit/http/caller.ts';
import { joinUrl, openStream } from '../kit/http/exchange.ts';
import type { FollowStreamOptions } from '../kit/http/follow-stream.ts';
import { shellWord } from '../kit/identity/private-file.ts';
import type { ApproverList, ApproverRequest, ApproverView, RevocationRequest } from '../wire/approver.ts';
import { canonicalJson } from '../wire/canonical-json.ts';
import type { GateAnswer, gateSchema, IntentRequest, IntentStatus, intentStateSchema } from '../wire/executor.ts';
import { type IntentEvent, intentEventSchema } from '../wire/intent-event.ts';
import type { IntentView } from '../wire/intent-view.ts';
import { elementsOf, RawJson, sliceAt } from '../wire/json.ts';
import type { PasskeyList, PasskeyRequest } from '../wire/passkey.ts';
import type { PathNames, Route } from '../wire/route.ts';
import type { SubmitterView } from '../wire/submitter.ts';
import { WAKE_HEADERS } from '../wire/wake.ts';
import { EXECUTOR_ROUTES } from './http/routes.ts';

/** A step that waits for an answer. */
export type WaitingGate = z.output<typeof gateSchema>;

/**
 * The digests of a gate's call and question, computed from the shown texts. An answer may be signed only over these,
 * and only if the executor gives the same digests.
 */
export function digestsOf({ call, question }: WaitingGate): { call_sha256: string; displayed_sha256: string } {
  const sha256 = (text: string) => createHash('sha256').update(text, 'utf8').digest('hex');
  return {
    call_sha256: sha256(canonicalJson({ tool: call.tool, args: call.args })),
    displayed_sha256: sha256(question),
  };
}
/** The state of an intent. */
export type IntentState = z.output<typeof intentStateSchema>;

/** `intentId`: only of this intent, beginning with its present state unless `after` is given. */
export type EventOptions = FollowStreamOptions & { intentId?: string | undefined };

/** A parsed value and its source text, whose numbers have all digits. */
export type Reply<T> = { readonly value: T; readonly text: RawJson };

export type ExecutorEndpoint = {
  readonly url: string;
  readonly token: string | undefined;
};

export type ExecutorClientOptions = ExecutorEndpoint & {
  /** The user of the intents. */
  userId: string;
  /** Limits each call; 15 seconds by default. */
  attend?: LimitedCall;
  clock?: Clock | undefined;
} & Pick<Daemon, 'maxBytes' | 'explain'>;

const CALL_MS = 15_000;
const REMEDY = 'is it running? start it with "reveille up" or "reveille executor"';

/** The end of an error message about a request without an answer. */
const unknownOutcome = (subject: string, remedy: string) =>
  `. It is unknown whether ${subject} was accepted; it may still be carried out. ${remedy}`;
const lookupHint = (subject: string, intentId: string) =>
  unknownOutcome(subject, `Check with: reveille intent show ${intentId}`);

type PathParameters<R extends Route> = { readonly [Name in PathNames<R['path']>]: string };
type CallOptions = Omit<Call, 'method' | 'path'>;

/** The calls of one executor, each with its own time limit. */
function callsOf(daemon: Omit<Daemon, 'name' | 'remedy'>, attend: LimitedCall = withinTime(systemClock, CALL_MS)) {
  const { address, call, read, reading } = createCaller({ ...daemon, name: 'the executor', remedy: REMEDY });
  const send = (request: Call, signal?: AbortSignal): Promise<RawJson> =>
    attend((bounded) => call(request, bounded), signal);
  const fetchParsed = async <R extends Route>(
    route: R,
    parameters: PathParameters<R>,
    options?: CallOptions,
    signal?: AbortSignal,
  ): Promise<Reply<z.output<R['data']>>> => {
    const request = callOf(route, parameters, options);
    const text = await send(request, signal);
    return { value: read(request, route.data, text) as z.output<R['data']>, text };
  };
  /** Each entry of the list `name` with its own source text. */
  const entries = <T>(request: Call, { text }: Reply<unknown>, name: string, values: readonly T[]): Reply<T>[] =>
    reading(request, () => {
      const texts = elementsOf(sliceAt(text.text, [name]) ?? '') ?? [];
      return values.map((value, index) => ({ value, text: new RawJson(texts[index]!) }));
    });
  return { address, send, fetchParsed, entries };
}

/** @throws from its methods `ReveilleError` with the executor's error, `NoAnswer` without a readable answer */
export function createExecutorClient({ userId, attend, clock = systemClock, ...place }: ExecutorClientOptions) {
  const headers = { [WAKE_HEADERS.user]: userId };
  const { address, send, fetchParsed, entries } = callsOf({ ...place, headers, tokenName: 'EXECUTOR_TOKEN' }, attend);

  return {
    url: place.url,

    /** Submits a task; the same idempotency key gives the same intent. */
    async submit(request: IntentRequest): Promise<string> {
      const key = request.idempotency_key;
      const again = key === undefined ? '' : ` with: --idempotency-key ${shellWord(key)}`;
      const remedy = `Check with "reveille intent list", or repeat it safely: the same command${again}`;
      const options = { body: request, ifLost: unknownOutcome('your task', remedy) };
      return (await fetchParsed(EXECUTOR_ROUTES.submit, {}, options)).value.intent_id;
    },

    async list(
      query: { status?: IntentStatus | undefined; limit?: number | undefined },
      signal?: AbortSignal,
    ): Promise<Reply<IntentView>[]> {
      const page = await fetchParsed(EXECUTOR_ROUTES.listIntents, {}, { query }, signal);
      return entries(callOf(EXECUTOR_ROUTES.listIntents, {}), page, 'intents', page.value.intents);
    },

    /** An intent with its plan. */
    view: (id: string, signal?: AbortSignal): Promise<Reply<IntentView>> =>
      fetchParsed(EXECUTOR_ROUTES.getIntent, { id }, {}, signal),

    /** The state alone, without the plan. */
    state: (id: string, signal?: AbortSignal): Promise<Reply<IntentState>> =>
      fetchParsed(EXECUTOR_ROUTES.getState, { id }, {}, signal),

    async gates(id: string, signal?: AbortSignal): Promise<Reply<WaitingGate>[]> {
      const page = await fetchParsed(EXECUTOR_ROUTES.listGates, { id }, {}, signal);
      return entries(callOf(EXECUTOR_ROUTES.listGates, { id }), page, 'pending', page.value.pending);
    },

    /** The passkeys with which the user's questions may be answered. */
    passkeys: async (): Promise<PasskeyList> => (await fetchParsed(EXECUTOR_ROUTES.listPasskeys, {})).value,

    /** Sends a person's answer unchanged: it is signed, and a changed one would be refused. */
    async answer(id: string, nodeId: string, answer: GateAnswer): Promise<void> {
      const ifLost = lookupHint(answer.approved ? 'your approval' : 'your refusal', id);
      await send(callOf(EXECUTOR_ROUTES.answerGate, { id, node_id: nodeId }, { body: answer, ifLost }));
    },

    /** @param reason for the receipt */
    cancel: (id: string, reason?: string): Promise<Reply<IntentState>> =>
      fetchParsed(
        EXECUTOR_ROUTES.cancelIntent,
        { id },
        { body: { reason }, ifLost: lookupHint('the cancellation', id) },
      ),

    reconcile: (id: string): Promise<Reply<IntentState>> =>
      fetchParsed(EXECUTOR_ROUTES.reconcileIntent, { id }, { ifLost: lookupHint('the reconciliation', id) }),

    /**
     * Requests that the agent is woken in a conversation when the intent ends.
     *
     * @returns whether it will be woken; false when the intent has already ended
     */
    async park(id: string, conversationId: string, signal: AbortSignal): Promise<boolean> {
      const body = { conversation_id: conversationId };
      return (await fetchParsed(EXECUTOR_ROUTES.parkIntent, { id }, { body }, signal)).value.parked;
    },

    /** The source text: a verifier needs the exact bytes. */
    receipt: (id: string): Promise<RawJson> => send(callOf(EXECUTOR_ROUTES.getReceipt, { id })),

    /**
     * The events of the user's intents, over any number of connections, until the signal aborts. After `reset`, events
     * may be missing. @throws ReveilleError the executor's permanent refusals
     */
    async *events({ intentId, ...follow }: EventOptions): AsyncGenerator<IntentEvent> {
      // Most commands follow nothing, and the parser would cost each of them time at its start.
      const { followStream } = await import('../kit/http/follow-stream.ts');
      const url = joinUrl(address, EXECUTOR_ROUTES.events.path);
      if (intentId !== undefined) url.searchParams.set('intent_id', intentId);
      const bearer = place.token === undefined ? {} : { authorization: `Bearer ${place.token}` };
      yield* followStream(
        {
          open: (resume, signal) => openStream(url, { headers: { ...headers, ...bearer, ...resume }, signal }),
          read: (type, data) => intentEventSchema.safeParse({ ...(data as object), type }).data,
          name: 'the executor',
          clock,
        },
        follow,
      );
    },
  };
}
export type ExecutorClient = ReturnType<typeof createExecutorClient>;

/** The admin client: approvers and submitters. */
export function createExecutorAdmin({ attend, ...place }: ExecutorEndpoint & { attend?: LimitedCall }) {
  const { fetchParsed } = callsOf({ ...place, tokenName: 'EXECUTOR_ADMIN_TOKEN' }, attend);
  const value = async <R extends Route & { path: '/approvers' | '/submitters' }>(
    route: R,
    options: CallOptions,
  ): Promise<z.output<R['data']>> => (await fetchParsed<Route>(route, {}, options)).value as z.output<R['data']>;
  return {
    url: place.url,
    approvers: (user?: string): Promise<ApproverList> => value(EXECUTOR_ROUTES.listApprovers, { query: { user } }),
    enroll: (body: ApproverRequest | PasskeyRequest): Promise<ApproverView> =>
      value(EXECUTOR_ROUTES.enrollApprover, { body }),
    revoke: (body: RevocationRequest): Promise<ApproverView> => value(EXECUTOR_ROUTES.revokeApprover, { body }),
    submitters: async (user?: string): Promise<readonly SubmitterView[]> =>
      (await value(EXECUTOR_ROUTES.listSubmitters, { query: { user } })).submitters,
    /** Creates a token. */
    addSubmitter: async (user: string, name: string): Promise<SubmitterView & { readonly token: string }> =>
      (await value(EXECUTOR_ROUTES.addSubmitter, { body: { user, name } })) as SubmitterView & { token: string },
    /** Enrols a token that its holder already has; only its SHA-256 is sent. */
    enrolSubmitter: (user: string, name: string, token_sha256: string): Promise<SubmitterView> =>
      value(EXECUTOR_ROUTES.addSubmitter, { body: { user, name, token_sha256 } }),
    revokeSubmitter: (id: string): Promise<SubmitterView> => value(EXECUTOR_ROUTES.revokeSubmitter, { body: { id } }),
  };
}
export type ExecutorAdmin = ReturnType<typeof createExecutorAdmin>;
