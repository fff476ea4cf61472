/** The typed clients of the executor (contracts §6, §9a): one for intents and their questions, one for the rosters. */
import type { z } from 'zod';
import { systemClock } from '../kit/clock/clock.ts';
import { type Attend, type Call, createCaller, type Daemon, withinTime } from '../kit/http/caller.ts';
import { below, openStream } from '../kit/http/exchange.ts';
import { shellWord } from '../kit/identity/private-file.ts';
import {
  type ApproverList,
  type ApproverRequest,
  type ApproverView,
  approverListSchema,
  approverViewSchema,
  type RevocationRequest,
} from '../wire/approver.ts';
import {
  type GateAnswer,
  gateListSchema,
  type gateSchema,
  type IntentRequest,
  type IntentStatus,
  intentAcceptedSchema,
  intentStateSchema,
  parkedSchema,
} from '../wire/executor.ts';
import { type IntentView, intentListSchema, intentViewSchema } from '../wire/intent-view.ts';
import { elementsOf, RawJson, sliceAt } from '../wire/json.ts';
import {
  type SubmitterView,
  submitterListSchema,
  submitterMadeSchema,
  submitterViewSchema,
} from '../wire/submitter.ts';
import { WAKE_HEADERS } from '../wire/wake.ts';

/** A step that waits for a human. */
export type WaitingGate = z.output<typeof gateSchema>;
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

/** The calls of one executor, each bounded by itself. */
function callsOf(daemon: Omit<Daemon, 'name' | 'remedy'>, attend: Attend = withinTime(systemClock, CALL_MS)) {
  const { address, call, read, reading } = createCaller({ ...daemon, name: 'the executor', remedy: REMEDY });
  const ask = (request: Call, signal?: AbortSignal): Promise<RawJson> =>
    attend((bounded) => call(request, bounded), signal);
  const told = async <T extends z.ZodType>(
    schema: T,
    request: Call,
    signal?: AbortSignal,
  ): Promise<Told<z.output<T>>> => {
    const text = await ask(request, signal);
    return { value: read(request, schema, text), text };
  };
  /** Each entry of the list called `name` with its own source text. */
  const entries = <T>(request: Call, { text }: Told<unknown>, name: string, values: readonly T[]): Told<T>[] =>
    reading(request, () => {
      const texts = elementsOf(sliceAt(text.text, [name]) ?? '') ?? [];
      return values.map((value, index) => ({ value, text: new RawJson(texts[index]!) }));
    });
  return { address, ask, told, entries };
}

const at = (intentId: string, rest = '') => `/intents/${encodeURIComponent(intentId)}${rest}`;

/**
 * @throws from its methods `ReveilleError` with what the executor answered, `NoAnswer` when there was no answer that could be
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
      const path = '/messages/async';
      const call: Call = { method: 'POST', path, body: request, ifLost: lost('your task', remedy) };
      return (await told(intentAcceptedSchema, call)).value.intent_id;
    },

    async list(
      query: { status?: IntentStatus | undefined; limit?: number | undefined },
      signal?: AbortSignal,
    ): Promise<Told<IntentView>[]> {
      const call: Call = { method: 'GET', path: '/intents', query };
      const page = await told(intentListSchema, call, signal);
      return entries(call, page, 'intents', page.value.intents);
    },

    /** An intent with its plan. */
    view: (intentId: string): Promise<Told<IntentView>> =>
      told(intentViewSchema, { method: 'GET', path: at(intentId) }),

    /** How it stands, and no more. */
    state: (intentId: string, signal?: AbortSignal): Promise<Told<IntentState>> =>
      told(intentStateSchema, { method: 'GET', path: `/messages/async/${encodeURIComponent(intentId)}` }, signal),

    async gates(intentId: string, signal?: AbortSignal): Promise<Told<WaitingGate>[]> {
      const call: Call = { method: 'GET', path: at(intentId, '/gates') };
      const page = await told(gateListSchema, call, signal);
      return entries(call, page, 'pending', page.value.pending);
    },

    /** Passes a person's answer on as it is: it is signed, and a changed one would count for nothing. */
    async answer(intentId: string, nodeId: string, answer: GateAnswer): Promise<void> {
      const path = at(intentId, `/gates/${encodeURIComponent(nodeId)}/answer`);
      const taken = answer.approved ? 'your approval' : 'your refusal';
      await ask({ method: 'POST', path, body: answer, ifLost: look(taken, intentId) });
    },

    /** @param reason for the receipt */
    cancel: (intentId: string, reason?: string): Promise<Told<IntentState>> =>
      told(intentStateSchema, {
        ...{ method: 'POST', path: at(intentId, '/cancel'), ifLost: look('the cancelling', intentId) },
        body: { reason },
      }),

    reconcile: (intentId: string): Promise<Told<IntentState>> =>
      told(intentStateSchema, {
        ...{ method: 'POST', path: at(intentId, '/reconcile') },
        ifLost: look('the request to ask again', intentId),
      }),

    /**
     * Asks for the agent to be woken in a conversation when the intent is over.
     *
     * @returns whether it will be; it is not when the intent is over already
     */
    async park(intentId: string, conversationId: string, signal: AbortSignal): Promise<boolean> {
      const body = { conversation_id: conversationId };
      return (await told(parkedSchema, { method: 'POST', path: at(intentId, '/park'), body }, signal)).value.parked;
    },

    /** As its source text: a verifier wants the very bytes. */
    receipt: (intentId: string): Promise<RawJson> => ask({ method: 'GET', path: at(intentId, '/receipt') }),

    /** Opens the event stream of an intent; resolves when it stands. */
    openEvents: (intentId: string, signal: AbortSignal): Promise<ReadableStream<Uint8Array>> =>
      openStream(below(address, `/events?intent_id=${encodeURIComponent(intentId)}`), {
        headers: { ...headers, ...(place.token === undefined ? {} : { authorization: `Bearer ${place.token}` }) },
        signal,
      }),
  };
}
export type ExecutorClient = ReturnType<typeof createExecutorClient>;

/** Who may answer for whom, and who may hand tasks over, for whoever runs the executor. */
export function createExecutorAdmin({ attend, ...place }: ExecutorPlace & { attend?: Attend }) {
  const { told } = callsOf({ ...place, tokenName: 'EXECUTOR_ADMIN_TOKEN' }, attend);
  const value = async <T extends z.ZodType>(schema: T, call: Call): Promise<z.output<T>> =>
    (await told(schema, call)).value;
  return {
    url: place.url,
    approvers: (user?: string): Promise<ApproverList> =>
      value(approverListSchema, { method: 'GET', path: '/approvers', query: { user } }),
    enroll: (body: ApproverRequest): Promise<ApproverView> =>
      value(approverViewSchema, { method: 'POST', path: '/approvers', body }),
    revoke: (body: RevocationRequest): Promise<ApproverView> =>
      value(approverViewSchema, { method: 'DELETE', path: '/approvers', body }),
    submitters: async (user?: string): Promise<readonly SubmitterView[]> =>
      (await value(submitterListSchema, { method: 'GET', path: '/submitters', query: { user } })).submitters,
    addSubmitter: (user: string, name: string): Promise<z.output<typeof submitterMadeSchema>> =>
      value(submitterMadeSchema, { method: 'POST', path: '/submitters', body: { user, name } }),
    revokeSubmitter: (id: string): Promise<SubmitterView> =>
      value(submitterViewSchema, { method: 'DELETE', path: '/submitters', body: { id } }),
  };
}
export type ExecutorAdmin = ReturnType<typeof createExecutorAdmin>;
