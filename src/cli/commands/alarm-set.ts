/** `reveille alarm set` and `edit`: flags to an alarm, or to its changes. */
import type { AlarmCreateBody, AlarmPatchBody } from '../../chronos/client.ts';
import { parseDuration } from '../../kit/clock/duration.ts';
import { formatWithOffset } from '../../kit/clock/wall-clock.ts';
import { isZone, machineZone } from '../../kit/clock/zone.ts';
import { type GivenParts, PART_NAMES, type PartName, partOf } from '../../kit/phrase/condition-parts.ts';
import { type Conditions, conditionsOf, givenPartsOf } from '../../kit/phrase/conditions.ts';
import { readPhrase } from '../../kit/phrase/phrase.ts';
import { PhraseError, type PhraseHours, type Reading } from '../../kit/phrase/reading.ts';
import { repetitionText } from '../../kit/phrase/reading-text.ts';
import { usesWallClock } from '../../kit/phrase/series-text.ts';
import type { AlarmCreated, AlarmView } from '../../wire/alarm.ts';
import { fieldOf, memberOf, OWNER_FIELDS, SERIES_FIELDS, type SeriesField } from '../../wire/alarm-fields.ts';
import type { ObjectField } from '../../wire/conditions.ts';
import { ReveilleError } from '../../wire/errors.ts';
import type { RawJson } from '../../wire/json.ts';
import { formatInstant, parseInstant } from '../../wire/rfc3339.ts';
import { checkTools } from '../access/agent-tools.ts';
import { checkChannels } from '../access/channels.ts';
import { alarmClient, personOf } from '../access/chronos.ts';
import { publicUrl } from '../access/router.ts';
import { hoursOfUser } from '../access/user-hours.ts';
import type { CliContext } from '../context.ts';
import { CLEARABLE, type FieldFlags, FLAGGED_FIELDS, type FlaggedField, flagOf } from '../flags/alarm-flags.ts';
import { type ConditionFlags, partFlag, partsIn } from '../flags/condition-flags.ts';
import { durationFlag, fileFlag, jsonFlag, wholeNumberFlag } from '../flags/flags.ts';
import { UsageError } from '../flags/usage-error.ts';
import { readerOf } from '../screens/reader.ts';
import { hookLines, renderAlarm, renderCreated } from '../screens/render.ts';
import { besideOf, findAlarmId } from './alarm.ts';

export type SetFlags = FieldFlags &
  ConditionFlags & {
    in?: string;
    at?: string;
    cron?: string;
    rrule?: string;
    zone?: string;
    payload?: string;
    payloadFile?: string;
    messageFile?: string;
    key?: string;
    as?: string;
  };

const MAX_INTEGER = 999_999_999;

export function messageOf(message: string | undefined, { messageFile }: SetFlags): string {
  if (message !== undefined && messageFile !== undefined)
    throw new UsageError('the message is given twice, as an argument and as --message-file; omit one');
  if (message !== undefined) return message;
  if (messageFile !== undefined) return fileFlag('--message-file', messageFile);
  throw new UsageError('the message is missing; write it in quotes after "alarm set", or give --message-file');
}

export function payloadOf({ payload, payloadFile, messageFile }: SetFlags): RawJson | undefined {
  if (payload !== undefined && payloadFile !== undefined)
    throw new UsageError('--payload and --payload-file exclude each other; give one of them');
  if (payload !== undefined) return jsonFlag('--payload', payload);
  if (payloadFile === undefined) return undefined;
  if (payloadFile === '-' && messageFile === '-')
    throw new UsageError('--message-file and --payload-file cannot both be -; standard input can be read once');
  return jsonFlag(`--payload-file ${payloadFile}`, fileFlag('--payload-file', payloadFile), '');
}

type Schedule = Pick<
  AlarmCreateBody,
  'kind' | 'delay_seconds' | 'fire_at' | 'cron_expr' | 'rrule' | 'timezone' | SeriesField | ObjectField
>;

/** Time and zone of the command; `zone` is missing when the computer has no known zone. */
export type Typed = { readonly now: number; readonly zone: string | undefined; readonly hours?: PhraseHours };

