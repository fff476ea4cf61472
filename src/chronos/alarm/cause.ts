/**
 * Who caused a fire, and which commands of its alarm may run because of that. Pure.
 *
 * An alarm may have parts that the user's machine runs or reads: `run`, `check.command` and `check.path`. Whether they do
 * is decided here, for each fire, by its cause. A fire that may not is skipped, and the ledger says why. A fire of an
 * alarm that follows another one has the cause of the fire that it follows.
 */
import type { Cause, Causer } from '../../wire/cause.ts';
import { readCause, storedCause } from '../../wire/cause.ts';
import { isByPerson, readSetBy } from '../../wire/set-by.ts';
import type { Alarm, Occurrence } from './alarm.ts';
import { followedBy, followersOf } from './chain.ts';
import { eventRulesOf, isEventFire } from './events.ts';
import { hookSchemeOf } from './hook.ts';
import { optionsOf } from './options.ts';

/**
 * Which commands run by which cause. The machine's registration decides in addition whether an agent may set commands.
 * A secret address counts as a proof: chronosd shows it only to the person, if a person made it.
 */
export const MAY_RUN: Readonly<Record<Causer, { readonly ofPerson: boolean; readonly ofAgent: boolean }>> = {
  person: { ofPerson: true, ofAgent: true },
  sender: { ofPerson: true, ofAgent: true },
  address: { ofPerson: true, ofAgent: true },
  agent: { ofPerson: false, ofAgent: true },
  source: { ofPerson: false, ofAgent: true },
  client: { ofPerson: false, ofAgent: false },
};

/** Authors as {@link SetBy} is stored; in options, the agent is the empty text. */
type Author = string | null;
const ofOption = (author: string): Author => (author === '' ? null : author);
export const authorOption = (author: Author | undefined): string => author ?? '';

/** Who last decided when an alarm fires. */
export function timedBy(alarm: Pick<Alarm, 'options' | 'setBy'>): Author {
  const { timed_by } = optionsOf(alarm);
  return timed_by === undefined ? alarm.setBy : ofOption(timed_by);
}

/** The cause of a request. @param author as stored; without one, the agent */
export function causeOfAuthor(author: Author | undefined): Cause {
  if (author === null || author === undefined) return { by: 'agent' };
  const by = readSetBy(author);
  return by.kind === 'person' ? { by: 'person' } : { by: 'client', client_id: by.client_id };
}

const clockOf = (alarm: Pick<Alarm, 'options' | 'setBy'>): Cause => ({ ...causeOfAuthor(timedBy(alarm)), clock: true });

/** Both have caused it: the one with fewer rights counts. */
export const lesserCause = (one: Cause, other: Cause): Cause => (MAY_RUN[one.by].ofPerson ? other : one);

/**
 * The cause of an event that has arrived at an alarm, unless the event itself has one. What is proved with a secret is
 * worth as much as the one who made the secret: an agent or a client can sign for its own alarm.
 */
export function causeOfEvents(alarm: Pick<Alarm, 'kind' | 'options' | 'setBy'>): Cause {
  const { event, hook_by } = optionsOf(alarm);
  if (followedBy(alarm)) return { by: 'agent' };
  const scheme = event === undefined || event.source === 'webhook' ? hookSchemeOf(alarm) : undefined;
  if (scheme === undefined) return { by: 'source' };
  const makers = [timedBy(alarm), ...(hook_by === undefined ? [] : [ofOption(hook_by)])];
  const other = makers.find((maker) => !isByPerson(maker));
  return other === undefined ? { by: scheme === 'path' ? 'address' : 'sender' } : causeOfAuthor(other);
}

/**
 * Who causes a fire.
 *
 * @param events that it carries; omitted where they were not read
 * @returns `undefined`: the clock of an alarm without followers, by {@link timedBy}
 */
export function causeOf(
  alarm: Alarm,
  occurrence: Occurrence,
  events?: readonly { readonly cause?: string | undefined }[],
): Cause | undefined {
  const own = occurrence.cause === null ? undefined : readCause(occurrence.cause);
  if (!isEventFire(alarm, occurrence)) {
    // Its followers learn of it when its turn has ended: until then, another one may have decided when it fires.
    const isKept = alarm.kind === 'event' || followersOf(alarm).length > 0;
    return own ?? (isKept ? clockOf(alarm) : undefined);
  }
  const stored = events?.[0]?.cause;
  const ofEvents = stored === undefined ? causeOfEvents(alarm) : readCause(stored);
  return own ? lesserCause(own, ofEvents) : ofEvents;
}

/** The cause that the followers of a fire inherit. @param cause of the fire, as the ledger has it */
export function inheritedCause(alarm: Alarm, cause: string | null): string {
  // The fire of an event always has a cause, unless an earlier version recorded it.
  return cause ?? storedCause(alarm.kind === 'event' ? { by: 'agent' } : clockOf(alarm));
}

/** What the machine would run or read for a fire, and whether a person set it. @param isChecked the fire has its check */
function partsOf(alarm: Pick<Alarm, 'options'>, isChecked: boolean) {
  const { run, run_by_person = false, check, check_state } = optionsOf(alarm);
  const parts: { what: string; right: 'ofPerson' | 'ofAgent' }[] = [];
  if (run) parts.push({ what: 'run', right: run_by_person ? 'ofPerson' : 'ofAgent' });
  if (isChecked && check?.command)
    parts.push({ what: 'check.command', right: check_state?.byPerson ? 'ofPerson' : 'ofAgent' });
  if (isChecked && check?.path) parts.push({ what: 'check.path', right: 'ofAgent' });
  return parts;
}

const CAUSER_TEXTS: Readonly<Record<Exclude<Causer, 'client'>, string>> = {
  person: 'a person',
  agent: 'the agent',
  sender: 'a sender with a signature',
  address: 'a sender with a secret address',
  source: "the agent's machine (a file, a process or a server)",
};

function causeText({ by, client_id, clock }: Cause): string {
  const who = by === 'client' ? `the client ${client_id}` : CAUSER_TEXTS[by];
  return clock ? `${who} decided when it fires` : `${who} caused this fire`;
}

/**
 * Why a fire may not happen, because of what the machine would run or read for it; `undefined` if it may.
 *
 * @param cause `undefined`: the alarm's clock
 * @param isChecked the fire has its check
 */
export function runRefusal(
  alarm: Pick<Alarm, 'options' | 'setBy'>,
  cause: Cause | undefined,
  isChecked: boolean,
): string | undefined {
  const parts = partsOf(alarm, isChecked);
  if (parts.length === 0) return undefined;
  const causer = cause ?? clockOf(alarm);
  const refused = parts.find(({ right }) => !MAY_RUN[causer.by][right]);
  if (!refused) return undefined;
  const { what, right } = refused;
  const [whose, who] =
    right === 'ofPerson'
      ? ["is a person's command", 'the person, the clock that the person set, or a sender that proves itself']
      : ["is for the agent's machine", 'the user or the agent'];
  return `${what} ${whose}, and only ${who} may cause it: ${causeText(causer)}`;
}

/** Why no event of its source or sender could ever let an alarm fire; `undefined` if one could. */
export function neverRuns(alarm: Alarm): string | undefined {
  const { deadlineMs } = eventRulesOf(alarm);
  // A follower inherits the cause of each fire.
  if (alarm.kind !== 'event' || deadlineMs !== undefined || followedBy(alarm)) return undefined;
  return runRefusal(alarm, causeOfEvents(alarm), true);
}
