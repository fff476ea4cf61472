/** Which intent a command means: a whole id, or the beginning of one. */

import type { ExecutorClient } from '../../executor/client.ts';
import { LIST_LIMIT_MAX } from '../../wire/alarm.ts';
import { ReveilleError } from '../../wire/errors.ts';
import { shortIds } from '../screens/render.ts';

/** Shorter than the whole of a UUID, and long enough to mean something. */
const BEGINNING = /^[0-9a-f][0-9a-f-]{5,34}$/;
/** Intents that are named when a beginning fits several. */
const NAMED = 5;

/**
 * Looks among the newest intents; an older one takes its whole id. What cannot be the beginning of a UUID is passed on as it is: the
 * executor may give its ids another form.
 *
 * @throws ReveilleError `not_found` or `conflict` when no intent, or more than one, begins like that
 */
export async function findIntentId(client: ExecutorClient, given: string): Promise<string> {
  const beginning = given.toLowerCase();
  if (!BEGINNING.test(beginning)) return given;
  const ids = (await client.list({ limit: LIST_LIMIT_MAX })).map(({ value }) => value.intent_id);
  if (ids.includes(given)) return given;
  const found = ids.filter((id) => id.startsWith(beginning));
  const [only, ...others] = found;
  if (only === undefined) {
    const message = `none of your newest ${LIST_LIMIT_MAX} intents has an id that begins with ${beginning}; "reveille intent list" shows yours`;
    throw new ReveilleError('not_found', message);
  }
  if (others.length === 0) return only;
  const named = [...shortIds(found).values()].slice(0, NAMED).join(', ');
  const more = found.length > NAMED ? ', and others' : '';
  throw new ReveilleError('conflict', `${beginning} could be any of ${named}${more}; give more of the id`);
}
