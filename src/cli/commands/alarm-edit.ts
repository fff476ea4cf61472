/** `reveille alarm edit`: changes what is named and leaves the rest as it is. */
import type { AlarmPatchBody } from '../../chronos/client.ts';
import { alarmClient } from '../access/chronos.ts';
import type { CliContext } from '../context.ts';
import { UsageError } from '../flags/usage-error.ts';
import { lookOf } from '../screens/look.ts';
import { renderAlarm } from '../screens/render.ts';
import { findAlarmId } from './alarm-id.ts';
import { inFlags, limitsOf, messageOf, payloadOf, personOf, type SetFlags, seriesOf, whenOf } from './alarm-set.ts';

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
