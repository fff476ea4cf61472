/** Neo's HTTP server: authorization and routes (docs/reference/api.md, "Delivery to a daemon"). */
import { z } from 'zod';
import type { Clock } from '../../../kit/clock/clock.ts';
import { requireBearer } from '../../../kit/http/bearer.ts';
import { readJson } from '../../../kit/http/body.ts';
import { type HttpApp, sendOk, serve } from '../../../kit/http/handlers.ts';
import { type RunningServer, startServer } from '../../../kit/http/server.ts';
import type { EventStream } from '../../../kit/http/sse.ts';
import type { Logger } from '../../../kit/log/log.ts';
import type { Outbox } from '../../../kit/outbox/outbox.ts';
import type { EventFeed } from '../../../turns/event-log.ts';
import { chatRoutes, eventRoutes } from '../../../turns/http/chat-routes.ts';
import { ReveilleError } from '../../../wire/errors.ts';
import { type gateAnsweredSchema, gateAnswerSchema, intentIdSchema, nodeIdSchema } from '../../../wire/executor.ts';
import { encodeJson } from '../../../wire/json.ts';
import { questionAnswerSchema } from '../../../wire/question.ts';
import { formatInstant } from '../../../wire/rfc3339.ts';
import { parseOrThrow } from '../../../wire/validate.ts';
import { VERSION } from '../../../wire/version.ts';
import { WAKE_BODY_MAX_BYTES } from '../../../wire/wake.ts';
import type { Capabilities } from '../capabilities.ts';
import type { NeoConfig } from '../config.ts';
import type { ConversationStore } from '../conversations/store.ts';
import type { Approvers } from '../delegate/approvers.ts';
import type { ExecutorLink } from '../delegate/delegate.ts';
import type { Questions } from '../questions.ts';
import type { Runner } from '../runner.ts';
import { NEO_ROUTES } from './routes.ts';

// A person's routes to the executor: `POST /intents/{id}/gates/{nid}/answer` passes on their answer to a waiting
// step; `GET /intents/{id}/receipt` returns the proof of execution. Both are passed on unchanged.

const pathSchema = z.object({ intent_id: intentIdSchema, node_id: nodeIdSchema });

/**
 * Sends the waiting gates to a new stream, which has not seen the questions. New gates and their results are sent
 * through the log.
 */
async function sendGates(
  executor: Pick<ExecutorLink, 'openGates'>,
  conversationId: string | undefined,
  stream: EventStream,
): Promise<void> {
  for (const gate of await executor.openGates(conversationId, stream.closed)) {
    stream.send({ event: 'gate', data: encodeJson(gate) });
  }
}

/**
 * A new stream of events: its reader can answer gates.
 *
 * @param conversationId the conversation of the reader; absent: all of them
 */
function attachGates(
  stream: EventStream,
  conversationId: string | undefined,
  { executor, approvers, questions }: GateStreamOptions,
): void {
  const ends = [approvers?.addStream(conversationId), executor?.watchGates()];
  const leave = () => {
    for (const end of ends) end?.();
  };
  if (stream.closed.aborted) leave();
  else stream.closed.addEventListener('abort', leave);
  for (const question of questions?.shown(conversationId) ?? [])
    stream.send({ event: 'question', data: encodeJson(question) });
  if (executor) void sendGates(executor, conversationId, stream);
}

type GateStreamOptions = {
  /** Counts the followers, who can answer gates. */
  approvers: Pick<Approvers, 'addStream'> | undefined;
  /** Knows the waiting gates. */
  executor: Pick<ExecutorLink, 'openGates' | 'watchGates'> | undefined;
  /** Knows the open questions of MCP servers. */
  questions: Pick<Questions, 'shown'> | undefined;
};

/** A person's routes to the questions of MCP servers. */
export function questionRoutes(app: HttpApp, questions: Pick<Questions, 'shown' | 'answer'>): void {
  serve(app, NEO_ROUTES.listQuestions, (c) => {
    const { conversation_id } = parseOrThrow(NEO_ROUTES.listQuestions.query, c.req.query());
    return sendOk(c, { questions: questions.shown(conversation_id) });
  });
  serve(app, NEO_ROUTES.answerQuestion, async (c) => {
    const answer = parseOrThrow(questionAnswerSchema, await readJson(c));
    return sendOk(c, await questions.answer(c.req.param('id'), answer));
  });
}

