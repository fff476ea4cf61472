/** `GET /admin/machines/{user_id}/changes`: what was done to a machine, by whom. */
import { sendOk } from '../../kit/http/envelope.ts';
import type { HttpApp } from '../../kit/http/environment.ts';
import { serve } from '../../kit/http/serve.ts';
import { machineChangeQuerySchema } from '../../wire/machine-change.ts';
import { parseOrThrow } from '../../wire/validate.ts';
import { noMachine } from '../machines/machine.ts';
import type { Registry } from '../machines/registry.ts';
import { ROUTER_ROUTES } from './routes.ts';
import { userIdOf } from './user-id.ts';

const LIMIT_DEFAULT = 50;

/** @param app with the admin token already asked for below `/admin` */
export function addChangeRoutes(app: HttpApp, registry: Registry): void {
  serve(app, ROUTER_ROUTES.listChanges, (c) => {
    const userId = userIdOf(c);
    const { limit = LIMIT_DEFAULT, cursor } = parseOrThrow(machineChangeQuerySchema, c.req.query());
    if (!registry.get(userId)) throw noMachine(userId);
    const found = registry.changes.of(userId, { limit: limit + 1, before: cursor });
    const shown = found.slice(0, limit);
    const next_cursor = found.length > limit ? String(shown.at(-1)!.seq) : undefined;
    return sendOk(c, { changes: shown.map(({ change }) => change), next_cursor });
  });
}