/** How a time was read: in which zone, none for a delay, and what it left open. */
type Read = { readIn?: string; assumed?: string };

/** When an alarm fires. */
type When = Pick<AlarmCreateBody, 'delay_seconds' | 'fire_at' | 'cron_expr' | 'rrule' | 'timezone'> & Read;

type WhenFlags = Pick<SetFlags, 'in' | 'at' | 'cron' | 'rrule' | 'zone'>;

const WHEN_FLAGS = { in: '--in', at: '--at', cron: '--cron', rrule: '--rrule' } as const;

const zoneNotKnown = () =>
  new UsageError('the time zone of this computer is not known; give --zone, such as --zone Europe/Berlin');

/** The meaning of a time in the reader's zone. @throws UsageError naming the source of the text */
function readingOf(name: string, text: string, { zone }: Pick<SetFlags, 'zone'>, typed: Typed): Reading {
  if (zone !== undefined && !isZone(zone))
    throw new UsageError(
      `--zone must be an IANA time zone such as Europe/Berlin, or UTC (got ${JSON.stringify(zone)})`,
    );
  try {
    return readPhrase(text, { now: typed.now, zone: zone ?? typed.zone, hours: typed.hours });
  } catch (thrown) {
    if (!(thrown instanceof PhraseError)) throw thrown;
    throw thrown.needsZone ? zoneNotKnown() : new UsageError(`${name}: ${thrown.message}`, thrown);
  }
}

function whenRead(reading: Reading): When {
  if (reading.kind === 'delay') return { delay_seconds: reading.seconds };
  const { zone, assumed } = reading;
  const read = { readIn: zone, ...(assumed !== undefined && { assumed }) };
  if (reading.kind === 'instant') return { fire_at: formatInstant(reading.at), ...read };
  if (reading.rrule !== undefined) return { rrule: reading.rrule, timezone: zone, ...read };
  return usesWallClock(reading.cron)
    ? { cron_expr: reading.cron, timezone: zone, ...read }
    : { cron_expr: reading.cron };
}

function rulesIn(text: string, flags: WhenFlags, typed: Typed): Reading {
  const reading = readingOf('--rrule', text, flags, typed);
  if (reading.kind === 'series' && reading.rrule !== undefined) return reading;
  throw new UsageError(
    `--rrule must be rules of RFC 5545, such as --rrule "RRULE:FREQ=WEEKLY;INTERVAL=2;BYDAY=MO" (got ${JSON.stringify(text)})`,
  );
}

/** The time of an alarm, as far as given. @throws UsageError for two times, or a wrong one */
export function whenOf(flags: WhenFlags, typed: Typed, words?: string, command: 'set' | 'edit' = 'set'): When {
  const given = (['in', 'at', 'cron', 'rrule'] as const)
    .filter((name) => flags[name] !== undefined)
    .map((name) => WHEN_FLAGS[name]);
  if (words !== undefined && given.length > 0)
    throw new UsageError(`${JSON.stringify(words)} and ${given.join(' and ')} both give a time; give one of them`);
  if (given.length > 1) throw new UsageError(`${given.join(' and ')} exclude each other; give one of them`);
  if (words !== undefined) return whenRead(readingOf('when', words, flags, typed));
  if (flags.in !== undefined) {
    if (parseDuration(flags.in) !== undefined || !/[a-z]{2,}/i.test(flags.in))
      return { delay_seconds: durationFlag('--in', flags.in, 1) };
    const reading = readingOf('--in', /^in\s/i.test(flags.in) ? flags.in : `in ${flags.in}`, flags, typed);
    if (reading.kind === 'series')
      throw new UsageError(`--in must be a duration, such as --in "2 hours" (got ${JSON.stringify(flags.in)})`);
    return whenRead(reading);
  }
  if (flags.at !== undefined) {
    // chronosd checks whether the time has passed.
    if (parseInstant(flags.at) !== undefined) return { fire_at: flags.at };
    const reading = readingOf('--at', flags.at, flags, typed);
    if (reading.kind === 'series')
      throw new UsageError(
        command === 'edit'
          ? `--at must be one instant; write ${JSON.stringify(flags.at)} after the id, or give --cron`
          : `--at must be one instant; write ${JSON.stringify(flags.at)} after the message, or give --cron`,
      );
    return whenRead(reading);
  }
  if (flags.rrule !== undefined) return whenRead(rulesIn(flags.rrule, flags, typed));
  if (flags.cron === undefined) return flags.zone === undefined ? {} : { timezone: flags.zone };
  // chronosd reports errors in an expression.
  if (/^[@*\d]/.test(flags.cron.trim())) {
    if (!usesWallClock(flags.cron))
      return { cron_expr: flags.cron, ...(flags.zone === undefined ? {} : { timezone: flags.zone }) };
    const zone = flags.zone ?? typed.zone;
    if (zone === undefined) throw zoneNotKnown();
    return { cron_expr: flags.cron, timezone: zone, readIn: zone };
  }
  const reading = readingOf('--cron', flags.cron, flags, typed);
  if (reading.kind !== 'series')
    throw new UsageError(`--cron must be a schedule, such as --cron "0 9 * * 1-5" (got ${JSON.stringify(flags.cron)})`);
  return whenRead(reading);
}

