/**
 * A person's routes to the executor: `POST /intents/{id}/gates/{nid}/answer` passes on their answer to a waiting step;
 * `GET /intents/{id}/receipt` returns the proof of execution. Both are passed on unchanged.
 */
import { z } from 'zod';
import { readJson } from '../../kit/http/body.ts';
import { type HttpApp, sendOk, serve } from '../../kit/http/handlers.ts';
import { ReveilleError } from '../../wire/errors.ts';
import { type gateAnsweredSchema, gateAnswerSchema, intentIdSchema, nodeIdSchema } from '../../wire/executor.ts';
import { parseOrThrow } from '../../wire/validate.ts';
import type { ExecutorLink } from '../delegate/delegate.ts';
import { NEO_ROUTES } from './routes.ts';

const pathSchema = z.object({ intent_id: intentIdSchema, node_id: nodeIdSchema });

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
