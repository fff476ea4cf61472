/** `POST /turns/{id}/cancel`: a person ends a turn. */
import { sendOk } from '../../kit/http/envelope.ts';
import type { HttpApp } from '../../kit/http/environment.ts';
import { serve } from '../../kit/http/serve.ts';
import { viewOf } from '../../turns/turn-view.ts';
import { ReveilleError } from '../../wire/errors.ts';
import type { Runner } from '../runner.ts';
import { NEO_ROUTES } from './routes.ts';

export function turnRoutes(app: HttpApp, runner: Pick<Runner, 'cancel'>): void {
  serve(app, NEO_ROUTES.cancelTurn, async (c) => {
    const turn = await runner.cancel(c.req.param('id'));
    if (!turn) throw new ReveilleError('not_found', 'there is no turn with this id; a conversation lists its turns');
    // A turn that had already ended is returned unchanged.
    return sendOk(c, viewOf(turn));
  });
}
