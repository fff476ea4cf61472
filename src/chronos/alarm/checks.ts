/**
 * Checks: which wakes have one, what the router gets of it, and what an accepted or a skipped wake changes. The router
 * decides each check. The value moves on only with an accepted wake. Pure.
 */

import type { z } from 'zod';
import type { CheckVerdict, checkStateSchema } from '../../wire/check-verdict.ts';
import type { Check, CheckState } from '../../wire/conditions.ts';
import { durationMs } from '../../wire/iso-duration.ts';
import { formatInstant } from '../../wire/rfc3339.ts';
import { readSetBy } from '../../wire/set-by.ts';
import type { Alarm, Occurrence } from './alarm.ts';
import { isBackfill } from './backfill.ts';
import { isEventFire } from './events.ts';
import { encodeOptions, isSameOption, optionsOf } from './options.ts';

/** The check of an occurrence. One that its owner triggered or backfilled has none: the owner wants it. */
function checkOf(alarm: Alarm, occurrence: Occurrence): Check | undefined {
  const { check } = optionsOf(alarm);
  if (check === undefined || occurrence.source === 'schedule') return check;
  return isEventFire(alarm, occurrence) && !isBackfill(alarm, occurrence) ? check : undefined;
}

/** Why the agent is woken whatever the check says; `undefined` without a reason. */
export function mustWake(
  check: Check,
  { skips = 0, wokenAt }: CheckState,
  { now, since }: { now: number; since: number },
): string | undefined {
  const { max_skips, wake_at_least_every } = check;
  if (max_skips !== undefined && skips >= max_skips) return `${skips} skipped in a row (max_skips)`;
  if (wake_at_least_every === undefined) return undefined;
  const last = wokenAt ?? since;
  if (now - last < durationMs(wake_at_least_every)) return undefined;
  return `no wake since ${formatInstant(last)} (wake_at_least_every: ${wake_at_least_every})`;
}

export const isChecked = (alarm: Alarm, occurrence: Occurrence): boolean => checkOf(alarm, occurrence) !== undefined;

/** The members of a wake for its check, claimed now; none without one. */
export function checkMembers(
  alarm: Alarm,
  occurrence: Occurrence,
): { check?: Check; check_state?: z.input<typeof checkStateSchema> } {
  const check = checkOf(alarm, occurrence);
  if (check === undefined) return {};
  const { check_state: state = {} } = optionsOf(alarm);
  const { value, wokenAt, skips, byPerson } = state;
  const now = occurrence.claimedAt ?? occurrence.scheduledFor;
  const must_wake = mustWake(check, state, { now, since: alarm.createdAt });
  return {
    check,
    check_state: {
      ...(value !== undefined && { value }),
      ...(wokenAt !== undefined && { woken_at: formatInstant(wokenAt) }),
      ...(skips !== undefined && { skips }),
      ...(must_wake !== undefined && { must_wake }),
      ...(byPerson && { by_person: true }),
    },
  };
}

/** What is remembered of a check that was just set, changed or removed: nothing of the earlier one. */
export function stateOfNewCheck(check: Check | null | undefined, author: string | undefined): CheckState | null {
  if (!check || author === undefined) return null;
  const by = readSetBy(author);
  return by.kind === 'person' ? { byPerson: true } : { byClient: by.client_id };
}

/** An attempt with a check: the check as it was sent, and the verdict. */
export type Checked = { readonly check: Check; readonly verdict: CheckVerdict };

/** The check of an attempt; `undefined` where it had none, or the router gave no verdict. */
export function checkedBy(
  alarm: Alarm,
  occurrence: Occurrence,
  verdict: CheckVerdict | undefined,
): Checked | undefined {
  const check = verdict && checkOf(alarm, occurrence);
  return verdict && check && { check, verdict };
}

function withState(alarm: Alarm, change: (state: CheckState) => CheckState): Alarm {
  const options = optionsOf(alarm);
  return { ...alarm, options: encodeOptions({ ...options, check_state: change(options.check_state ?? {}) }) };
}

/** An alarm with a check whose wake was accepted. @param checked absent: the wake was not checked */
export function afterCheckedWake(alarm: Alarm, at: number, checked: Checked | undefined): Alarm {
  const { check } = optionsOf(alarm);
  if (check === undefined) return alarm;
  // The check may have been changed during the attempt.
  const isCurrent = checked !== undefined && isSameOption(check, checked.check);
  return withState(alarm, ({ skips: _, value: before, ...state }) => {
    const value = (isCurrent ? checked.verdict.value : undefined) ?? before;
    return { ...state, ...(value !== undefined && { value }), wokenAt: at };
  });
}

/** An alarm whose check has skipped a fire. It counts as no failure. */
export function afterSkip(alarm: Alarm, checked: Checked): Alarm {
  const { check } = optionsOf(alarm);
  const error = alarm.kind === 'once' ? `skipped by its check: ${checked.verdict.reason}` : null;
  const settled = { ...alarm, failureCount: 0, lastError: error };
  if (!isSameOption(check, checked.check)) return settled;
  return withState(settled, (state) => ({ ...state, skips: (state.skips ?? 0) + 1 }));
}

/** The ledger's text of a skipped fire. */
export const skipText = ({ reason, duration_ms }: CheckVerdict): string => `check: ${reason} (${duration_ms} ms)`;
