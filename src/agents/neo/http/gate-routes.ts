/**
 * A person's routes to the executor: `POST /intents/{id}/gates/{nid}/answer` passes on their answer to a waiting step;
 * `GET /intents/{id}/receipt` returns the proof of execution. Both are passed on unchanged.
 */
import { z } from 'zod';
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
export function attachGates(
  stream: EventStream,
  conversationId: string | undefined,
  { executor, approvers }: GateStreamOptions,
): void {
  const ends = [approvers?.addStream(conversationId), executor?.watchGates()];
  const leave = () => {
    for (const end of ends) end?.();
  };
  if (stream.closed.aborted) leave();
  else stream.closed.addEventListener('abort', leave);
  if (executor) void sendGates(executor, conversationId, stream);
}

type GateStreamOptions = {
  /** Counts the followers, who can answer gates. */
  approvers: Pick<Approvers, 'addStream'> | undefined;
  /** Knows the waiting gates. */
  executor: Pick<ExecutorLink, 'openGates' | 'watchGates'> | undefined;
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
