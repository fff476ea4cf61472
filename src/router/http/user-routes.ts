/** Users and their credentials, for operators: `/admin/users` (docs/reference/api.md, "The public listener"). */
import { z } from 'zod';
import { readJson } from '../../kit/http/body.ts';
import { type HttpApp, sendOk, serve } from '../../kit/http/handlers.ts';
import type { Logger } from '../../kit/log/log.ts';
import { clientEndSchema } from '../../wire/agent.ts';
import { LIST_LIMIT_DEFAULT } from '../../wire/alarm.ts';
import { ownerOf } from '../../wire/did.ts';
import { ReveilleError } from '../../wire/errors.ts';
import {
  personAddSchema,
  personListQuerySchema,
  personRightsSchema,
  personTokenCreateSchema,
  personTokenIdSchema,
} from '../../wire/person.ts';
import { parseOrThrow } from '../../wire/validate.ts';
import type { Endings } from '../public/endings.ts';
import type { PersonTokens } from '../public/person-tokens.ts';
import { userIdOf } from './machine-routes.ts';
import { ROUTER_ROUTES } from './routes.ts';

type UserRoutesOptions = {
  tokens: PersonTokens;
  hasConsole: boolean;
  /** Of the public listener; `undefined` until it listens. */
  endings: () => Endings | undefined;
  log: Logger;
};

/** Call it after the check of the admin token was added. */
export function addUserRoutes(app: HttpApp, { tokens, hasConsole, endings, log }: UserRoutesOptions): void {
  const console = hasConsole ? { has_console: true } : {};
  const note = (action: string, userId: string, ids: readonly string[]) =>
    log.info({ user_id: userId, action, credentials: ids }, 'credentials of a user changed');

  serve(app, ROUTER_ROUTES.listUsers, (c) => {
    const { user_id, cursor, limit = LIST_LIMIT_DEFAULT } = parseOrThrow(personListQuerySchema, c.req.query());
    const found = tokens.list({
      limit: limit + 1,
      ...(cursor === undefined ? {} : { after: cursor }),
      ...(user_id === undefined ? {} : { userId: ownerOf(user_id) }),
    });
    const page = found.slice(0, limit);
    return sendOk(c, { tokens: page, next_cursor: found.length > limit ? page.at(-1)?.id : undefined });
  });

  serve(app, ROUTER_ROUTES.addUser, async (c) => {
    const { user_id, ...given } = parseOrThrow(personAddSchema, await readJson(c));
    const made = await tokens.add(ownerOf(user_id), given);
    note('add', made.user_id, [made.id]);
    return sendOk(c, { ...made, ...console });
  });

  serve(app, ROUTER_ROUTES.addUserToken, async (c) => {
    const made = await tokens.issue(userIdOf(c), parseOrThrow(personTokenCreateSchema, await readJson(c)));
    note('token', made.user_id, [made.id]);
    return sendOk(c, { ...made, ...console });
  });

  serve(app, ROUTER_ROUTES.grantUserToken, async (c) => {
    const { token_id: id } = parseOrThrow(tokenPathSchema, { token_id: c.req.param('token_id') });
    const view = await tokens.grant(userIdOf(c), id, parseOrThrow(personRightsSchema, await readJson(c)));
    note('grant', view.user_id, [view.id]);
    return sendOk(c, view);
  });

  serve(app, ROUTER_ROUTES.revokeUserToken, async (c) => {
    const { token_id: id } = parseOrThrow(tokenPathSchema, { token_id: c.req.param('token_id') });
    const view = await tokens.revoke(userIdOf(c), id);
    note('revoke', view.user_id, [view.id]);
    return sendOk(c, { ...view, ended: await endings()?.ofCredentials(view.user_id, [view.id]) });
  });

  serve(app, ROUTER_ROUTES.endClient, async (c) => {
    const { client_id } = parseOrThrow(clientEndSchema, await readJson(c));
    const ended = await endings()?.ofClients(userIdOf(c), [client_id]);
    if (!ended) throw new ReveilleError('unavailable', 'the public listener does not listen yet');
    return sendOk(c, ended);
  });

  serve(app, ROUTER_ROUTES.revokeUser, async (c) => {
    const userId = userIdOf(c);
    const revoked = await tokens.revokeAll(userId);
    const ids = revoked.map(({ id }) => id);
    note('revoke', userId, ids);
    return sendOk(c, { user_id: userId, revoked, ended: await endings()?.ofCredentials(userId, ids) });
  });
}

const tokenPathSchema = z.object({ token_id: personTokenIdSchema });
