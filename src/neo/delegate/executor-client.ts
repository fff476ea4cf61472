/** The typed client of the executor (contracts §6), as far as an agent daemon needs it. */
import type { Clock } from '../../kit/clock/clock.ts';
import { openEnvelope } from '../../wire/envelope.ts';
import { ReveilleError } from '../../wire/errors.ts';
import {
  type GateAnswer,
  gateListSchema,
  type IntentRequest,
  type IntentStatus,
  intentAcceptedSchema,
  intentStateSchema,
  parkedSchema,
} from '../../wire/executor.ts';
import { intentListSchema } from '../../wire/intent-view.ts';
import { elementsOf, encodeJson, RawJson, sliceAt } from '../../wire/json.ts';
import { WAKE_HEADERS } from '../../wire/wake.ts';

export type ExecutorAddress = {
  /** Without a trailing slash. */
  readonly url: string;
  readonly token: string;
  /** Whose intents these are. */
  readonly userId: string;
};

/** How an intent stands. */
export type IntentState = {
  readonly status: IntentStatus;
  /** JSON source text. */
  readonly result: string | undefined;
  readonly clarify: string | undefined;
  readonly error: { readonly code?: string | undefined; readonly message: string } | undefined;
  /** The intent that has to come to its end first. */
  readonly queuedBehind: string | undefined;
  /** Whether the agent is woken when it is over. */
  readonly parked: boolean;
};

/** A step that waits for a human. */
export type PendingGate = {
  readonly nodeId: string;
  readonly question: string;
  readonly options: readonly string[];
  readonly callSha256: string;
  /** The digest of the question: asked anew, it is another one. */
  readonly displayedSha256: string;
  readonly expiresAt: string;
  /** Tool, arguments and digest as the executor wrote them, digit for digit. */
  readonly call: RawJson;
  /** Whether a person can be shown the whole of it; nobody should approve what they cannot see. */
  readonly isShowable: boolean;
};

/** An exchange that brought no answer. */
export class ExecutorUnreachable extends Error {
  /** Whether the request may have arrived all the same. */
  readonly mayHaveArrived: boolean;

  constructor(message: string, mayHaveArrived: boolean, cause: unknown) {
    super(message, { cause });
    this.name = 'ExecutorUnreachable';
    this.mayHaveArrived = mayHaveArrived;
  }
}

/** How long one exchange may take. */
const EXCHANGE_MS = 15_000;

/** Of a longer answer nothing is used. */
const MAX_ANSWER_BYTES = 8 * 1024 * 1024;

/** A longer gate is not shown to anybody. In UTF-16 units. */
const LONGEST_GATE = 256 * 1024;

/** Failures of connecting: the request never left. */
const NEVER_SENT = new Set([
  ...['ECONNREFUSED', 'ENOTFOUND', 'EAI_AGAIN', 'EHOSTUNREACH', 'ENETUNREACH', 'EADDRNOTAVAIL'],
  'UND_ERR_CONNECT_TIMEOUT',
]);

function codeOf(thrown: unknown): string {
  const cause = thrown instanceof Error ? (thrown.cause ?? thrown) : thrown;
  if (cause instanceof Error && 'code' in cause && typeof cause.code === 'string') return cause.code;
  return cause instanceof Error ? cause.message : String(cause);
}

async function readText(response: Response): Promise<string> {
  const chunks: Uint8Array[] = [];
  let size = 0;
  for await (const chunk of response.body ?? []) {
    size += chunk.byteLength;
    if (size > MAX_ANSWER_BYTES) throw new Error(`its answer is longer than ${MAX_ANSWER_BYTES} bytes`);
    chunks.push(chunk);
  }
  return new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(Buffer.concat(chunks));
}

function retryAfterOf(response: Response): number | undefined {
  const header = response.headers.get('retry-after')?.trim();
  return header !== undefined && /^\d{1,6}$/.test(header) ? Number(header) : undefined;
}

/** What the executor answered, as this daemon passes it on. That it refuses us is not the fault of whoever asked us. */
function ownErrorOf(error: ReveilleError, retryAfterSeconds: number | undefined): ReveilleError {
  const { code, message, retryable, status } = error;
  if (code === 'unauthorized') {
    const why = `the executor refuses this agent (${message}); NEO_EXECUTOR_TOKEN must be a submitter's token of this user ("reveille submitter add")`;
    return new ReveilleError('unavailable', why, { retryable: false, cause: error });
  }
  return new ReveilleError(code, message, {
    retryable,
    status,
    ...(retryAfterSeconds === undefined ? {} : { retryAfterSeconds }),
  });
}

function gateOf(source: string): PendingGate {
  const call = sliceAt(source, ['call'])!;
  const { pending } = gateListSchema.parse({ pending: [JSON.parse(source)] });
  const [{ node_id: nodeId, question, options = [], call: shown, ...gate }] = pending as [(typeof pending)[number]];
  const { displayed_sha256: displayedSha256, expires_at: expiresAt } = gate;
  const isShowable = source.length <= LONGEST_GATE;
  return {
    ...{ nodeId, question, options, callSha256: shown.call_sha256, displayedSha256, expiresAt },
    call: new RawJson(call),
    isShowable,
  };
}

/**
 * @throws from its methods `ReveilleError` with what the executor answered, `ExecutorUnreachable` when there was no answer that
 *   could be understood
 */
