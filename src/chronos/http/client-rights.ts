/** What a program with an access token may set: fields by an allow-list, and conversations and chains of its own. */
import type { AlarmCreate, AlarmPatch } from '../../wire/alarm.ts';
import { fieldOf, isForClients, isOption, memberOf, OWNER_FIELDS, type OwnerField } from '../../wire/alarm-fields.ts';
import { ReveilleError } from '../../wire/errors.ts';
import { clientThatMade } from '../../wire/set-by.ts';
import type { Alarm } from '../alarm/alarm.ts';
import { optionsOf } from '../alarm/options.ts';
import type { AlarmStore } from '../store/store.ts';
import type { Author } from './service.ts';

/** Members of objects that a program may set; the others of `check` are no kinds of checks. */
const CHECKS = ['http', 'on_error', 'max_skips', 'wake_at_least_every'];
const SOURCES = ['webhook'];

const forbidden = (what: string, remedy = 'the user can set it with: reveille alarm set') =>
  new ReveilleError('forbidden', `a client with an access token may not ${what}; ${remedy}`);

/** The fields that are refused. In a new alarm, an explicit default equals an omitted field. */
function refusedFields(asked: AlarmCreate | AlarmPatch, isNew: boolean): string[] {
  const given = OWNER_FIELDS.filter((name) => {
    const value = asked[name];
    return value !== undefined && !(isNew && value === fieldOf(name).absent);
  });
  const { check, event } = asked;
  return [
    ...given.filter((name) => !isForClients(name)),
    ...Object.keys(check ?? {}).flatMap((name) => (CHECKS.includes(name) ? [] : [`check.${name}`])),
    ...(event && !SOURCES.includes(event.source) ? [`event.source ${event.source}`] : []),
  ];
}

/**
 * Refuses what a program may not set. Persons and the agent may set everything.
 *
 * @param by of the request
 * @throws ReveilleError `forbidden`
 */
export async function refuseForClient(
  store: Pick<AlarmStore, 'get' | 'hasConversation'>,
  owner: string,
  { madeBy, ownsConversation }: Author,
  asked: AlarmCreate | AlarmPatch,
  isNew: boolean,
): Promise<void> {
  if (madeBy === null || clientThatMade(madeBy) === undefined) return;
  const refused = refusedFields(asked, isNew);
  if (refused.length > 0) throw forbidden(`set ${refused.join(' or ')}`);
  const { conversation_id: conversation, after } = asked;
  if (
    typeof conversation === 'string' &&
    !ownsConversation &&
    !(await store.hasConversation(owner, madeBy, conversation))
  )
    throw forbidden(
      'name a conversation that no alarm of its own was in',
      'omit conversation_id, and each fire begins a new one',
    );
  // Its turn would answer with what the followed turn has answered.
  if (after && (await store.get(owner, after.alarm))?.alarm.madeBy !== madeBy)
    throw forbidden('follow an alarm that it did not make', 'name an alarm of its own in after');
}

/** What brings text to the agent: texts of an alarm, and where others come from. */
const TEXTS = ['label', 'wake_message', 'payload', 'check', 'event'] as const;

const isSet = (alarm: Alarm, name: OwnerField): boolean => {
  const value = isOption(name) ? optionsOf(alarm)[name] : alarm[memberOf(name) as keyof Alarm];
  return value !== undefined && value !== null && value !== fieldOf(name).absent;
};

/**
 * Refuses another text for an alarm of others with rights that the program could not give its own: the text would be
 * read in the conversation of others, reach their channels, or wake in quiet hours.
 *
 * @throws ReveilleError `forbidden`
 */
export function refuseTextByClient({ madeBy }: Pick<Author, 'madeBy'>, alarm: Alarm, patch: AlarmPatch): void {
  if (clientThatMade(madeBy) === undefined || alarm.madeBy === madeBy) return;
  if (TEXTS.every((name) => patch[name] === undefined)) return;
  const rights = OWNER_FIELDS.filter(
    (name) => isSet(alarm, name) && (!isForClients(name) || name === 'conversation_id'),
  );
  if (rights.length > 0)
    throw forbidden(
      `change what the agent reads of an alarm of others with ${rights.join(' and ')}`,
      'set a new alarm',
    );
}