/** An instant on the wire. @throws UsageError naming the flag */
function instantOf(flag: string, text: string, zone: string | undefined, typed: Typed): string {
  if (parseInstant(text) !== undefined) return text;
  const reading = readingOf(flag, text, zone === undefined ? {} : { zone }, typed);
  if (reading.kind === 'instant' && reading.assumed !== undefined)
    throw new UsageError(`${flag}: "${text}" does not have a time of day; write "${text} at 18:00"`);
  if (reading.kind === 'instant') return formatInstant(reading.at);
  throw new UsageError(`${flag} must be an instant, such as ${flag} "2026-12-31 18:00" (got ${JSON.stringify(text)})`);
}

function fieldIn(name: FlaggedField, flags: SetFlags, typed: Typed): unknown {
  const { type, least = 0, most = MAX_INTEGER } = fieldOf(name);
  const flag = flagOf(name);
  const given = (flags as Readonly<Record<string, string | boolean | undefined>>)[memberOf(flag.slice(2))];
  if (typeof given !== 'string') return given;
  if (type === 'seconds') return durationFlag(flag, given, least);
  if (type === 'count') return wholeNumberFlag(flag, given, least, most);
  if (type === 'list') return namesIn(given);
  return type === 'instant' ? instantOf(flag, given, flags.zone, typed) : given;
}

/** Names separated by commas. */
export const namesIn = (text: string): string[] =>
  text
    .split(',')
    .map((name) => name.trim())
    .filter((name) => name !== '');

/** The values of some fields in the flags. @throws UsageError for a wrong value */
function fieldsIn<N extends FlaggedField>(names: readonly N[], flags: SetFlags, typed: Typed) {
  const values = names.map((name) => [name, fieldIn(name, flags, typed)]);
  return Object.fromEntries(values) as Pick<AlarmCreateBody, N>;
}

const OTHER_FIELDS = FLAGGED_FIELDS.filter(
  (name): name is Exclude<FlaggedField, SeriesField> => !(SERIES_FIELDS as readonly string[]).includes(name),
);

/** The fields in the flags of {@link ConditionFlags}. @throws UsageError naming the flag, the value and the remedy */
const conditionsIn = (given: GivenParts, earlier?: Conditions): Conditions =>
  conditionsOf(given, { nameOf: partFlag, refuse: (message) => new UsageError(message), earlier });

/** Whether the alarm fires without a time. */
const waits = ({ event, after, expect }: Conditions) => (event ?? after ?? expect) !== undefined;

/** The first flag of a field without a time. */
const waitingFlag = (given: GivenParts) =>
  partFlag((['on', 'after', 'expect-every'] as const).find((name) => given[name] !== undefined)!);

