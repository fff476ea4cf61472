/** Which alarm a command means: a whole id, or the beginning of one. */
import type { ChronosClient } from '../../chronos/client.ts';
import { alarmIdSchema, LIST_LIMIT_MAX } from '../../wire/alarm.ts';
import { ReveilleError } from '../../wire/errors.ts';
import { showValue } from '../../wire/validate.ts';
import { fit } from '../columns.ts';
import { preview, shortIds } from '../render.ts';
import { UsageError } from '../usage-error.ts';

const SHORTEST_PREFIX = 6;
const PREFIX = /^[0-9a-f][0-9a-f-]*$/;
/** Alarms that are named when a prefix fits several. */
const NAMED = 5;

function ambiguous(prefix: string, found: { id: string; label: string; wake_message: string }[]): ReveilleError {
  const ids = shortIds(found.map(({ id }) => id));
  const named = found.slice(0, NAMED).map((alarm) => `${ids.get(alarm.id)} (${fit(preview(alarm), 30)})`);
  const others = found.length > NAMED ? ', and others' : '';
  return new ReveilleError('conflict', `${prefix} could be any of ${named.join(', ')}${others}; give more of the id`);
}

/**
 * @param given an id, or at least the first six characters of one, in any case
 * @throws UsageError when it can be neither
 * @throws ReveilleError `not_found` or `conflict` when no alarm, or more than one, begins like that
 */
export async function findAlarmId(client: ChronosClient, given: string): Promise<string> {
  const prefix = given.toLowerCase();
  if (alarmIdSchema.safeParse(prefix).success) return prefix;
  if (prefix.length < SHORTEST_PREFIX || !PREFIX.test(prefix)) {
    const right = `an alarm's id, or at least its first ${SHORTEST_PREFIX} characters; "reveille alarm list" shows them`;
    throw new UsageError(`the id must be ${right} (got ${showValue(given)})`);
  }
  const found: { id: string; label: string; wake_message: string }[] = [];
  let cursor: string | undefined;
  do {
    const page = await client.listAlarms({ limit: LIST_LIMIT_MAX, ...(cursor === undefined ? {} : { cursor }) });
    found.push(...page.alarms.filter(({ id }) => id.startsWith(prefix)));
    const last = page.alarms.at(-1);
    // Ids are UUIDv7 and come newest first: below the prefix there is nothing left to find.
    cursor = last !== undefined && last.id >= prefix ? page.next_cursor : undefined;
  } while (cursor !== undefined);
  if (found.length > 1) throw ambiguous(prefix, found);
  const [only] = found;
  if (only) return only.id;
  throw new ReveilleError(
    'not_found',
    `you have no alarm whose id begins with ${prefix}; "reveille alarm list" shows yours`,
  );
}
