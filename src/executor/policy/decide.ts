/**
 * The decision of a policy about a call. Pure. Deny wins, then ask, then allow, then the default. The order of the
 * rules only selects the named rule among rules with the same effect. A rule in doubt (see rules.ts) can make the
 * decision stricter, never looser.
 */
import { quietUntil } from '../../kit/clock/quiet-hours.ts';
import { dayAt, nextDayAfter } from '../../kit/clock/wall-clock.ts';
import { offsetAt } from '../../kit/clock/zone.ts';
import { showValue } from '../../wire/validate.ts';
import { type Decimal, formatDecimal, isMore, plus, readDecimal, ZERO } from './decimal.ts';
import type { Decision, Effect, PolicyRequest } from './policy.ts';
import type { PolicyFile, PolicyRule } from './policy-file.ts';
import { fitsGlob, type RuleFit } from './rules.ts';

export type Defaults = Pick<PolicyFile, 'default' | 'default_natural' | 'quiet_hours'> & { readonly timezone: string };

const named = (effect: Effect, { rule, fit, because }: RuleFit): Decision => {
  const verb = { allow: 'allows it', ask: 'asks for approval', deny: 'denies it' }[effect];
  const why = fit === 'unclear' ? `: ${because}, and a doubt counts as a match` : '';
  return { effect, rule: rule.name, reason: `The rule "${rule.name}" ${verb}${why}.` };
};

/** The first rule that fits; otherwise the first in doubt. */
const foremost = (fits: readonly RuleFit[]) => fits.find(({ fit }) => fit === 'yes') ?? fits[0];

function byDefault(defaults: Defaults, { surface }: PolicyRequest): Decision {
  const [effect, what] =
    surface === 'escalate'
      ? [defaults.default ?? 'ask', 'tools of the escalate class']
      : [defaults.default_natural ?? 'allow', 'natural tools'];
  return { effect, rule: 'default', reason: `No rule decides it, and the default for ${what} is ${effect}.` };
}

/** The decision by the rules alone. */
function byRules(fits: readonly RuleFit[], request: PolicyRequest, defaults: Defaults): Decision {
  const fitting = (effect: Effect) => fits.filter(({ rule, fit }) => rule.effect === effect && fit !== 'no');
  const denying = foremost(fitting('deny'));
  if (denying) return named('deny', denying);
  for (const { rule, fit } of fits) {
    const reason = fit === 'no' ? undefined : beyondLimits(rule, request, defaults.timezone);
    if (reason !== undefined) return { effect: 'deny', rule: rule.name, reason };
  }
  const asking = foremost(fitting('ask'));
  if (asking?.fit === 'yes') return named('ask', asking);
  const allowing = fitting('allow').filter(({ fit }) => fit === 'yes');
  const allowed = allowing.find(({ rule }) => rule.unattended) ?? allowing[0];
  const decision = allowed ? named('allow', allowed) : byDefault(defaults, request);
  // A rule in doubt turns allow into ask; it does not turn deny into ask.
  return decision.effect === 'allow' && asking ? named('ask', asking) : decision;
}

function inQuietHours(decision: Decision, { quiet_hours = [], timezone }: Defaults, now: number): Decision {
  if (decision.effect === 'deny') return decision;
  const quiet = quiet_hours
    .map((hours) => ({ effect: hours.effect ?? ('ask' as const), until: quietUntil({ ...hours, timezone }, now) }))
    .filter(({ until }) => until !== undefined);
  const hours = quiet.find(({ effect }) => effect === 'deny') ?? quiet[0];
  if (!hours || (hours.effect === 'ask' && decision.effect === 'ask')) return decision;
  const end = new Date(hours.until! + offsetAt(timezone, hours.until!)).toISOString().slice(11, 16);
  const what = hours.effect === 'deny' ? 'escalate-class calls are denied' : 'allowed calls need an approval';
  return {
    effect: hours.effect,
    rule: 'quiet_hours',
    reason: `${decision.reason} These are quiet hours until ${end} ${timezone}, in which ${what}.`,
  };
}

/** @param fits every rule of the policy applied to the request, in the order of the file */
export function decide(fits: readonly RuleFit[], request: PolicyRequest, defaults: Defaults): Decision {
  const decision = byRules(fits, request, defaults);
  if (request.surface === 'natural') return decision;
  const decisionInHours = inQuietHours(decision, defaults, request.now);
  if (decisionInHours.effect !== 'allow' || !request.unattended) return decisionInHours;
  if (fits.some(({ rule, fit }) => rule.name === decisionInHours.rule && fit === 'yes' && rule.unattended))
    return decisionInHours;
  const reason = `${decisionInHours.reason} But an alarm began this turn, so an approval is required.`;
  return { effect: 'ask', rule: decisionInHours.rule, reason };
}

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
 * The amount that the rule's tools have moved on the present day in one currency; `undefined` when it cannot be
 * determined. Amounts in the future, after the clock was set back, count as well.
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

const formatAmount = (amount: Decimal, currency: string) =>
  `${formatDecimal(amount)}${currency === '' ? '' : ` ${currency}`}`;

/**
 * Checks a call against the limits of a rule.
 *
 * @param timezone the time zone of the calendar days
 * @returns a sentence why the call exceeds them; `undefined` when it does not
 */
function beyondLimits(rule: Limited, stake: Stake, timezone: string): string | undefined {
  const { name, limits } = rule;
  // A natural tool without a declared amount moves no money.
  if (!limits || (stake.surface === 'natural' && !stake.amount && !stake.amountUnreadable)) return undefined;
  const cannotHold = `so the limits of the rule "${name}" cannot be checked`;
  if (!stake.amount && !stake.amountUnreadable)
    return `The manifest declares no amount for ${stake.tool}, ${cannotHold}.`;
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
    return `The rule "${name}" limits a call to ${formatAmount(perCall, currency)}, and this one is about ${formatAmount(amount, currency)}.`;
  const perDay = readDecimal(limits.per_day?.[currency]);
  if (!perDay) return undefined;
  const spent = spentToday(rule, stake, currency, timezone);
  if (!spent) return `What was spent today cannot be read, ${cannotHold}.`;
  if (!isMore(plus(spent, amount), perDay)) return undefined;
  const reset = wallTime(timezone, nextDayAfter(timezone, stake.now));
  return (
    `The rule "${name}" limits a day to ${formatAmount(perDay, currency)}: ${formatAmount(spent, currency)} are spent today, ` +
    `this call is about ${formatAmount(amount, currency)}, and the next day begins at ${reset}.`
  );
}
