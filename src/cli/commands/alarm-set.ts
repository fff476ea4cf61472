/** `reveille alarm set` and `edit`: from flags to an alarm, or to what changes in one. */

import { userInfo } from 'node:os';
import type { AlarmCreateBody, AlarmPatchBody } from '../../chronos/client.ts';
import { SPAWN_ID_VARIABLE } from '../../kit/process/inherited-variables.ts';
import { setBySchema } from '../../wire/alarm.ts';
import { ReveilleError } from '../../wire/errors.ts';
import type { RawJson } from '../../wire/json.ts';
import { alarmClient } from '../access/chronos.ts';
import type { CliContext } from '../context.ts';
import { durationFlag, fileFlag, instantFlag, jsonFlag, wholeNumberFlag } from '../flags/flags.ts';
import { UsageError } from '../flags/usage-error.ts';
import { lookOf } from '../screens/look.ts';
import { keepsWallTime, renderAlarm, renderCreated } from '../screens/render.ts';
import { findAlarmId } from './alarm.ts';

export type SetFlags = {
  in?: string;
  at?: string;
  cron?: string;
  zone?: string;
  until?: string;
  times?: string;
  label?: string;
  conversation?: string;
  payload?: string;
  payloadFile?: string;
  messageFile?: string;
  key?: string;
  maxFailures?: string;
  maxLateness?: string;
  jitter?: string;
  urgent?: boolean;
  as?: string;
};

const MAX_INTEGER = 999_999_999;

export function messageOf(message: string | undefined, { messageFile }: SetFlags): string {
  if (message !== undefined && messageFile !== undefined)
    throw new UsageError('the message is there twice, as an argument and as --message-file; leave one out');
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
  return jsonFlag(`--payload-file ${payloadFile}`, fileFlag('--payload-file', payloadFile));
}

type Schedule = Pick<
  AlarmCreateBody,
  'kind' | 'delay_seconds' | 'fire_at' | 'cron_expr' | 'timezone' | 'ends_at' | 'max_fires'
>;

/** When it rings, as far as that is said. @throws UsageError for two answers, or a wrong one */
export function whenOf(flags: Pick<SetFlags, 'in' | 'at' | 'cron'>) {
  const given = (['in', 'at', 'cron'] as const).filter((name) => flags[name] !== undefined).map((name) => `--${name}`);
  if (given.length > 1) throw new UsageError(`${given.join(' and ')} exclude each other; give one of them`);
  return {
    delay_seconds: durationFlag('--in', flags.in, 1),
    fire_at: instantFlag('--at', flags.at),
    cron_expr: flags.cron,
  };
}

/** What goes with a series alone. @throws UsageError for a wrong value */
export function seriesOf(flags: Pick<SetFlags, 'zone' | 'until' | 'times'>) {
  return {
    timezone: flags.zone,
    ends_at: instantFlag('--until', flags.until),
    max_fires: wholeNumberFlag('--times', flags.times, 1, MAX_INTEGER),
  };
}

/** @throws UsageError for a wrong value */
export function limitsOf(flags: Pick<SetFlags, 'maxFailures' | 'maxLateness' | 'jitter'>) {
  return {
    max_failures: wholeNumberFlag('--max-failures', flags.maxFailures, 1, 1000),
    max_lateness_seconds: durationFlag('--max-lateness', flags.maxLateness, 0),
    jitter_seconds: durationFlag('--jitter', flags.jitter, 0),
  };
}

function scheduleOf(flags: SetFlags): Schedule {
  const when = whenOf(flags);
  if (flags.cron !== undefined) return { kind: 'cron', ...when, ...seriesOf(flags) };
  const single = (['in', 'at'] as const).find((name) => flags[name] !== undefined);
  if (single === undefined)
    throw new UsageError('when should it ring? give one of --in 10m, --at <instant> or --cron <expression>');
  const foreign = (['zone', 'until', 'times'] as const).find((name) => flags[name] !== undefined);
  if (foreign !== undefined) throw new UsageError(`--${foreign} goes only with --cron; leave it out with --${single}`);
  return { kind: 'once', ...when };
}

/**
 * The alarm that a command line asks for.
 *
 * @throws UsageError naming the flag that is missing, doubled or wrong; what depends on the present is chronosd's to
 *   judge
 */
export function alarmOf(message: string | undefined, flags: SetFlags): AlarmCreateBody {
  // Standard input is read last, when nothing else can be wrong.
  const schedule = scheduleOf(flags);
  const limits = limitsOf(flags);
  const payload = payloadOf(flags);
  return {
    ...schedule,
    wake_message: messageOf(message, flags),
    label: flags.label,
    conversation_id: flags.conversation,
    payload,
    idempotency_key: flags.key,
    urgent: flags.urgent,
    ...limits,
  };
}

/**
 * In whose name a command speaks: that of whoever is at the keyboard, unless they say otherwise; in nobody's below an
 * agent, whose shell it is, whoever's account it runs under.
 */
