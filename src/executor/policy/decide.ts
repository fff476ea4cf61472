/**
 * The decision of a policy about a call: its rules are compiled and matched. Pure. Deny wins, then ask, then allow,
 * then the default. The order of the rules only selects the named rule among rules with the same effect. A rule in
 * doubt can make the decision stricter, never looser.
 */
import { quietUntil } from '../../kit/clock/quiet-hours.ts';
import { dayAt, nextDayAfter } from '../../kit/clock/wall-clock.ts';
import { offsetAt } from '../../kit/clock/zone.ts';
import { showValue } from '../../wire/validate.ts';
import { valueAt } from '../intent/pointer.ts';
import { type Decimal, formatDecimal, isMore, plus, readDecimal, ZERO } from './decimal.ts';
import { compileExpression } from './expression.ts';
import type { Decision, Effect, PolicyRequest } from './policy.ts';
import type { ArgumentPattern, PolicyFile, PolicyRule } from './policy-file.ts';

/** Whether a rule matches a call; `because` has the reason for a mismatch or the doubt. */
export type RuleFit = { readonly rule: PolicyRule; readonly fit: Fit; readonly because: string };

/** Matches a call against one rule. */
type RuleTest = (request: PolicyRequest) => RuleFit;

function doubt(pointer: string, value: unknown): string {
  return value === undefined ? `${pointer} is missing` : `${pointer} has another type than the rule expects`;
}

export function compileRule(rule: PolicyRule): RuleTest {
  const tests: (readonly [string, ArgumentTest])[] = Object.entries(rule.args ?? {}).map(
    ([pointer, pattern]) => [pointer, compilePattern(pattern)] as const,
  );
  const users = rule.users && new Set(rule.users);
  return ({ tool, user, args }) => {
    const not = (because: string): RuleFit => ({ rule, fit: 'no', because });
    if (!fitsGlob(rule.tool, tool)) return not(`it matches ${rule.tool}`);
    if (users && !users.has(user)) return not('it matches other users');
    const results = tests.map(([pointer, test]) => {
      const value = valueAt(args, pointer);
      return { pointer, value, fit: test(value) };
    });
    const differing = results.find(({ fit }) => fit === 'no');
    if (differing) return not(`${differing.pointer} does not match`);
    const fit = all(results.map((result) => result.fit));
    const doubts = results
      .filter((result) => result.fit === 'unclear')
      .map(({ pointer, value }) => doubt(pointer, value));
    return { rule, fit, because: fit === 'yes' ? 'everything fits' : doubts.join(', ') };
  };
}

type Fit = 'yes' | 'no' | 'unclear';

/** Tests an argument; `undefined` when it is missing. */
type ArgumentTest = (value: unknown) => Fit;

/** Longer texts are not matched against expressions. */
const MATCHED_MAX = 4096;

const fit = (holds: boolean): Fit => (holds ? 'yes' : 'no');

/** Conjunction: one `no` gives `no`; otherwise one `unclear` gives `unclear`. */
function all(fits: readonly Fit[]): Fit {
  if (fits.includes('no')) return 'no';
  return fits.includes('unclear') ? 'unclear' : 'yes';
}

/** @param values all of one type */
function isOneOf(values: readonly unknown[]): ArgumentTest {
  const known = new Set<unknown>(values);
  return (value) => (typeof value === typeof values[0] ? fit(known.has(value)) : 'unclear');
}

const ofText =
  (holds: (text: string) => boolean, maxLength = Number.POSITIVE_INFINITY): ArgumentTest =>
  (value) =>
    typeof value === 'string' && value.length <= maxLength ? fit(holds(value)) : 'unclear';

function isInRange(min: string | number | undefined, max: string | number | undefined): ArgumentTest {
  const [least, most] = [readDecimal(min), readDecimal(max)];
  return (value) => {
    const number = readDecimal(value);
    if (number === undefined) return 'unclear';
    return fit(!(least && isMore(least, number)) && !(most && isMore(number, most)));
  };
}

/** @throws ExpressionError for an invalid `matches` */
function compilePattern({ equals, one_of, glob, matches, range, optional }: ArgumentPattern): ArgumentTest {
  const tests: ArgumentTest[] = [];
  if (equals !== undefined) tests.push(isOneOf([equals]));
  if (one_of !== undefined) tests.push(isOneOf(one_of));
  if (glob !== undefined) tests.push(ofText((text) => fitsGlob(glob, text)));
  if (matches !== undefined) tests.push(ofText(compileExpression(matches), MATCHED_MAX));
  if (range !== undefined) tests.push(isInRange(range.min, range.max));
  return (value) => {
    if (value === undefined) return optional ? 'no' : 'unclear';
    return all(tests.map((test) => test(value)));
  };
}

/**
 * Whether the whole text matches. Nothing is normalized: texts are compared by code unit.
 *
 * With another pattern as `text`, `true` means that every text that matches that pattern matches this one.
 */
export function fitsGlob(glob: string, text: string): boolean {
  const [head, ...rest] = glob.split('*') as [string, ...string[]];
  const tail = rest.pop();
  if (tail === undefined) return text === head;
  if (!text.startsWith(head) || text.length < head.length + tail.length || !text.endsWith(tail)) return false;
  let at = head.length;
  const end = text.length - tail.length;
  for (const part of rest) {
    // The leftmost match leaves the most text for the next parts.
    const found = text.indexOf(part, at);
    if (found === -1 || found + part.length > end) return false;
    at = found + part.length;
  }
  return true;
}

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
