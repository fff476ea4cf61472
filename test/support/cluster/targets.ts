/**
 * The targets of many users: one HTTP server with a daemon for each user. It accepts wakes as Neo does (a known
 * `fire_id` is answered without a turn), logs its turns, and can be slow, hang or fail on request.
 */
import { once } from 'node:events';
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import { buffer } from 'node:stream/consumers';
import { errorEnvelope, okEnvelope } from '../../../src/wire/envelope.ts';
import { ReveilleError } from '../../../src/wire/errors.ts';
import { parseJsonObject, RawJson } from '../../../src/wire/json.ts';
import { type ChatRequest, chatRequestSchema, RAW_WAKE_FIELDS } from '../../../src/wire/wake.ts';
import type { ReceiverRecorder } from '../../fault/checker/journal.ts';
import { pause } from './processes.ts';

export type TargetBehavior =
  /** Accepts after this many milliseconds. */
  | { kind: 'accept'; afterMs: () => number }
  /** Never answers. */
  | { kind: 'hang' }
  /** Answers 500. */
  | { kind: 'fail' };

/**
 * The normal behaviour of an agent's daemon: fast, sometimes slow. Turns in progress at a fault are the interesting
 * case.
 */
export const USUAL: TargetBehavior = {
  kind: 'accept',
  afterMs: () => (Math.random() < 0.7 ? 20 * Math.random() : 500 * Math.random()),
};

export type TargetsPlan = {
  log: ReceiverRecorder;
  /** The clock of the machine of the targets, epoch milliseconds. */
  now: () => number;
  /** The latest instant that it has shown within the last `ms` milliseconds. */
  latestWithin: (ms: number) => number;
};

/** How long a wake is under way on a busy computer. The ledger has the instants of the sender, which are checked exactly. */
const ON_ITS_WAY_MS = 15_000;

export class Targets {
  readonly port: number;
  /** Wakes that arrived before they were due, as sentences. */
  readonly early: string[] = [];
  readonly #server: Server;
  readonly #plan: TargetsPlan;
  readonly #manners = new Map<string, TargetBehavior>();
  readonly #known = new Set<string>();

  private constructor(server: Server, port: number, plan: TargetsPlan) {
    this.#server = server;
    this.port = port;
    this.#plan = plan;
    server.on('request', (request: IncomingMessage, response: ServerResponse) => {
      this.#answer(request, response).catch((error: Error) => response.destroy(error));
    });
  }

  static async open(plan: TargetsPlan): Promise<Targets> {
    const server = createServer({ keepAliveTimeout: 30_000 }).listen(0, '127.0.0.1');
    await once(server, 'listening');
    const address = server.address();
    if (address === null || typeof address === 'string') throw new Error('the targets have no port');
    return new Targets(server, address.port, plan);
  }

  /** Sets the behaviour of a user's daemon from now on. */
  set(user: string, behavior: TargetBehavior): void {
    this.#manners.set(user, behavior);
  }

  async close(): Promise<void> {
    const closed = once(this.#server, 'close');
    this.#server.close();
    this.#server.closeAllConnections();
    await closed;
  }

  async #answer(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const [, user = '', route] = request.url!.split('/');
    const behavior = this.#manners.get(user);
    if (!behavior) return refuse(response, new ReveilleError('not_found', `there is no user ${user}`));
    if (route === 'healthz') return accept(response, 200, { status: 'ok', busy: false, queued: 0 });
    const arrivedAt = this.#plan.now();
    const text = (await buffer(request)).toString('utf8');
    const wake = chatRequestSchema.parse(parseJsonObject(text, RAW_WAKE_FIELDS));
    await this.#take(user, behavior, wake, arrivedAt, response);
  }

  async #take(user: string, behavior: TargetBehavior, wake: ChatRequest, arrivedAt: number, response: ServerResponse) {
    const fireId = wake.fire_id!;
    const arrival = {
      fireId,
      user,
      conversation: wake.conversation_id ?? null,
      message: wake.message,
      payload: wake.payload instanceof RawJson ? wake.payload.text : null,
    };
    const answered = this.#plan.log.woken(
      { ...arrival, ...(wake.missed_count === undefined ? {} : { missedCount: wake.missed_count }) },
      arrivedAt,
    );
    // A clock that jumped back during the request does not make it early.
    const aheadMs = wake.scheduled_for! - this.#plan.latestWithin(ON_ITS_WAY_MS);
    if (aheadMs > 0) this.early.push(`${fireId} reached ${user} ${aheadMs} ms before it was due`);
    if (behavior.kind === 'hang') return;
    if (behavior.kind === 'fail') {
      answered(500, this.#plan.now());
      return refuse(response, new ReveilleError('internal', 'this daemon fails on purpose'));
    }
    await pause(behavior.afterMs());
    const deduped = this.#known.has(fireId);
    this.#known.add(fireId);
    const now = this.#plan.now();
    if (!deduped) this.#plan.log.turn({ ...arrival, status: 'done' }, now);
    // The caller may have disconnected: it gets no answer, though the turn has run.
    if (response.destroyed) return;
    answered(deduped ? 200 : 202, now);
    const conversation_id = wake.conversation_id ?? user;
    accept(response, deduped ? 200 : 202, { conversation_id, turn_id: fireId, deduped });
  }
}

function accept(response: ServerResponse, status: number, data: object): void {
  response.writeHead(status, { 'content-type': 'application/json' }).end(okEnvelope(data));
}

function refuse(response: ServerResponse, error: ReveilleError): void {
  response.writeHead(error.status, { 'content-type': 'application/json' }).end(errorEnvelope(error));
}
