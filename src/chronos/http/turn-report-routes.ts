/** `POST /v1/fires/{fire_id}/receipts`: turn reports of the machine that a fire woke. */
import { bodyBytes, readJson } from '../../kit/http/body.ts';
import { type HttpApp, type HttpContext, sendOk, serve } from '../../kit/http/handlers.ts';
import type { Logger } from '../../kit/log/log.ts';
import { continueTrace, TRACEPARENT } from '../../kit/trace/trace.ts';
import { ownerOf } from '../../wire/did.ts';
import { ReveilleError } from '../../wire/errors.ts';
import { fireIdSchema, partsOfFireId } from '../../wire/fire-id.ts';
import { reportsOf, type TurnReport, type TurnStage, turnReportPostSchema } from '../../wire/turn-report.ts';
import { parseOrThrow } from '../../wire/validate.ts';
import { followersOf } from '../alarm/chain.ts';
import { afterTurn, regardsEndOfTurn } from '../alarm/policies.ts';
import { endOfTurn, notifyFollowers } from '../dispatch/chains.ts';
import type { FireTurnReports } from '../store/store.ts';
import type { KeyRing } from '../turn-reports/key-ring.ts';
import { refusalOf } from '../turn-reports/key-ring.ts';
import { CHRONOS_ROUTES } from './routes.ts';
import type { ChronosService } from './service.ts';

/** Paths under it need no transport token: a machine has only its own secret. */
export const FIRES_PATH = '/v1/fires/';

export type TurnReportRoutesOptions = { ring: KeyRing; log: Logger };

/** One answer for a fire that does not exist, is another user's, or has an invalid name. */
function fireNotFound(): ReveilleError {
  return new ReveilleError('not_found', 'this user has no such fire, or it has been deleted');
}

function fireIdOf(c: HttpContext): string {
  const fireId = fireIdSchema.safeParse(c.req.param('fire_id'));
  if (!fireId.success) throw fireNotFound();
  return fireId.data;
}

/**
 * Records reports of a fire. The end of its turn may make an occurrence due, or pause the series, and is passed to the
 * alarms that follow this one.
 *
 * @returns the stages that were new, or `undefined` when there is no such fire
 */
export async function recordReports(
  { store, clock, onDue }: Pick<ChronosService, 'store' | 'clock' | 'onDue'>,
  fire: Pick<FireTurnReports, 'owner' | 'alarmId' | 'fireId' | 'dueAt'>,
  reports: readonly TurnReport[],
): Promise<ReadonlySet<TurnStage> | undefined> {
  const recordedAt = clock.now();
  const recorded = await store.recordTurnReports({ ...fire, reports, recordedAt });
  if (!recorded) return undefined;
  const { fresh } = recorded;
  const { owner, alarmId, fireId } = fire;
  const isEnd = ({ stage }: TurnReport) => stage === 'turn_finished';
  const given = reports.find(isEnd);
  const isFollowed = followersOf(recorded).length > 0;
  const isRegarded = regardsEndOfTurn(recorded);
  if (!given || !(isFollowed || isRegarded)) return fresh;
  // A repetition may follow a process that stopped before the end had its effect. The first report counts.
  const known = fresh.has('turn_finished') ? [] : await store.turnReportsOf(owner, alarmId, [fireId]);
  const first = known.find(isEnd);
  const end = first ?? { ...given, recordedAt };
  if (isFollowed) await notifyFollowers({ store, clock, onDue }, fire, endOfTurn(fireId, end, end.recordedAt));
  if (isRegarded) {
    const now = clock.now();
    const state = await store.update(owner, alarmId, (before) => afterTurn(before, end, now, first?.recordedAt));
    for (const { dueAt } of state?.occurrences ?? []) if (dueAt !== null && dueAt <= now) onDue(dueAt);
  }
  return fresh;
}

export function turnReportRoutes(
  app: HttpApp,
  { store, clock, onDue }: ChronosService,
  { ring, log }: TurnReportRoutesOptions,
): void {
  serve(app, CHRONOS_ROUTES.postReceipts, async (c) => {
    const fireId = fireIdOf(c);
    const post = parseOrThrow(turnReportPostSchema, await readJson(c));
    const userId = ownerOf(post.user_id);
    const { alarmId, dueEpochMs: dueAt } = partsOfFireId(fireId);
    const fire = { owner: userId, alarmId, fireId, dueAt };
    // Without this check an unsigned request could name new users without end, each causing a request to the router.
    const beforeKeys = async () => {
      if (!(await store.hasFire(fire))) throw fireNotFound();
    };
    const signed = { userId, fireId, headers: c.req.header(), body: bodyBytes(c), beforeKeys };
    const refusal = await refusalOf(signed, { ring, clock });
    if (refusal !== undefined) {
      log.debug({ user_id: userId, fire_id: fireId, reason: refusal }, 'a turn report was rejected');
      throw new ReveilleError(
        'unauthorized',
        "a turn report must carry the webhook signature of the user's machine, with the fire's id as webhook-id and the current time",
      );
    }
    const reports = reportsOf(post);
    const recording = () => ({
      kind: 'server' as const,
      attributes: {
        'messaging.message.id': fireId,
        'reveille.turn.stages': reports.map(({ stage }) => stage),
      },
    });
    // Behind the signature of the machine.
    const fresh = await continueTrace(c.req.header(TRACEPARENT), 'record turn report', recording, () =>
      recordReports({ store, clock, onDue }, fire, reports),
    );
    if (!fresh) throw fireNotFound();
    return sendOk(c, { recorded: fresh.size, known: reports.length - fresh.size });
  });
}
