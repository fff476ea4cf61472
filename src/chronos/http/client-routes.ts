/** `/v1/clients/end`: what a program with an access token leaves behind when its access is revoked. */

import { readJson } from '../../kit/http/body.ts';
import { type HttpApp, type HttpContext, sendOk, serve } from '../../kit/http/handlers.ts';
import { type ClientEnded, clientEndSchema } from '../../wire/agent.ts';
import { ReveilleError } from '../../wire/errors.ts';
import { isByClient, isByPerson, madeByClient } from '../../wire/set-by.ts';
import { parseOrThrow } from '../../wire/validate.ts';
import type { Alarm, AlarmState } from '../alarm/alarm.ts';
import { timedBy } from '../alarm/cause.ts';
import { hookViewOf, newHookSecret } from '../alarm/hook.ts';
import { endAccess } from '../alarm/lifecycle.ts';
import { optionsOf } from '../alarm/options.ts';
import { authorsOf } from '../alarm/text-authors.ts';
import type { AlarmStore } from '../store/store.ts';
import { CHRONOS_ROUTES } from './routes.ts';
import { authorOfRequest, type ChronosService, callerOf } from './service.ts';

const PAGE = 100;

/** The owner's open alarms that fit, in pages; the paused ones first, so that a caller may pause what it gets. */
export async function* openAlarms(
  store: Pick<AlarmStore, 'list'>,
  owner: string,
  fits: (alarm: Alarm) => boolean,
): AsyncGenerator<Alarm[]> {
  for (const status of ['paused', 'active'] as const) {
    let before: string | undefined;
    for (let isLast = false; !isLast; ) {
      const page: AlarmState[] = await store.list(owner, {
        status,
        limit: PAGE,
        ...(before !== undefined && { before }),
      });
      yield page.map(({ alarm }) => alarm).filter(fits);
      before = page.at(-1)?.alarm.id;
      isLast = page.length < PAGE;
    }
  }
}

/**
 * Whether a program made an alarm, wrote a text of it, decides when it fires, made the secret of its senders, or set its
 * check.
 */
export const isOf = (clientId: string) => {
  const credential = madeByClient(clientId);
  return (alarm: Alarm) => {
    const { hook_by, check_state } = optionsOf(alarm);
    const authors = [...authorsOf(alarm), timedBy(alarm), hook_by];
    return (
      alarm.madeBy === credential ||
      check_state?.byClient === clientId ||
      authors.some((author) => isByClient(author, clientId))
    );
  };
};

/** Pauses the alarms that fit, and ends their addresses. */
export async function endAlarms(
  { store, clock }: Pick<ChronosService, 'store' | 'clock'>,
  owner: string,
  fits: (alarm: Alarm) => boolean,
): Promise<ClientEnded> {
  const ended = { alarms: 0, addresses: 0 };
  for await (const page of openAlarms(store, owner, fits))
    await Promise.all(
      page.map(async ({ id, status }) => {
        const secret = newHookSecret();
        const after = await store.update(owner, id, (state) =>
          fits(state.alarm) ? endAccess(state, clock.now(), secret) : state,
        );
        if (after?.alarm.status !== 'paused') return;
        if (status === 'active') ended.alarms++;
        if (hookViewOf(after.alarm) !== undefined) ended.addresses++;
      }),
    );
  return ended;
}

export function clientRoutes(app: HttpApp, service: ChronosService): void {
  serve(app, CHRONOS_ROUTES.endClient, async (c) => {
    const caller = await callerOf(service, c as HttpContext);
    const { client_id } = parseOrThrow(clientEndSchema, await readJson(c as HttpContext));
    const { author } = authorOfRequest(service, c as HttpContext, caller);
    const isOther = author !== undefined && !isByPerson(author) && !isByClient(author, client_id);
    if (isOther) throw new ReveilleError('forbidden', 'a client with an access token may only end its own alarms');
    return sendOk(c as HttpContext, await endAlarms(service, caller.owner, isOf(client_id)));
  });
}
