/** `POST /intents/{id}/gates/{nid}/answer`: a person's word on a step that waits for it, passed on to the executor. */
import { z } from 'zod';
import { readJson } from '../../kit/http/body.ts';
import { sendOk } from '../../kit/http/envelope.ts';
import type { HttpApp } from '../../kit/http/environment.ts';
import { serve } from '../../kit/http/serve.ts';
import { ReveilleError } from '../../wire/errors.ts';
import { type gateAnsweredSchema, gateAnswerSchema, intentIdSchema, nodeIdSchema } from '../../wire/executor.ts';
import { parseOrThrow } from '../../wire/validate.ts';
import type { ExecutorLink } from '../delegate/delegate.ts';
import { NEO_ROUTES } from './routes.ts';

const pathSchema = z.object({ intent_id: intentIdSchema, node_id: nodeIdSchema });

/** @param executor absent where no executor is configured: there are no gates then */
export function gateRoutes(app: HttpApp, executor: Pick<ExecutorLink, 'answer'> | undefined): void {
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
