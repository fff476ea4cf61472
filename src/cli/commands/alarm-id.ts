/** Which alarm a command means: a whole id, the beginning of one, or a label that only one alarm has. */
import type { ChronosClient } from '../../chronos/client.ts';
import { type AlarmView, alarmIdSchema, LIST_LIMIT_MAX } from '../../wire/alarm.ts';
import { ReveilleError } from '../../wire/errors.ts';
import { showValue } from '../../wire/validate.ts';
import { UsageError } from '../flags/usage-error.ts';
import { fit } from '../screens/columns.ts';
import { preview, shortIds } from '../screens/render.ts';
import { everyAlarm, PRESENT } from './alarm-list.ts';

const SHORTEST_PREFIX = 6;
const PREFIX = /^[0-9a-f][0-9a-f-]*$/;
/** Alarms that are named when a word fits several. */
const NAMED = 5;

function ambiguous(word: string, found: readonly AlarmView[]): ReveilleError {
  const ids = shortIds(found.map(({ id }) => id));
  const named = found.slice(0, NAMED).map((alarm) => `${ids.get(alarm.id)} (${fit(preview(alarm), 30)})`);
  const others = found.length > NAMED ? ', and others' : '';
  return new ReveilleError('conflict', `${word} could be any of ${named.join(', ')}${others}; give more of the id`);
}

async function beginningWith(client: ChronosClient, prefix: string): Promise<AlarmView[]> {
  const found: AlarmView[] = [];
  let cursor: string | undefined;
  do {
    const page = await client.listAlarms({ limit: LIST_LIMIT_MAX, ...(cursor === undefined ? {} : { cursor }) });
    found.push(...page.alarms.filter(({ id }) => id.startsWith(prefix)));
    const last = page.alarms.at(-1);
    // Ids are UUIDv7 and come newest first: below the prefix there is nothing left to find.
    cursor = last !== undefined && last.id >= prefix ? page.next_cursor : undefined;
  } while (cursor !== undefined);
  return found;
}

/** Alarms with this label: of those that ring, else of those that are paused or failed, else of those that are over. */
async function labelled(client: ChronosClient, label: string): Promise<AlarmView[]> {
  const isIt = (alarm: AlarmView) => alarm.label === label;
  for (const status of PRESENT) {
    const found = (await everyAlarm(client, { status })).filter(isIt);
    if (found.length > 0) return found;
  }
  return (await everyAlarm(client)).filter(isIt);
}

/**
 * @param given an id, at least the first six characters of one in any case, or a label to the letter
 * @throws UsageError for no word at all
 * @throws ReveilleError `not_found` or `conflict` when no alarm, or more than one, fits
 */
export async function findAlarmId(client: ChronosClient, given: string): Promise<string> {
  const prefix = given.toLowerCase();
  if (alarmIdSchema.safeParse(prefix).success) return prefix;
  const mayBeId = prefix.length >= SHORTEST_PREFIX && PREFIX.test(prefix);
  if (given === '') throw new UsageError("an alarm's id, its beginning, or its label is missing");
  const byId = mayBeId ? await beginningWith(client, prefix) : [];
  const found = byId.length > 0 ? byId : await labelled(client, given);
  if (found.length > 1) throw ambiguous(showValue(given), found);
  const [only] = found;
  if (only) return only.id;
  throw new ReveilleError(
    'not_found',
    `you have no alarm with the id or the label ${showValue(given)}; "reveille alarm list --all" shows yours (an id may be shortened to its first ${SHORTEST_PREFIX} characters)`,
  );
}
