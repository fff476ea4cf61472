/**
 * A person's routes to the executor: `POST /intents/{id}/gates/{nid}/answer` passes on their answer to a waiting step;
 * `GET /intents/{id}/receipt` returns the proof of execution. Both are passed on unchanged.
 */
import { z } from 'zod';
import { type Clock, wait } from '../../../kit/clock/clock.ts';
import { readJson } from '../../../kit/http/body.ts';
import { type HttpApp, sendOk, serve } from '../../../kit/http/handlers.ts';
import type { EventStream } from '../../../kit/http/sse.ts';
import { ReveilleError } from '../../../wire/errors.ts';
import { type gateAnsweredSchema, gateAnswerSchema, intentIdSchema, nodeIdSchema } from '../../../wire/executor.ts';
import { encodeJson } from '../../../wire/json.ts';
import { parseOrThrow } from '../../../wire/validate.ts';
import type { Approvers } from '../delegate/approvers.ts';
import type { ExecutorLink } from '../delegate/delegate.ts';
import { NEO_ROUTES } from './routes.ts';

/** How often the executor is queried for waiting gates while a stream is open. */
const GATE_POLL_MS = 5000;

const pathSchema = z.object({ intent_id: intentIdSchema, node_id: nodeIdSchema });

/**
 * Sends the waiting gates to a new stream, which has not seen the questions. Queries for new ones while a stream is
 * open, because no turn waits beside a parked task. New gates and their results are sent through the log.
 */
async function sendGates(
  executor: Pick<ExecutorLink, 'openGates'>,
  conversationId: string | undefined,
  stream: EventStream,
  clock: Clock,
): Promise<void> {
  for (const gate of await executor.openGates(conversationId, stream.closed)) {
    stream.send({ event: 'gate', data: encodeJson(gate) });
  }
  while (!stream.closed.aborted) {
    await wait(clock, GATE_POLL_MS, stream.closed);
    if (!stream.closed.aborted) await executor.openGates(conversationId, stream.closed);
  }
}

/**
 * A new stream of events: its reader can answer gates.
 *
 * @param conversationId the conversation of the reader; absent: all of them
 */
export function attachGates(
  stream: EventStream,
  conversationId: string | undefined,
  { executor, approvers, clock }: GateStreamOptions,
): void {
  const leave = approvers?.addStream(conversationId);
  if (leave) stream.closed.addEventListener('abort', leave);
  if (stream.closed.aborted) leave?.();
  if (executor) void sendGates(executor, conversationId, stream, clock);
}

type GateStreamOptions = {
  /** Counts the followers, who can answer gates. */
  approvers: Pick<Approvers, 'addStream'> | undefined;
  /** Knows the waiting gates. */
  executor: Pick<ExecutorLink, 'openGates'> | undefined;
  clock: Clock;
};

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
