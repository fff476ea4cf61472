/** The fire ledger over HTTP: `GET /v1/alarms/{id}/fires`. */
import { z } from 'zod';
import { type HttpApp, sendOk, serve } from '../../kit/http/handlers.ts';
import { fireListQuerySchema, LIST_LIMIT_DEFAULT } from '../../wire/alarm.ts';
import { parseOrThrow } from '../../wire/validate.ts';
import { viewFires } from '../alarm/fire-history.ts';
import { alarmIdOf, alarmNotFound } from './alarm-routes.ts';
import { decodeCursor, encodeCursor } from './cursor.ts';
import { CHRONOS_ROUTES } from './routes.ts';
import { type ChronosService, ownerOfRequest } from './service.ts';

const positionSchema = z.object({ startedAt: z.int(), fireId: z.string(), attempt: z.int() });

/** The attempts at an alarm's occurrences, latest first. */
export function fireRoutes(app: HttpApp, service: ChronosService): void {
  serve(app, CHRONOS_ROUTES.listFires, async (c) => {
    const owner = await ownerOfRequest(service, c);
    const alarmId = alarmIdOf(c);
    const { limit = LIST_LIMIT_DEFAULT, cursor } = parseOrThrow(fireListQuerySchema, c.req.query());
    const before = cursor === undefined ? undefined : decodeCursor(positionSchema, cursor);
    if (!(await service.store.get(owner, alarmId))) throw alarmNotFound();
    const found = await service.store.attempts(owner, alarmId, { limit: limit + 1, ...(before ? { before } : {}) });
    const page = found.slice(0, limit);
    const last = found.length > limit ? page.at(-1) : undefined;
    const fireIds = [...new Set(page.map(({ fireId }) => fireId))];
    const reports = fireIds.length > 0 ? await service.store.turnReportsOf(owner, alarmId, fireIds) : [];
    return sendOk(c, {
      fires: viewFires(page, reports),
      next_cursor: last && encodeCursor({ startedAt: last.startedAt, fireId: last.fireId, attempt: last.attempt }),
    });
  });
}
