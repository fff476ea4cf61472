/** Handing a task over, looking at what becomes of it, and ending it (contracts §6). */
import { z } from 'zod';
import { bodyBytes, readJson } from '../../kit/http/body.ts';
import { sendOk } from '../../kit/http/envelope.ts';
import type { HttpApp } from '../../kit/http/environment.ts';
import { serve } from '../../kit/http/serve.ts';
import { cancelSchema, intentRequestSchema, parkSchema, RAW_INTENT_FIELDS } from '../../wire/executor.ts';
import { INTENT_LIST_LIMIT, intentListQuerySchema } from '../../wire/intent-view.ts';
import { parseOrThrow } from '../../wire/validate.ts';
import type { ExecutorRail } from '../rail.ts';
import { intentIdOf, refuseArguments } from './path.ts';
import { userOf } from './principal.ts';
import { EXECUTOR_ROUTES } from './routes.ts';

const noQuery = z.strictObject({});

export function intentRoutes(app: HttpApp, rail: ExecutorRail): void {
  serve(app, EXECUTOR_ROUTES.submit, async (c) => {
    const user = userOf(c);
    parseOrThrow(noQuery, c.req.query());
    const request = parseOrThrow(intentRequestSchema, await readJson(c, { raw: RAW_INTENT_FIELDS }));
    const { intentId } = await rail.submit(user, request);
    return sendOk(c, { intent_id: intentId });
  });
  serve(app, EXECUTOR_ROUTES.getState, async (c) => {
    await refuseArguments(c);
    return sendOk(c, rail.state(userOf(c), intentIdOf(c)));
  });
  serve(app, EXECUTOR_ROUTES.listIntents, (c) => {
    const { limit = INTENT_LIST_LIMIT, status } = parseOrThrow(intentListQuerySchema, c.req.query());
    const intents = rail.list(userOf(c), { limit, ...(status === undefined ? {} : { status }) });
    return sendOk(c, { intents });
  });
  serve(app, EXECUTOR_ROUTES.getIntent, async (c) => {
    await refuseArguments(c);
    return sendOk(c, rail.view(userOf(c), intentIdOf(c)));
  });
  serve(app, EXECUTOR_ROUTES.getReceipt, async (c) => {
    await refuseArguments(c);
    return sendOk(c, rail.receipt(userOf(c), intentIdOf(c)));
  });
  serve(app, EXECUTOR_ROUTES.cancelIntent, async (c) => {
    const [user, intentId] = [userOf(c), intentIdOf(c)];
    parseOrThrow(noQuery, c.req.query());
    const { reason } = parseOrThrow(cancelSchema, bodyBytes(c).length === 0 ? {} : await readJson(c));
    return sendOk(c, await rail.cancel(user, intentId, reason));
  });
  serve(app, EXECUTOR_ROUTES.reconcileIntent, async (c) => {
    await refuseArguments(c);
    return sendOk(c, await rail.reconcile(userOf(c), intentIdOf(c)));
  });
  serve(app, EXECUTOR_ROUTES.parkIntent, async (c) => {
    const [user, intentId] = [userOf(c), intentIdOf(c)];
    const { conversation_id } = parseOrThrow(parkSchema, await readJson(c));
    return sendOk(c, { intent_id: intentId, ...(await rail.park(user, intentId, conversation_id)) });
  });
}