function scheduleOf(flags: SetFlags, typed: Typed, words: string | undefined): Schedule & Read {
  const given = partsIn(flags);
  const conditions = conditionsIn(given);
  if (!waits(conditions)) return { ...timeOf(flags, typed, words), ...conditions };
  const time = [
    ...(words === undefined ? [] : [JSON.stringify(words)]),
    ...(['in', 'at', 'cron', 'rrule', 'zone'] as const)
      .filter((name) => flags[name] !== undefined)
      .map((name) => `--${name}`),
  ];
  if (time.length > 0) throw new UsageError(`${waitingFlag(given)} takes the place of a time; omit ${time[0]}`);
  return { kind: 'event', ...fieldsIn(SERIES_FIELDS, flags, typed), ...conditions };
}

function timeOf(flags: SetFlags, typed: Typed, words: string | undefined): Schedule & Read {
  const when = whenOf(flags, typed, words);
  const kind = when.cron_expr !== undefined ? 'cron' : when.rrule !== undefined ? 'rrule' : 'once';
  if (kind !== 'once') return { kind, ...when, ...fieldsIn(SERIES_FIELDS, flags, typed) };
  if (when.delay_seconds === undefined && when.fire_at === undefined)
    throw new UsageError(
      'the time is missing; write it after the message, such as "tomorrow 9am" or "every weekday at 9:00", or give --in, --at, --cron or --rrule; or name an event with --on, --after or --expect-every',
    );
  const given = fieldsIn(SERIES_FIELDS, flags, typed);
  const foreign = SERIES_FIELDS.find((name) => given[name] !== undefined);
  if (foreign !== undefined)
    throw new UsageError(`${flagOf(foreign)} needs a series, such as "every day at 9:00"; omit it`);
  if (flags.zone !== undefined && when.readIn === undefined)
    throw new UsageError('--zone needs a time of day; omit it for a delay');
  return { kind, ...when };
}

/**
 * The alarm in a command line.
 *
 * @throws UsageError naming the flag that is missing, duplicate or wrong; chronosd checks the rest
 */
export function alarmOf(
  message: string | undefined,
  flags: SetFlags,
  typed: Typed,
  words?: string,
): { alarm: AlarmCreateBody } & Read {
  // Standard input is read last, after all other checks.
  const { readIn, assumed, ...schedule } = scheduleOf(flags, typed, words);
  const alarm: AlarmCreateBody = {
    ...schedule,
    ...fieldsIn(OTHER_FIELDS, flags, typed),
    payload: payloadOf(flags),
    idempotency_key: flags.key,
    wake_message: messageOf(message, flags),
  };
  return { alarm, ...(readIn !== undefined && { readIn }), ...(assumed !== undefined && { assumed }) };
}

export const typedWhere = async (context: CliContext): Promise<Typed> => ({
  now: context.clock.now(),
  zone: machineZone(context.settings.TZ),
  hours: await hoursOfUser(context)(),
});

/** Flags by the field names in chronosd's errors. A switch has no wrong value. */
const SAID_BY = new Map<string, string>([['wake_message', 'the message']]);
for (const name of OWNER_FIELDS) {
  const { type, flag } = fieldOf(name);
  if (flag === undefined || type === 'switch' || type === 'object' || flag.name === name) continue;
  SAID_BY.set(name, flagOf(name));
  // A bound is a number of seconds; the flag takes a duration.
  if (type === 'seconds') SAID_BY.set(`${name} must`, `${flagOf(name)}, in seconds, must`);
}
for (const name of PART_NAMES) {
  const { of, member } = partOf(name);
  if (member !== undefined) SAID_BY.set(`${of}.${member}`, partFlag(name));
}
/** Fields whose flag has their name, which is a word: it is the field at the beginning of an error only. */
const WORDS = OWNER_FIELDS.filter((name) => fieldOf(name).flag?.name === name);
/** Quoted text is the given value and is not changed. Of two names that begin alike, the longer one counts. */
const NAMES = [...SAID_BY.keys()].sort((one, other) => other.length - one.length);
const NAMED = new RegExp(
  `"(?:[^"\\\\]|\\\\.)*"|\\b(?:${NAMES.join('|').replaceAll('.', String.raw`\.`)})\\b|^(?:${WORDS.join('|')})(?= )`,
  'g',
);

