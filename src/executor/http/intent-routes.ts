/** The routes for submitting a task, reading its state and ending it (docs/reference/api.md, "Executor"). */

import { z } from 'zod';
import { bodyBytes, readJson } from '../../kit/http/body.ts';
import type { FeedStreams } from '../../kit/http/feed-stream.ts';
import { type HttpApp, type HttpContext, sendOk, serve } from '../../kit/http/handlers.ts';
import { continueTrace, TRACEPARENT } from '../../kit/trace/trace.ts';
import { ReveilleError } from '../../wire/errors.ts';
import {
  cancelSchema,
  gateAnswerSchema,
  type IntentStatus,
  intentIdSchema,
  intentRequestSchema,
  nodeIdSchema,
  parkSchema,
  RAW_INTENT_FIELDS,
} from '../../wire/executor.ts';
import { type IntentEvent, type IntentEventType, intentEventQuerySchema } from '../../wire/intent-event.ts';
import { INTENT_LIST_LIMIT, intentListQuerySchema } from '../../wire/intent-view.ts';
import { parseOrThrow } from '../../wire/validate.ts';
import type { IntentChange } from '../journal/intent-changes.ts';
import type { Roster } from '../journal/roster.ts';
import type { ExecutorRail } from '../rail.ts';
import { userOf } from './principal.ts';
import { EXECUTOR_ROUTES } from './routes.ts';

const nothing = z.strictObject({});

/** @throws ReveilleError `not_found` for an id that no intent can have */
function intentIdOf(c: HttpContext): string {
  const id = intentIdSchema.safeParse(c.req.param('id'));
  if (id.success) return id.data;
  throw new ReveilleError(
    'not_found',
    'you have no intent with this id; "reveille intent list" (GET /intents) lists yours',
  );
}

/** @throws ReveilleError `not_found` for an id that no node can have */
function nodeIdOf(c: HttpContext): string {
  const id = nodeIdSchema.safeParse(c.req.param('node_id'));
  if (id.success) return id.data;
  throw new ReveilleError('not_found', 'the intent has no node with this id; GET /intents/{id} shows its plan');
}

/**
 * Refuses unexpected arguments: silently ignoring one would hide a mistake of the caller. @throws ReveilleError
 * `invalid_request` naming it
 */
async function refuseArguments(c: HttpContext): Promise<void> {
  parseOrThrow(nothing, c.req.query());
  if (bodyBytes(c).length > 0) parseOrThrow(nothing, await readJson(c));
}

export function intentRoutes(app: HttpApp, rail: ExecutorRail): void {
  serve(app, EXECUTOR_ROUTES.submit, async (c) => {
    const user = userOf(c);
    parseOrThrow(nothing, c.req.query());
    const request = parseOrThrow(intentRequestSchema, await readJson(c, { raw: RAW_INTENT_FIELDS }));
    const facts = () => ({ kind: 'server' as const, attributes: { 'reveille.intent.origin': request.origin } });
    // Behind the submitter's token.
    const { intentId } = await continueTrace(c.req.header(TRACEPARENT), 'submit intent', facts, () =>
      rail.submit(user, request),
    );
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
    parseOrThrow(nothing, c.req.query());
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

export function gateRoutes(
  app: HttpApp,
  rail: Pick<ExecutorRail, 'gates' | 'answer'>,
  { roster, executor }: { roster: Pick<Roster, 'passkeys'>; executor: string },
): void {
  serve(app, EXECUTOR_ROUTES.listPasskeys, async (c) => {
    await refuseArguments(c);
    return sendOk(c, { executor, passkeys: roster.passkeys(userOf(c)) });
  });
  serve(app, EXECUTOR_ROUTES.listGates, async (c) => {
    await refuseArguments(c);
    return sendOk(c, { pending: rail.gates(userOf(c), intentIdOf(c)) });
  });
  serve(app, EXECUTOR_ROUTES.answerGate, async (c) => {
    const [user, intentId, nodeId] = [userOf(c), intentIdOf(c), nodeIdOf(c)];
    const answer = parseOrThrow(gateAnswerSchema, await readJson(c));
    await rail.answer(user, intentId, nodeId, answer);
    return sendOk(c, { intent_id: intentId, node_id: nodeId, approved: answer.approved });
  });
}

/** The event type for each final status. */
const END_EVENTS: { readonly [Status in IntentStatus]?: IntentEventType } = {
  completed: 'intent.attest',
  failed: 'intent.fail',
  denied: 'intent.fail',
  unknown: 'intent.fail',
  cancelled: 'intent.cancel',
};

type EventRail = Pick<ExecutorRail, 'state' | 'gates'>;

/** The events that led to the intent's present state. */
function presentEvents(rail: EventRail, user: string, intent_id: string): IntentEvent[] {
  const { status, clarify } = rail.state(user, intent_id);
  const end = clarify === undefined ? END_EVENTS[status] : 'intent.fail';
  if (end !== undefined) return [{ type: end, intent_id }];
  return rail.gates(user, intent_id).map(({ node_id }) => ({ type: 'gate.invoked', intent_id, node_id }));
}

/** @param isAccepted whether a caller's token is still accepted */
export function eventRoutes(
  app: HttpApp,
  rail: EventRail,
  streams: FeedStreams<IntentChange, IntentEvent>,
  isAccepted: (c: HttpContext) => boolean,
): void {
  serve(app, EXECUTOR_ROUTES.events, (c) => {
    const { intent_id: intentId } = parseOrThrow(intentEventQuerySchema, c.req.query());
    const owner = userOf(c);
    if (intentId !== undefined) rail.state(owner, intentId);
    return streams.open(c, {
      owner,
      isWanted: (event) => intentId === undefined || event.type === 'reset' || event.intent_id === intentId,
      isAccepted: () => isAccepted(c),
      present: intentId === undefined ? undefined : () => presentEvents(rail, owner, intentId),
    });
  });
}