export function createExecutorClient({ url, token, userId }: ExecutorAddress, clock: Clock) {
  const headers = { authorization: `Bearer ${token}`, [WAKE_HEADERS.user]: userId };

  /** `signal` gives up; without one only time does. */
  async function exchange(
    method: 'GET' | 'POST',
    path: string,
    body?: unknown,
    signal?: AbortSignal,
  ): Promise<RawJson> {
    const late = new AbortController();
    const cancel = clock.after(EXCHANGE_MS, () => late.abort(new Error(`it did not answer within ${EXCHANGE_MS} ms`)));
    let response: Response | undefined;
    try {
      response = await fetch(url + path, {
        method,
        headers: { ...headers, accept: 'application/json', 'content-type': 'application/json' },
        body: body === undefined ? null : encodeJson(body),
        signal: signal ? AbortSignal.any([signal, late.signal]) : late.signal,
        redirect: 'manual',
      });
      const text = await readText(response);
      try {
        return openEnvelope(text, response.status, 'the executor');
      } catch (thrown) {
        throw thrown instanceof ReveilleError ? ownErrorOf(thrown, retryAfterOf(response)) : thrown;
      }
    } catch (thrown) {
      if (thrown instanceof ReveilleError) throw thrown;
      signal?.throwIfAborted();
      const code = late.signal.aborted ? (late.signal.reason as Error).message : codeOf(thrown);
      const never = response === undefined && NEVER_SENT.has(code);
      throw new ExecutorUnreachable(`the executor at ${url} cannot be reached (${code})`, !never, thrown);
    } finally {
      cancel();
    }
  }

  /** What `read` makes of an answer; one that is not as contracts §6 says counts as none. */
  function understood<T>(data: RawJson, read: (data: RawJson) => T): T {
    try {
      return read(data);
    } catch (cause) {
      throw new ExecutorUnreachable(
        `the executor at ${url} answered with something else than was asked for`,
        true,
        cause,
      );
    }
  }

  return {
    /** Submits a task; with the same idempotency key it is the same intent. */
    async submit(request: IntentRequest): Promise<string> {
      const data = await exchange('POST', '/messages/async', request);
      return understood(data, () => intentAcceptedSchema.parse(data.value()).intent_id);
    },

    async state(intentId: string, signal: AbortSignal): Promise<IntentState> {
      const data = await exchange('GET', `/messages/async/${intentId}`, undefined, signal);
      return understood(data, () => {
        const { status, clarify, error, parked = false, ...read } = intentStateSchema.parse(data.value());
        const { queued_behind: queuedBehind } = read;
        return { status, clarify, error, parked, queuedBehind, result: sliceAt(data.text, ['result']) };
      });
    },

    async gates(intentId: string, signal?: AbortSignal): Promise<PendingGate[]> {
      const data = await exchange('GET', `/intents/${intentId}/gates`, undefined, signal);
      return understood(data, () => {
        const pending = elementsOf(sliceAt(data.text, ['pending']) ?? '');
        if (pending === undefined) throw new Error('pending must be a list');
        return pending.map(gateOf);
      });
    },

    /** The user's intents that wait for somebody: the conversation of each by its id, where it has one. */
    async waiting(signal: AbortSignal): Promise<Map<string, string | undefined>> {
      const data = await exchange('GET', '/intents?status=awaiting_approval', undefined, signal);
      return understood(data, () => {
        const { intents } = intentListSchema.parse(data.value());
        return new Map(intents.map((intent) => [intent.intent_id, intent.conversation_id]));
      });
    },

    /**
     * Asks for the agent to be woken in a conversation when the intent is over.
     *
     * @returns whether it will be; it is not when the intent is over already
     */
    async park(intentId: string, conversationId: string, signal: AbortSignal): Promise<boolean> {
      const body = { conversation_id: conversationId };
      const data = await exchange('POST', `/intents/${intentId}/park`, body, signal);
      return understood(data, () => parkedSchema.parse(data.value()).parked);
    },

    /** Passes a person's answer on as it is: it is signed, and a changed one would count for nothing. */
    async answerGate(intentId: string, nodeId: string, answer: GateAnswer): Promise<void> {
      await exchange('POST', `/intents/${intentId}/gates/${nodeId}/answer`, answer);
    },

    /** @param reason for the receipt */
    async cancel(intentId: string, reason?: string): Promise<void> {
      await exchange('POST', `/intents/${intentId}/cancel`, reason === undefined ? {} : { reason });
    },

    /** Opens the event stream of an intent; resolves when it stands. Anything but a stream rejects. */
    async openEvents(intentId: string, signal: AbortSignal): Promise<ReadableStream<Uint8Array>> {
      const response = await fetch(`${url}/events?intent_id=${encodeURIComponent(intentId)}`, {
        headers: { ...headers, accept: 'text/event-stream' },
        signal,
        redirect: 'manual',
      });
      const type = response.headers.get('content-type') ?? '';
      if (response.status === 200 && response.body && type.startsWith('text/event-stream')) return response.body;
      await response.body?.cancel();
      throw new Error(`the executor answered ${response.status} instead of an event stream`);
    },
  };
}
export type ExecutorClient = ReturnType<typeof createExecutorClient>;
