/** `GET /admin/machines/{user_id}/turns`: what became of the wakes of a machine without a daemon. */
import { sendOk } from '../../kit/http/envelope.ts';
import type { HttpApp } from '../../kit/http/environment.ts';
import { serve } from '../../kit/http/serve.ts';
import { machineTurnQuerySchema } from '../../wire/machine-turn.ts';
import { parseOrThrow } from '../../wire/validate.ts';
import { turnViewOf } from '../targets/turn.ts';
import type { TurnStore } from '../targets/turn-store.ts';
import { ROUTER_ROUTES } from './routes.ts';
import { userIdOf } from './user-id.ts';

/** A turn may carry a long answer. */
const LIMIT_DEFAULT = 20;

/** @param app with the admin token already asked for below `/admin` */
export function addTurnRoutes(app: HttpApp, store: TurnStore): void {
  serve(app, ROUTER_ROUTES.listTurns, (c) => {
    const userId = userIdOf(c);
    const query = parseOrThrow(machineTurnQuerySchema, c.req.query());
    const limit = query.limit ?? LIMIT_DEFAULT;
    const found = store.list({
      userId,
      limit: limit + 1,
      conversationId: query.conversation_id,
      fireId: query.fire_id,
      status: query.status,
      before: query.cursor,
    });
    const shown = found.slice(0, limit);
    const next_cursor = found.length > limit ? String(shown.at(-1)!.seq) : undefined;
    return sendOk(c, { turns: shown.map(({ turn }) => turnViewOf(turn)), counts: store.counts(userId), next_cursor });
  });
}