export function personOf({ environment }: CliContext, { as }: Pick<SetFlags, 'as'>): string | undefined {
  if (environment[SPAWN_ID_VARIABLE] !== undefined) return undefined;
  const name = as ?? userInfo().username;
  const parsed = setBySchema.safeParse({ kind: 'person', name });
  if (parsed.success) return name;
  throw new UsageError('--as must be a name of 1 to 100 characters without NUL');
}

/** What a flag says goes by these names in chronosd's errors. */
const SAID_BY: Readonly<Record<string, string>> = {
  delay_seconds: '--in, in seconds,',
  fire_at: '--at',
  cron_expr: '--cron',
  timezone: '--zone',
  ends_at: '--until',
  max_fires: '--times',
  wake_message: 'the message',
  conversation_id: '--conversation',
  idempotency_key: '--key',
  max_failures: '--max-failures',
  max_lateness_seconds: '--max-lateness, in seconds,',
  jitter_seconds: '--jitter, in seconds,',
};
/** Quoted text is what was given: it stays. */
const NAMED = new RegExp(`"(?:[^"\\\\]|\\\\.)*"|\\b(?:${Object.keys(SAID_BY).join('|')})\\b`, 'g');

/** Does `work`, whose refusals name what to change as the command line does. */
export async function inFlags<T>(work: Promise<T>): Promise<T> {
  try {
    return await work;
  } catch (error) {
    if (!(error instanceof ReveilleError) || (error.code !== 'invalid_request' && error.code !== 'conflict'))
      throw error;
    const message = error.message.replace(NAMED, (name) => SAID_BY[name] ?? name);
    throw new ReveilleError(error.code, message, { cause: error, retryable: error.retryable, status: error.status });
  }
}

export async function alarmSet(context: CliContext, flags: SetFlags, message: string | undefined): Promise<void> {
  const alarm = alarmOf(message, flags);
  const created = await inFlags(alarmClient(context, personOf(context, flags)).createAlarm(alarm));
  const lines = renderCreated(created, lookOf(context));
  if (alarm.kind === 'cron' && alarm.timezone === undefined && keepsWallTime(alarm.cron_expr ?? ''))
    lines.push('  the expression is read in UTC; --zone chooses another time zone');
  context.out.result(created, lines);
}

export type EditFlags = Omit<SetFlags, 'key'> & { message?: string; clear?: string };

/** What can be taken away, by the name of the flag that sets it. */
const CLEARABLE: Readonly<Record<string, keyof AlarmPatchBody>> = {
  label: 'label',
  conversation: 'conversation_id',
  zone: 'timezone',
  until: 'ends_at',
  times: 'max_fires',
  'max-failures': 'max_failures',
  'max-lateness': 'max_lateness_seconds',
  jitter: 'jitter_seconds',
  urgent: 'urgent',
};

function clearedOf({ clear }: EditFlags): AlarmPatchBody {
  const names = (clear ?? '').split(',').filter((name) => name !== '');
  const wrong = names.find((name) => !(name in CLEARABLE));
  if (wrong !== undefined)
    throw new UsageError(
      `--clear must name some of ${Object.keys(CLEARABLE).join(', ')} (got ${JSON.stringify(wrong)})`,
    );
  return Object.fromEntries(names.map((name) => [CLEARABLE[name]!, null]));
}

/**
 * The changes that a command line asks for.
 *
 * @throws UsageError when there are none, one is wrong, or one is set and cleared at once
 */
export function changesOf(flags: EditFlags): AlarmPatchBody {
  const cleared = clearedOf(flags);
  const hasMessage = flags.message !== undefined || flags.messageFile !== undefined;
  const set: AlarmPatchBody = {
    ...whenOf(flags),
    ...seriesOf(flags),
    label: flags.label,
    conversation_id: flags.conversation,
    urgent: flags.urgent,
    ...limitsOf(flags),
    payload: payloadOf(flags),
    // Standard input is read last, when nothing else can be wrong.
    ...(hasMessage ? { wake_message: messageOf(flags.message, flags) } : {}),
  };
  const given = Object.entries(set).filter(([, value]) => value !== undefined);
  const both = given.find(([name]) => name in cleared);
  if (both !== undefined) throw new UsageError(`${both[0]} is set and taken away with --clear at once; leave one out`);
  if (given.length === 0 && Object.keys(cleared).length === 0)
    throw new UsageError(
      'what should change? name it with its flag, such as --label "stand-up"; see: reveille alarm edit --help',
    );
  return { ...Object.fromEntries(given), ...cleared };
}

export async function alarmEdit(context: CliContext, flags: EditFlags, given: string): Promise<void> {
  const changes = changesOf(flags);
  const client = alarmClient(context, personOf(context, flags));
  const alarm = await inFlags(client.patchAlarm(await findAlarmId(client, given), changes));
  context.out.result(alarm, ['Changed', ...renderAlarm(alarm, lookOf(context))]);
}
