/**
 * A small executor for tests of its clients: docs/reference/api.md, "Executor" over real HTTP, with intents that a test controls,
 * and ways to misbehave. It plans and executes nothing.
 */

import { createHash } from 'node:crypto';
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import { verifySignature } from '../../../src/kit/identity/keys.ts';
import { testApprover } from '../../../src/kit/identity/testing/approver.ts';
import { answerText } from '../../../src/wire/approver.ts';
import { errorEnvelope, okEnvelope } from '../../../src/wire/envelope.ts';
import { ReveilleError, toReveilleError } from '../../../src/wire/errors.ts';
import {
  type ContextPiece,
  cancelSchema,
  type GateAnswer,
  gateAnswerSchema,
  type IntentStatus,
  intentRequestSchema,
  isIntentFinal,
  parkSchema,
  RAW_INTENT_FIELDS,
} from '../../../src/wire/executor.ts';
import type { IntentEventType } from '../../../src/wire/intent-event.ts';
import { parseJsonObject, RawJson } from '../../../src/wire/json.ts';
import { parseOrThrow } from '../../../src/wire/validate.ts';
import { reservePort } from '../ports.ts';

/** A step of an intent that needs a person. `args` is JSON source text. */
export type ScriptedGate = { nodeId: string; question: string; tool: string; args: string; options?: string[] };

/** The outcome of a task. */
export type ScriptedOutcome = {
  gates?: ScriptedGate[];
  /** JSON source text. */
  result?: string;
  /** Its final state when every gate was approved; `completed` by default. `held` waits until `finish`. */
  end?: IntentStatus | 'held';
  error?: { code: string; message: string };
  clarify?: string;
  /** A call that cannot be undone has started: the intent cannot be cancelled any more. */
  isBegun?: boolean;
  /** The intent before it in the queue; it begins after a test removes that. */
  queuedBehind?: string;
};

export type Intent = {
  readonly id: string;
  readonly user: string;
  readonly prose: string;
  readonly origin: 'chronos' | 'person';
  readonly conversationId: string | undefined;
  readonly context: readonly ContextPiece[];
  readonly course: ScriptedOutcome;
  status: IntentStatus;
  pending: ScriptedGate[];
  /** Every accepted answer. */
  readonly answers: { nodeId: string; answer: GateAnswer }[];
  /** The conversation in which the agent is woken at the end. */
  parkedIn?: string;
  error?: { code: string; message: string };
};

export type Misbehaviour = (request: IncomingMessage, response: ServerResponse) => boolean;

export type StandInExecutor = {
  readonly url: string;
  readonly token: string;
  readonly intents: Intent[];
  /** `METHOD /path` of every request, in the order of arrival. */
  readonly seen: string[];
  /** Decides the outcome of a task; by default completes it with `"done"`. */
  course: (prose: string) => ScriptedOutcome;
  /** Handles a request differently from an executor; `true` when it did. */
  misbehave: Misbehaviour | undefined;
  /** Whether events are sent. */
  telling: boolean;
  /** Whether it can wake agents; without it parking has no effect. */
  waking: boolean;
  /** Repeats an event on every stream, this many times. */
  flood(times: number): void;
  /** Open event streams. */
  streams(): number;
  /** Cuts every event stream. */
  dropStreams(): void;
  /** Asks another question of an intent. */
  ask(intent: Intent, gate: ScriptedGate): void;
  /** Ends an intent that was `held`. */
  finish(intent: Intent, status: IntentStatus): void;
  /** Deletes an intent, as an executor with another data folder would. */
  forget(intent: Intent): void;
  /** Stops listening and closes every connection; the intents stay, as on a disk. */
  stop(): Promise<void>;
  /** Listens again on the same port. */
  start(): Promise<void>;
};

const sha256 = (text: string) => createHash('sha256').update(text).digest('hex');

/** The digest that the stand-in gives a gate's call. */
const callSha256 = ({ tool, args }: ScriptedGate) => sha256(`${tool}\n${args}`);

/** The person whose answers the stand-in accepts. */
export const PERSON = testApprover();

/** The signed text of that person's answer to a gate. */
export function signedTo(gate: ScriptedGate, changes: Partial<GateAnswer> = {}, intentId = 'intent-1'): GateAnswer {
  const asked = {
    node_id: gate.nodeId,
    call: { call_sha256: callSha256(gate) },
    displayed_sha256: sha256(gate.question),
  };
  return PERSON.answer(intentId, asked, changes);
}

async function bodyOf(request: IncomingMessage): Promise<string> {
  const chunks: Buffer[] = [];
  for await (const chunk of request) chunks.push(chunk as Buffer);
  return Buffer.concat(chunks).toString('utf8');
}

