/** What the doctor says of the computer's sleep: whether it is woken for alarms that ask for it, and why not. */

import type { CliContext } from '../context.ts';
import { currentVersion, servicePlace } from '../service/place.ts';
import { wakeState, wakeWords } from '../sleep/wake-words.ts';
import type { Check } from './check.ts';

/** Nothing is broken where a computer sleeps through its alarms: they ring when it wakes. */
export function checkSleep(context: CliContext): Check {
  const name = 'sleep';
  const place = servicePlace(context.environment, context.home.path);
  const state = wakeState(context, place);
  const { isOn, problem, remedy, loose } = state;
  const detail = `the computer ${wakeWords(context, state)}`;
  const isTrouble = isOn && (problem !== undefined || loose !== undefined);
  if (isTrouble) return { name, status: 'warning', detail, ...(remedy === undefined ? {} : { remedy }) };
  if (isOn) return { name, status: 'ok', detail };
  if (problem !== undefined) return { name, status: 'note', detail };
  const first = currentVersion(place) === undefined ? 'reveille service install, then: ' : '';
  return { name, status: 'note', detail, remedy: `where it should be: ${first}reveille service wake on` };
}
