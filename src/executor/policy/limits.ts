/** Amounts that a rule allows in one call and in one day. Pure. */
import { dayAt, nextDayAfter } from '../../kit/clock/wall-clock.ts';
import { offsetAt } from '../../kit/clock/zone.ts';
import { showValue } from '../../wire/validate.ts';
import { type Decimal, formatDecimal, isMore, plus, readDecimal, ZERO } from './decimal.ts';
import { fitsGlob } from './glob.ts';
import type { PolicyRequest } from './policy.ts';
import type { PolicyRule } from './policy-file.ts';

type Limited = Pick<PolicyRule, 'name' | 'tool' | 'limits'>;
type Stake = Pick<PolicyRequest, 'tool' | 'surface' | 'amount' | 'amountUnreadable' | 'spends' | 'now'>;

/** An instant as the wall clock of a zone shows it. */
function wallTime(timezone: string, instant: number): string {
  const wall = new Date(instant + offsetAt(timezone, instant)).toISOString();
  return `${wall.slice(0, 10)} ${wall.slice(11, 16)} ${timezone}`;
}

function readAmount(value: string): Decimal | undefined {
  const read = readDecimal(value);
  return read === undefined || read.units < 0n ? undefined : read;
}

/**
 * What the rule's tools have moved on the present day in one currency; `undefined` when that cannot be told. What lies in the future, because
 * the clock was put back, counts as well.
 */
function spentToday(
  { tool }: Limited,
  { spends, now }: Stake,
  currency: string,
  timezone: string,
): Decimal | undefined {
  const today = dayAt(timezone, now);
  let sum = ZERO;
  for (const spend of spends) {
    if (spend.currency !== currency || !fitsGlob(tool, spend.tool) || dayAt(timezone, spend.at) < today) continue;
    const value = readAmount(spend.value);
    if (value === undefined) return undefined;
    sum = plus(sum, value);
  }
  return sum;
}

const of = (amount: Decimal, currency: string) => `${formatDecimal(amount)}${currency === '' ? '' : ` ${currency}`}`;

/**
 * Holds a call against the limits of a rule.
 *
 * @param timezone whose calendar days count
 * @returns why the call goes beyond them, as a sentence; `undefined` when it does not
 */
export function beyondLimits(rule: Limited, stake: Stake, timezone: string): string | undefined {
  const { name, limits } = rule;
  // A natural tool that the manifest names no amount of has nothing at stake.
  if (!limits || (stake.surface === 'natural' && !stake.amount && !stake.amountUnreadable)) return undefined;
  const cannotHold = `so the limits of the rule "${name}" cannot be held`;
  if (!stake.amount && !stake.amountUnreadable)
    return `The manifest does not say where the amount of ${stake.tool} stands, ${cannotHold}.`;
  const amount = stake.amount && !stake.amountUnreadable ? readAmount(stake.amount.value) : undefined;
  if (!stake.amount || !amount) return `The amount of the call cannot be read, ${cannotHold}.`;
  const { currency } = stake.amount;
  const currencies = Object.keys(limits.per_call ?? limits.per_day ?? {});
  if (!currencies.includes(currency)) {
    const known = currencies.map(showValue).join(', ');
    return `The rule "${name}" has limits for ${known} and none for ${showValue(currency)}.`;
  }
  const perCall = readDecimal(limits.per_call?.[currency]);
  if (perCall && isMore(amount, perCall))
    return `The rule "${name}" limits a call to ${of(perCall, currency)}, and this one is about ${of(amount, currency)}.`;
  const perDay = readDecimal(limits.per_day?.[currency]);
  if (!perDay) return undefined;
  const spent = spentToday(rule, stake, currency, timezone);
  if (!spent) return `What was spent today cannot be read, ${cannotHold}.`;
  if (!isMore(plus(spent, amount), perDay)) return undefined;
  const reset = wallTime(timezone, nextDayAfter(timezone, stake.now));
  return (
    `The rule "${name}" limits a day to ${of(perDay, currency)}: ${of(spent, currency)} are spent today, ` +
    `this call is about ${of(amount, currency)}, and the next day begins at ${reset}.`
  );
}
