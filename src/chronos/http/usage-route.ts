/** `POST /internal/usage`: what turns used, for a router that keeps a budget in tokens or in money. */
import { requireBearer } from '../../kit/http/bearer.ts';
import { readJson } from '../../kit/http/body.ts';
import { type HttpApp, sendOk, serve } from '../../kit/http/handlers.ts';
import { ownerOf } from '../../wire/did.ts';
import { isOccurrence, partsOfFireId } from '../../wire/fire-id.ts';
import { readUsage, usageQuerySchema } from '../../wire/usage.ts';
import { parseOrThrow } from '../../wire/validate.ts';
import { CHRONOS_ROUTES } from './routes.ts';
import type { ChronosService } from './service.ts';

export function usageRoute(app: HttpApp, { store, auth }: Pick<ChronosService, 'store' | 'auth'>): void {
  serve(
    app,
    CHRONOS_ROUTES.usageOfTurns,
    async (c) => {
      const { user_id, fire_ids } = parseOrThrow(usageQuerySchema, await readJson(c));
      const owner = ownerOf(user_id);
      // Fires of other schedulers have no reports.
      const byAlarm = Map.groupBy(new Set(fire_ids.filter(isOccurrence)), (fireId) => partsOfFireId(fireId).alarmId);
      const reports = await Promise.all(
        [...byAlarm].map(([alarmId, fireIds]) => store.turnReportsOf(owner, alarmId, fireIds)),
      );
      const ended = reports.flat().filter(({ stage }) => stage === 'turn_finished');
      return sendOk(c, { turns: ended.map(({ fireId, usage }) => ({ fire_id: fireId, usage: readUsage(usage) })) });
    },
    requireBearer(auth.wakeToken),
  );
}
