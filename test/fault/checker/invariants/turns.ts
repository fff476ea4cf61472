/** 4. Exactly one turn for each accepted occurrence, with the agent's own text in it, to the byte. */
import { showValue } from '../../../../src/wire/validate.ts';
import { type AlarmCase, alarmIdOf, type Evidence, isAcceptance } from '../evidence.ts';
import { at, type Finding, named } from '../finding.ts';
import type { Definition, Turn, Wake } from '../history.ts';

/** The received text; `undefined` where the log does not know it. */
type Arrived = { message: string; payload: string | null | undefined; conversation: string | null | undefined };

const MEMBERS = ['message', 'payload', 'conversation'] as const;

/**
 * The members that match none of the alarm's definitions. An edit may overtake a running wake, so each definition
 * counts.
 */
function changedMembers(arrived: Arrived, { definitions }: AlarmCase): (typeof MEMBERS)[number][] {
  return MEMBERS.filter((member) => {
    const value = arrived[member];
    return value !== undefined && !definitions.some((definition: Definition) => definition[member] === value);
  });
}

function contentMismatch(what: string, arrived: Arrived, one: AlarmCase): string[] {
  return changedMembers(arrived, one).map((member) => {
    const set = one.definitions.map((definition) => showValue(definition[member])).join(' or ');
    return `${what} of ${named(one)} carries the ${member} ${showValue(arrived[member])} where ${set} was set`;
  });
}

function ofWake({ message, payload, conversation }: Wake): Arrived {
  return { message, payload, conversation };
}

/** A turn of an alarm without a conversation gets one from its receiver. */
function ofTurn({ message, payload, conversation }: Turn, { definitions }: AlarmCase): Arrived {
  const isFree = conversation === null || definitions.some((definition) => definition.conversation === null);
  return { message, payload, conversation: isFree ? undefined : conversation };
}

function contentViolations(evidence: Evidence): string[] {
  const { wakes, turns } = evidence.history.receiver;
  const judge = (what: string, fireId: string, instant: number, arrived: (one: AlarmCase) => Arrived) => {
    const alarmId = alarmIdOf(fireId);
    const one = evidence.caseOf(alarmId);
    if (one) return contentMismatch(`${what} ${fireId} (${at(instant)})`, arrived(one), one);
    // The database may contain alarms of users whose client kept no log.
    return evidence.recordOf(alarmId).row ? [] : [`${what} ${fireId} (${at(instant)}) belongs to no requested alarm`];
  };
  return [
    ...wakes.flatMap((wake) => judge('the wake', wake.fireId, wake.receivedAt, () => ofWake(wake))),
    ...(turns ?? []).flatMap((turn) => judge('the turn', turn.fireId, turn.at, (one) => ofTurn(turn, one))),
  ];
}

function turnViolations(accepted: readonly string[], evidence: Evidence): string[] {
  if (evidence.history.receiver.turns === null) return [];
  return accepted.flatMap((fireId) => {
    const turns = evidence.turnsFor(fireId);
    if (turns.length === 1) return [];
    if (turns.length === 0) return [`${fireId} was accepted, and no turn ran for it`];
    return [`${fireId} has ${turns.length} turns (${turns.map((turn) => at(turn.at)).join(', ')})`];
  });
}

/** Wakes that arrived after an accepted one of the same occurrence. */
function duplicates(accepted: readonly string[], evidence: Evidence): number {
  return accepted.reduce((sum, fireId) => {
    const wakes = evidence.wakesFor(fireId).toSorted((one, other) => one.receivedAt - other.receivedAt);
    const first = wakes.findIndex(({ status }) => isAcceptance(status));
    return first < 0 ? sum : sum + wakes.length - first - 1;
  }, 0);
}

export function oneTurnEach(evidence: Evidence): Finding {
  const { turns } = evidence.history.receiver;
  const accepted = [...evidence.fireIds].filter((fireId) => evidence.isAccepted(fireId));
  const ended = (turns ?? []).filter(({ status }) => status === 'done');
  return {
    number: 4,
    title:
      turns === null
        ? 'a wake contains the text that was set'
        : 'one turn per accepted occurrence, with the exact text',
    judged: accepted.length,
    unit: 'accepted occurrences',
    violations: [...turnViolations(accepted, evidence), ...contentViolations(evidence)],
    counts: {
      'duplicate wakes': duplicates(accepted, evidence),
      ...(turns === null ? {} : { turns: turns.length, 'turns that have not ended well': turns.length - ended.length }),
    },
  };
}
