/**
 * 8. Access to another owner's alarm returns nothing, reveals nothing and changes nothing; and wakes reach only their
 *   owner.
 */

import { ownerOf } from '../../../../src/wire/did.ts';
import { showValue } from '../../../../src/wire/validate.ts';
import { type AlarmCase, alarmIdOf, type CallOf, type Evidence } from '../evidence.ts';
import { at, type Finding, named } from '../finding.ts';

/** Denials. `not_found` is expected; the others deny access as well. */
const DENIALS: ReadonlySet<string> = new Set(['not_found', 'unauthorized', 'forbidden']);

/** Texts that only the owner may see; short ones occur by chance. */
const MIN_SECRET_CHARACTERS = 8;

function secretsOf(one: AlarmCase | undefined, evidence: Evidence, alarmId: string): string[] {
  const row = evidence.recordOf(alarmId).row;
  const texts = [
    ...(one?.definitions ?? []).flatMap(({ message, payload, conversation }) => [message, payload, conversation]),
    ...(one?.creates ?? []).map(({ operation }) => operation.key),
    row?.wakeMessage,
    row?.payload,
    row?.label,
  ];
  return texts.filter((text): text is string => typeof text === 'string' && text.length >= MIN_SECRET_CHARACTERS);
}

/** Texts that each user has set: a list of their own alarms may show them. */
type OwnTexts = ReadonlyMap<string, ReadonlySet<string | null>>;

function ownTexts({ creates }: Evidence): OwnTexts {
  const byOwner = Map.groupBy(creates, ({ user }) => ownerOf(user));
  const textsOf = (calls: typeof creates) =>
    new Set(
      calls.flatMap(({ operation: { key, definition } }) => [
        key,
        definition.message,
        definition.payload,
        definition.conversation,
      ]),
    );
  return new Map([...byOwner].map(([owner, calls]) => [owner, textsOf(calls)]));
}

/** Whether a text contains another, as it is or as JSON. */
function contains(text: string, secret: string): boolean {
  return text.includes(secret) || text.includes(JSON.stringify(secret).slice(1, -1));
}

function violationOf(
  { user, operation, answer, invokedAt }: CallOf<'intrude'>,
  own: OwnTexts,
  evidence: Evidence,
): string | undefined {
  const { alarmId, action } = operation;
  const one = evidence.caseOf(alarmId);
  const intrusion = `${user}'s ${action} of ${one ? named(one) : `alarm ${alarmId}`} at ${at(invokedAt)}`;
  if (answer.answer === 'lost') return undefined;
  const text = answer.answer === 'refused' ? answer.message : (answer.revealed ?? '');
  const known = own.get(ownerOf(user));
  const secret = secretsOf(one, evidence, alarmId).find((each) => !known?.has(each) && contains(text, each));
  if (secret !== undefined) return `${intrusion} revealed ${showValue(secret)}`;
  if (answer.answer === 'refused')
    return DENIALS.has(answer.code)
      ? undefined
      : `${intrusion} was answered ${answer.code}, which reveals that there is such an alarm`;
  if (action === 'list') return contains(text, alarmId) ? `${intrusion} showed it` : undefined;
  return `${intrusion} was granted`;
}

/** Changes that an owner never requested and another user tried. */
function changesOf(targets: ReadonlySet<string>, evidence: Evidence): string[] {
  return [...targets].flatMap((alarmId) => {
    const one = evidence.caseOf(alarmId);
    if (!one?.row) return [];
    const { row, definitions } = one;
    if (row.owner !== one.owner) return [`${named(one)} of ${one.owner} is now ${row.owner}'s`];
    const changed = (
      [
        ['message', row.wakeMessage],
        ['payload', row.payload],
        ['conversation', row.conversationId],
      ] as const
    ).filter(([member, value]) => !definitions.some((definition) => definition[member] === value));
    return changed.map(
      ([member, value]) => `the ${member} of ${named(one)} is now ${showValue(value)}, which its owner never set`,
    );
  });
}

/** Wakes and turns that reached another user. */
function misdirected(evidence: Evidence): string[] {
  const { wakes, turns } = evidence.history.receiver;
  return [...wakes, ...(turns ?? [])].flatMap(({ fireId, user }) => {
    const alarmId = alarmIdOf(fireId);
    const owner = evidence.caseOf(alarmId)?.owner ?? evidence.recordOf(alarmId).row?.owner;
    if (owner === undefined || ownerOf(user) === owner) return [];
    return [`${fireId} belongs to ${owner} and reached ${user}`];
  });
}

export function otherUsersDenied(evidence: Evidence): Finding {
  const { intrusions } = evidence;
  const own = ownTexts(evidence);
  const targets = new Set(intrusions.map(({ operation }) => operation.alarmId));
  return {
    number: 8,
    title: "another owner's credential changes and reveals nothing",
    judged: intrusions.length,
    unit: 'trials',
    violations: [
      ...intrusions
        .map((intrusion) => violationOf(intrusion, own, evidence))
        .filter((sentence) => sentence !== undefined),
      ...changesOf(targets, evidence),
      ...new Set(misdirected(evidence)),
    ],
    counts: { 'alarms that other users tried to access': targets.size },
  };
}