export async function startStandInExecutor(token = 'stand-in-executor-token'): Promise<StandInExecutor> {
  const intents: Intent[] = [];
  const byKey = new Map<string, Intent>();
  /** The user of each stream, and its intent; `null`: all of them. */
  const streams = new Map<ServerResponse, { user: unknown; id: string | null }>();
  const seen: string[] = [];
  let server: Server | undefined;
  const port = await reservePort();
  let made = 0;

  function notify(intent: Intent, event: IntentEventType): void {
    if (!executor.telling) return;
    for (const [stream, { user, id }] of streams) {
      if (user !== intent.user || (id !== null && id !== intent.id)) continue;
      stream.write(`event: ${event}\ndata: ${JSON.stringify({ intent_id: intent.id })}\n\n`);
    }
  }

  function end(intent: Intent, status: IntentStatus): void {
    intent.status = status;
    notify(intent, status === 'completed' ? 'intent.attest' : status === 'cancelled' ? 'intent.cancel' : 'intent.fail');
  }

  /** Continues from the current state of an intent. */
  function proceed(intent: Intent): void {
    const { course } = intent;
    if (course.clarify !== undefined) return;
    if (course.queuedBehind !== undefined) {
      intent.status = 'planned';
      return;
    }
    if (intent.pending.length > 0) {
      intent.status = 'awaiting_approval';
      notify(intent, 'gate.invoked');
      return;
    }
    intent.status = 'executing';
    if (course.error) intent.error = course.error;
    if (course.end !== 'held') end(intent, course.end ?? 'completed');
  }

  function submit(user: string, body: string): { intent_id: string } {
    const given = parseOrThrow(intentRequestSchema, parseJsonObject(body, RAW_INTENT_FIELDS));
    const key = `${user} ${given.idempotency_key ?? `#${made}`}`;
    const known = byKey.get(key);
    if (known) {
      if (known.prose !== given.prose) throw new ReveilleError('conflict', 'idempotency_key names another task');
      return { intent_id: known.id };
    }
    made++;
    const course = executor.course(given.prose ?? '');
    const intent: Intent = {
      ...{ id: `intent-${made}`, user, prose: given.prose ?? '', course, status: 'drafting', answers: [] },
      ...{ origin: given.origin ?? 'person', conversationId: given.conversation_id, context: given.context ?? [] },
      pending: [...(course.gates ?? [])],
    };
    intents.push(intent);
    byKey.set(key, intent);
    // A plan takes some time: the submitter can see the draft.
    setImmediate(() => proceed(intent));
    return { intent_id: intent.id };
  }

  function stateOf({ status, course, error, parkedIn }: Intent) {
    return {
      status,
      ...(course.queuedBehind === undefined ? {} : { queued_behind: course.queuedBehind }),
      ...(parkedIn === undefined || isIntentFinal({ status }) ? {} : { parked: true }),
      ...(status === 'completed' ? { result: new RawJson(course.result ?? '"done"') } : {}),
      ...(course.clarify === undefined ? {} : { clarify: course.clarify }),
      ...(error ? { error } : {}),
    };
  }

  function answer(intent: Intent, nodeId: string, body: string) {
    const given = parseOrThrow(gateAnswerSchema, parseJsonObject(body));
    const gate = intent.pending.find((one) => one.nodeId === nodeId);
    if (!gate) throw new ReveilleError('conflict', `the gate ${nodeId} does not wait for an answer`);
    if (given.call_sha256 !== callSha256(gate))
      throw new ReveilleError('conflict', 'call_sha256 is that of another call');
    if (given.displayed_sha256 !== sha256(gate.question))
      throw new ReveilleError('conflict', 'displayed_sha256 is that of another question');
    const signed = answerText({ ...given, intent_id: intent.id, node_id: nodeId });
    if (given.approver !== PERSON.approver || !verifySignature(given.approver, signed, given.signature ?? ''))
      throw new ReveilleError('forbidden', 'the answer is not signed by an approver');
    intent.pending = intent.pending.filter((one) => one !== gate);
    intent.answers.push({ nodeId, answer: given });
    if (given.approved) proceed(intent);
    else {
      intent.pending = [];
      intent.error = { code: 'denied', message: `the gate ${nodeId} was denied` };
      end(intent, 'denied');
    }
    return { status: intent.status };
  }

  function park(intent: Intent, body: string) {
    const { conversation_id } = parseOrThrow(parkSchema, parseJsonObject(body));
    const parked = executor.waking && !isIntentFinal(intent);
    if (parked) intent.parkedIn = conversation_id;
    return { intent_id: intent.id, status: intent.status, parked };
  }

  function list(user: string, status: string | null) {
    const found = intents.filter((one) => one.user === user && (status === null || one.status === status));
    return { intents: found.toReversed().map(viewOf) };
  }

  const viewOf = (intent: Intent) => ({
    ...stateOf(intent),
    ...{ intent_id: intent.id, created_at: '2026-11-22T00:00:00.000Z', origin: intent.origin, prose: intent.prose },
    ...(intent.conversationId === undefined ? {} : { conversation_id: intent.conversationId }),
    nodes: [],
  });

  function cancel(intent: Intent, body: string) {
    const { reason } = parseOrThrow(cancelSchema, parseJsonObject(body));
    if (intent.course.isBegun) throw new ReveilleError('conflict', 'a call that cannot be undone has started');
    if (reason !== undefined) intent.error = { code: 'cancelled', message: reason };
    intent.pending = [];
    end(intent, 'cancelled');
    return { status: intent.status };
  }

  const pendingOf = ({ pending }: Intent) => ({
    pending: pending.map((gate) => ({
      node_id: gate.nodeId,
      question: gate.question,
      options: gate.options ?? ['approve', 'deny'],
      call: { tool: gate.tool, args: new RawJson(gate.args), call_sha256: callSha256(gate) },
      displayed_sha256: sha256(gate.question),
      expires_at: '2126-11-22T00:00:00.000Z',
    })),
  });

  function route(request: IncomingMessage, url: URL, body: string): unknown {
    if (request.headers.authorization !== `Bearer ${token}`) throw new ReveilleError('unauthorized', 'wrong bearer');
    const user = request.headers['x-matrix-user'];
    if (typeof user !== 'string') throw new ReveilleError('invalid_request', 'X-Matrix-User is required');
    const at = `${request.method} ${url.pathname}`;
    if (at === 'POST /messages/async') return submit(user, body);
    if (at === 'GET /intents') return list(user, url.searchParams.get('status'));
    const [, id, rest] = /^\/(?:messages\/async|intents)\/([^/]+)(\/.*)?$/.exec(url.pathname) ?? [];
    const intent = intents.find((one) => one.id === id && one.user === user);
    if (!intent) throw new ReveilleError('not_found', 'there is no such intent');
    if (at === `GET /messages/async/${id}`) return stateOf(intent);
    if (at === `GET /intents/${id}/gates`) return pendingOf(intent);
    if (at === `POST /intents/${id}/cancel`) return cancel(intent, body);
    if (at === `POST /intents/${id}/park`) return park(intent, body);
    const node = /^\/gates\/([^/]+)\/answer$/.exec(rest ?? '')?.[1];
    if (node !== undefined && request.method === 'POST') return answer(intent, node, body);
    throw new ReveilleError('not_found', `no route ${at}`);
  }

  async function handle(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const body = await bodyOf(request);
    const url = new URL(request.url ?? '/', 'http://stand-in');
    seen.push(`${request.method} ${url.pathname}`);
    if (executor.misbehave?.(request, response)) return;
    if (url.pathname === '/events') {
      response.writeHead(200, { 'content-type': 'text/event-stream' });
      response.write(': here\n\n');
      streams.set(response, { user: request.headers['x-matrix-user'], id: url.searchParams.get('intent_id') });
      response.on('close', () => streams.delete(response));
      return;
    }
    response.setHeader('content-type', 'application/json');
    try {
      response.end(okEnvelope(route(request, url, body)));
    } catch (thrown) {
      const error = toReveilleError(thrown);
      response.writeHead(error.status).end(errorEnvelope(error));
    }
  }

  const executor: StandInExecutor = {
    get url() {
      return `http://127.0.0.1:${port}`;
    },
    token,
    intents,
    seen,
    course: () => ({}),
    misbehave: undefined,
    telling: true,
    waking: true,
    flood(times) {
      for (const stream of streams.keys()) {
        for (let n = 0; n < times; n++) stream.write('event: gate.invoked\ndata: {}\n\n');
      }
    },
    streams: () => streams.size,
    dropStreams() {
      for (const stream of streams.keys()) stream.destroy();
    },
    ask(intent, gate) {
      intent.pending.push(gate);
      proceed(intent);
    },
    finish: end,
    forget(intent) {
      intents.splice(intents.indexOf(intent), 1);
    },
    async stop() {
      await new Promise<void>((resolve) => {
        server?.close(() => resolve());
        server?.closeAllConnections();
      });
    },
    async start() {
      const listening = createServer((request, response) => void handle(request, response));
      await new Promise<void>((resolve) => listening.listen(port, '127.0.0.1', resolve));
      server = listening;
    },
  };
  await executor.start();
  return executor;
}