/** Errors about fields; `unavailable` names the key under which a lost request may be repeated. */
const REWORDED: ReadonlySet<string> = new Set(['invalid_request', 'conflict', 'unavailable']);

/** Runs `work` and rewords its errors with the names of the flags. */
export async function inFlags<T>(work: Promise<T>): Promise<T> {
  try {
    return await work;
  } catch (error) {
    if (!(error instanceof ReveilleError) || !REWORDED.has(error.code)) throw error;
    const message = error.message.replace(
      NAMED,
      (name) => SAID_BY.get(name) ?? (name.startsWith('"') ? name : `--${name}`),
    );
    throw new ReveilleError(error.code, message, { cause: error, retryable: error.retryable, status: error.status });
  }
}

const ALARM_SOURCE = 'alarm:';

/** The flags with the id of the alarm that they name by its label or the beginning of its id. */
async function withAlarmId<F extends SetFlags>(context: CliContext, flags: F): Promise<F> {
  const { after, on } = flags;
  const idOf = (name: string) => findAlarmId(alarmClient(context), name);
  if (typeof after === 'string') return { ...flags, after: await idOf(after) };
  if (typeof on !== 'string' || !on.startsWith(ALARM_SOURCE)) return flags;
  return { ...flags, on: `${ALARM_SOURCE}${await idOf(on.slice(ALARM_SOURCE.length))}` };
}

export async function alarmSet(
  context: CliContext,
  flags: SetFlags,
  message: string | undefined,
  words: string | undefined,
): Promise<void> {
  const isWhen = words === undefined && flags.messageFile !== undefined;
  const given = isWhen ? ([undefined, message] as const) : ([message, words] as const);
  const named = await withAlarmId(context, flags);
  const { alarm, readIn, assumed } = alarmOf(given[0], named, await typedWhere(context), given[1]);
  await checkChannels(context, alarm.deliver);
  await checkTools(context, alarm.tools);
  const created = await inFlags(alarmClient(context, personOf(context, flags)).createAlarm(alarm));
  const rings = ringsOf(created);
  const look = readerOf(context);
  const { rrule, cron_expr: cron } = alarm;
  const every = rrule === undefined ? cron && repetitionText({ cron }) : repetitionText({ rrule });
  const reading = readIn === undefined && every === undefined ? undefined : { zone: readIn, every, rings, assumed };
  // The alarm that it follows, as the command names it.
  const typedName = String(flags.after ?? '');
  const shown = rings.map((at) => formatWithOffset(readIn ?? look.zone, at));
  context.out.result(
    {
      ...created,
      ...(readIn !== undefined && { zone: readIn }),
      ...(assumed !== undefined && { assumed }),
      ...(reading && { rings: shown }),
    },
    [
      ...renderCreated(created, look, reading, alarm, (id) => (id.startsWith(typedName) ? id : `"${typedName}"`)),
      ...hookLines(created.hook, publicUrl(context), look),
    ],
  );
}

/** Number of next fires that are shown for a series. */
const FIRES_LISTED = 3;

/** The next fires of a new alarm, epoch ms: the first with its jitter, the others by the schedule. */
function ringsOf({ next_fire_at: next, reading }: AlarmCreated): number[] {
  if (next === undefined) return [];
  const first = Date.parse(next);
  const following = reading.next.map((at) => Date.parse(at)).filter((at) => at > first);
  return [first, ...following].slice(0, FIRES_LISTED);
}

export type EditFlags = Omit<SetFlags, 'key'> & { message?: string; clear?: string };

function clearedOf({ clear }: EditFlags): AlarmPatchBody {
  const names = (clear ?? '').split(',').filter((name) => name !== '');
  const wrong = names.find((name) => !CLEARABLE.has(name));
  if (wrong !== undefined)
    throw new UsageError(
      `--clear must name some of ${[...CLEARABLE.keys()].join(', ')} (got ${JSON.stringify(wrong)})`,
    );
  return Object.fromEntries(names.map((name) => [CLEARABLE.get(name)!, null]));
}

