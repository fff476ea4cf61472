/** Text about waking the computer, in `service wake`, `service status` and the doctor; and the removal of a wake-up. */
import { existsSync } from 'node:fs';
import { fromNow, localTime } from '../../kit/clock/local-time.ts';
import type { CliContext } from '../context.ts';
import type { Check } from '../doctor/check.ts';
import { readerOf } from '../screens/reader.ts';
import { marked } from '../service/experimental.ts';
import { currentVersion, type ServiceFolders, serviceLocation } from '../service/folders.ts';
import { LEAD_MS, wakeFiles } from './wake-alarm.ts';
import { cannotWake } from './wake-linux.ts';
import { wakeAlarm } from './wake-mechanism.ts';

export type WakeState = {
  /** Whether the user enabled it. */
  readonly isOn: boolean;
  /** When it is woken next, epoch milliseconds; also by another program's earlier wake-up. */
  readonly armedFor: number | undefined;
  readonly means: string | undefined;
  /** Why it is not, or cannot be. */
  readonly problem: string | undefined;
  readonly remedy: string | undefined;
  /** Why it is not kept awake, or not fully. */
  readonly loose: string | undefined;
  readonly heldSince: number | undefined;
};

const ON_POSTGRES = 'the alarms are in PostgreSQL, which belongs to no single computer';

/** The state as far as known without trying; results of a try are in the keeper's record. */
export function wakeState({ settings }: CliContext, place: ServiceFolders): WakeState {
  const files = wakeFiles(place);
  const record = files.read();
  const armed = record?.trying ? undefined : record?.armed;
  const impossible = settings.CHRONOS_POSTGRES_URI
    ? { problem: ON_POSTGRES, remedy: undefined }
    : process.platform === 'linux'
      ? cannotWake()
      : undefined;
  return {
    isOn: existsSync(files.wanted),
    armedFor: record?.behind ?? armed?.at,
    means: record?.behind === undefined ? armed?.means : 'another program',
    problem: impossible?.problem ?? record?.problem,
    remedy: impossible ? impossible.remedy : record?.remedy,
    loose: record?.loose,
    heldSince: record?.held_since,
  };
}

const LEAD = `${LEAD_MS / 1000} s`;

/** One sentence without its end. */
export const wakeWords = (context: CliContext, state: WakeState, platform?: NodeJS.Platform): string =>
  marked(wakeText(context, state), platform);

function wakeText(context: CliContext, state: WakeState): string {
  const { isOn, armedFor, means, problem, loose, heldSince } = state;
  if (!isOn) return problem === undefined ? 'is not woken for alarms' : `cannot be woken for alarms: ${problem}`;
  if (problem !== undefined) return `is not woken for alarms: ${problem}`;
  const look = readerOf(context);
  const held = heldSince === undefined ? '' : `; kept awake since ${localTime(heldSince, look)}`;
  const but = loose === undefined ? '' : `; ${loose}`;
  if (armedFor === undefined) return `is woken ${LEAD} before alarms that ask for it; no such alarm waits${held}${but}`;
  const at = `${localTime(armedFor, look)} (${fromNow(armedFor, look.now)})`;
  return `is woken at ${at} by ${means}, for an alarm that asks for it${held}${but}`;
}

/** The doctor's check. A sleeping computer is not broken: alarms fire when it wakes. */
export function checkSleep(context: CliContext, platform?: NodeJS.Platform): Check {
  const name = 'sleep';
  const place = serviceLocation(context.environment, context.home.path);
  const state = wakeState(context, place);
  const { isOn, problem, remedy, loose } = state;
  const detail = `the computer ${wakeWords(context, state, platform)}`;
  const isTrouble = isOn && (problem !== undefined || loose !== undefined);
  if (isTrouble) return { name, status: 'warning', detail, ...(remedy === undefined ? {} : { remedy }) };
  if (isOn) return { name, status: 'ok', detail };
  if (problem !== undefined) return { name, status: 'note', detail };
  const first = currentVersion(place) === undefined ? 'reveille service install, then: ' : '';
  return { name, status: 'note', detail, remedy: `to enable it: ${first}reveille service wake on` };
}

/** Removes a wake-up of an ended process. */
export async function takeWakeBack({ environment, clock }: CliContext, place: ServiceFolders): Promise<void> {
  const files = wakeFiles(place);
  const armed = files.read()?.armed;
  if (armed) await (await wakeAlarm(place.name, environment, () => clock.now())).disarm(armed);
  files.remove();
}