/** @param executor absent where no executor is configured: there are no gates and no receipts then */
export function gateRoutes(app: HttpApp, executor: Pick<ExecutorLink, 'answer' | 'receipt'> | undefined): void {
  serve(app, NEO_ROUTES.getReceipt, async (c) => {
    parseOrThrow(z.strictObject({}), c.req.query());
    const { intent_id: intentId } = parseOrThrow(pathSchema.pick({ intent_id: true }), {
      intent_id: c.req.param('id'),
    });
    if (!executor) {
      throw new ReveilleError('not_found', 'there are no receipts here: no executor is configured (NEO_EXECUTOR_URL)');
    }
    return sendOk(c, await executor.receipt(intentId));
  });
  serve(app, NEO_ROUTES.answerGate, async (c) => {
    const path = parseOrThrow(pathSchema, { intent_id: c.req.param('id'), node_id: c.req.param('nid') });
    const answer = parseOrThrow(gateAnswerSchema, await readJson(c));
    if (!executor) {
      throw new ReveilleError('not_found', 'there are no gates here: no executor is configured (NEO_EXECUTOR_URL)');
    }
    await executor.answer(path.intent_id, path.node_id, answer);
    return sendOk(c, { ...path, approved: answer.approved } satisfies z.infer<typeof gateAnsweredSchema>);
  });
}

export type NeoServerOptions = {
  config: NeoConfig;
  store: ConversationStore;
  runner: Runner;
  /** Sends turn reports, where there are any. */
  turnReports: Pick<Outbox, 'isBusy'> | undefined;
  /** The name of the answering model. */
  model: string;
  /** The model's tools, and the receiver of answers to the executor's questions. */
  capabilities: Pick<Capabilities, 'describe' | 'executor'>;
  /** Counts the followers of the events. */
  approvers?: Pick<Approvers, 'addStream'> | undefined;
  /** The questions of MCP servers. */
  questions: Pick<Questions, 'shown' | 'answer'>;
  feed: EventFeed;
  /** Called for each prompt of a person. */
  onPrompt?: ((at: number) => void) | undefined;
  log: Logger;
  clock: Clock;
  drainMs: number;
};

/** Starts the server; resolves when it accepts connections. */
export function startNeoServer(options: NeoServerOptions): Promise<RunningServer> {
  const { config, store, runner, turnReports, capabilities, approvers, questions, feed, onPrompt } = options;
  const { log, clock, drainMs } = options;
  return startServer({
    name: 'neo',
    version: VERSION,
    host: config.host,
    port: config.port,
    listener: config.listener,
    allowedHosts: config.allowedHosts,
    log,
    clock,
    drainMs,
    // A wake is larger than the create request of its alarm; refusing it here would strand an acknowledged alarm.
    limits: { bodyBytes: WAKE_BODY_MAX_BYTES },
    // A machine that is put to sleep takes its unsent turn reports with it.
    health: () => {
      const { busy, queued, nextTurnAt } = runner.state();
      const next = nextTurnAt === undefined ? {} : { next_turn_at: formatInstant(nextTurnAt) };
      return { busy: busy || turnReports?.isBusy() === true, queued, ...next };
    },
    routes: (app) => {
      // `/`, `/healthz` and `/readyz` are routed before this.
      app.use(requireBearer(config.token));
      const isFull = () => runner.state().queued >= (config.maxQueued ?? Number.POSITIVE_INFINITY);
      chatRoutes(app, { store, engine: runner, clock, onPrompt, isFull, repeatMs: config.repeatMs });
      const { executor } = capabilities;
      eventRoutes(app, {
        ...{ feed, clock, log },
        onStream: (stream, conversationId) => attachGates(stream, conversationId, { executor, approvers, questions }),
      });
      // Waits until the servers had time to start.
      serve(app, NEO_ROUTES.tools, async (c) =>
        sendOk(c, { ...(await capabilities.describe()), model: options.model }),
      );
      gateRoutes(app, executor);
      questionRoutes(app, questions);
    },
  });
}