const KINDS_OF_CHECK: readonly PartName[] = ['check-url', 'check-command', 'check-path'];
/** Parts of which the given one replaces the other. */
const REPLACED: Partial<Record<PartName, PartName>> = {
  'check-changed': 'check-equals',
  'check-equals': 'check-changed',
};

/** The given parts over the parts of the alarm: an edit of one part keeps the others of its field. */
function overlaid(given: GivenParts, earlier: Conditions = {}): GivenParts {
  const names = Object.keys(given) as PartName[];
  const fields = new Set(names.map((name) => partOf(name).of));
  const isNewCheck = [...KINDS_OF_CHECK, 'check' as const].some((name) => given[name] !== undefined);
  const before = Object.entries(givenPartsOf(earlier)).filter(([name]) => {
    const part = partOf(name as PartName);
    if (!fields.has(part.of) || names.some((one) => REPLACED[one] === name)) return false;
    return (
      part.of !== 'check' || !isNewCheck || (given.check === undefined && part.needs?.length === KINDS_OF_CHECK.length)
    );
  });
  return { ...Object.fromEntries(before), ...given };
}

/**
 * The changes in a command line.
 *
 * @param earlier the alarm, when a flag changes a part of a field
 * @throws UsageError without a change, for a wrong one, or when a field is set and cleared
 */
export function changesOf(flags: EditFlags, typed: Typed, words?: string, earlier?: AlarmView): AlarmPatchBody {
  const cleared = clearedOf(flags);
  const hasMessage = flags.message !== undefined || flags.messageFile !== undefined;
  const { readIn: _, assumed: __, timezone, ...when } = whenOf(flags, typed, words, 'edit');
  // Omitted fields stay: a new expression keeps the zone of the alarm.
  const isZoneNamed =
    flags.zone !== undefined || (timezone !== undefined && (words ?? flags.cron ?? flags.rrule)?.endsWith(timezone));
  const set: AlarmPatchBody = {
    ...when,
    timezone: isZoneNamed ? timezone : undefined,
    ...fieldsIn(FLAGGED_FIELDS, flags, typed),
    ...conditionsIn(overlaid(partsIn(flags), earlier), earlier),
    payload: payloadOf(flags),
    // Standard input is read last, after all other checks.
    ...(hasMessage ? { wake_message: messageOf(flags.message, flags) } : {}),
  };
  const given = Object.entries(set).filter(([, value]) => value !== undefined);
  const both = given.find(([name]) => name in cleared);
  if (both !== undefined) throw new UsageError(`${both[0]} is set and cleared at the same time; omit one`);
  if (given.length === 0 && Object.keys(cleared).length === 0)
    throw new UsageError(
      'no change is given; write a time after the id, or name a flag, such as --label "stand-up"; see: reveille alarm edit --help',
    );
  return { ...Object.fromEntries(given), ...cleared };
}

export async function alarmEdit(
  context: CliContext,
  flags: EditFlags,
  given: string,
  words: string | undefined,
): Promise<void> {
  const typed = await typedWhere(context);
  const client = () => alarmClient(context, personOf(context, flags));
  const id = Object.keys(partsIn(flags)).length === 0 ? undefined : await findAlarmId(client(), given);
  const changes =
    id === undefined
      ? changesOf(flags, typed, words)
      : changesOf(await withAlarmId(context, flags), typed, words, await client().getAlarm(id));
  const { assumed } = whenOf(flags, typed, words, 'edit');
  await checkChannels(context, changes.deliver);
  await checkTools(context, changes.tools);
  const alarm = await inFlags(client().patchAlarm(id ?? (await findAlarmId(client(), given)), changes));
  context.out.result(alarm, [
    assumed === undefined ? 'Changed' : `Changed, ${assumed}`,
    ...renderAlarm(alarm, readerOf(context), await besideOf(context, client(), alarm)),
  ]);
}
