/**
 * `GET /events?intent_id=`: hints that something has happened to an intent, as server-sent events. A stream begins with what holds at
 * that moment, so that nothing can happen between a look and the stream.
 */
import type { z } from 'zod';
import type { Clock } from '../../kit/clock/clock.ts';
import type { HttpApp } from '../../kit/http/environment.ts';
import { serve } from '../../kit/http/serve.ts';
import { openEventStream } from '../../kit/http/sse.ts';
import type { IntentStatus } from '../../wire/executor.ts';
import { intentEventQuerySchema, type intentEventSchema } from '../../wire/intent-view.ts';
import { parseOrThrow } from '../../wire/validate.ts';
import type { ExecutorRail, IntentEvent } from '../rail.ts';
import { userOf } from './principal.ts';
import { EXECUTOR_ROUTES } from './routes.ts';

/** What the end of an intent is told as. */
const END_EVENTS: { readonly [Status in IntentStatus]?: IntentEvent['type'] } = {
  completed: 'intent.attest',
  failed: 'intent.fail',
  denied: 'intent.fail',
  unknown: 'intent.fail',
  cancelled: 'intent.cancel',
};

type EventRail = Pick<ExecutorRail, 'state' | 'gates' | 'subscribe'>;

/** The events that an intent's present state would have been told with. */
function present(rail: EventRail, user: string, intentId: string): IntentEvent[] {
  const { status, clarify } = rail.state(user, intentId);
  const end = clarify === undefined ? END_EVENTS[status] : 'intent.fail';
  if (end !== undefined) return [{ type: end, intentId }];
  return rail.gates(user, intentId).map(({ node_id: nodeId }) => ({ type: 'gate.invoked', intentId, nodeId }));
}

export function eventRoutes(app: HttpApp, rail: EventRail, clock: Clock): void {
  serve(app, EXECUTOR_ROUTES.events, (c) => {
    const { intent_id: intentId } = parseOrThrow(intentEventQuerySchema, c.req.query());
    const user = userOf(c);
    // Before the stream begins: afterwards no error could be told.
    const begin = present(rail, user, intentId);
    const stream = openEventStream(c, { clock });
    const send = ({ type, nodeId }: IntentEvent) => {
      const data: z.output<typeof intentEventSchema> = { intent_id: intentId, node_id: nodeId };
      stream.send({ event: type, data: JSON.stringify(data) });
    };
    for (const event of begin) send(event);
    const leave = rail.subscribe(user, intentId, send);
    stream.closed.addEventListener('abort', leave);
    if (stream.closed.aborted) leave();
    return stream.response;
  });
}
