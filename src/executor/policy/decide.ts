/**
 * What a policy says of a call. Pure. Deny wins, then ask, then allow, then the default; the order of the rules only decides which of several
 * that come to the same is named. A rule in doubt (see argument-pattern.ts) makes the answer stricter or leaves it as it is.
 */
import { quietUntil } from '../../kit/clock/quiet-hours.ts';
import { offsetAt } from '../../kit/clock/zone.ts';
import { beyondLimits } from './limits.ts';
import type { Decision, Effect, PolicyRequest } from './policy.ts';
import type { PolicyFile } from './policy-file.ts';
import type { RuleFit } from './rules.ts';

export type Defaults = Pick<PolicyFile, 'default' | 'default_natural' | 'quiet_hours'> & { readonly timezone: string };

const named = (effect: Effect, { rule, fit, because }: RuleFit): Decision => {
  const verb = { allow: 'allows it', ask: 'asks for approval', deny: 'denies it' }[effect];
  const why = fit === 'unclear' ? `: ${because}, and what is unclear is taken for what the rule is about` : '';
  return { effect, rule: rule.name, reason: `The rule "${rule.name}" ${verb}${why}.` };
};

/** The first that fits; without one, the first in doubt. */
const foremost = (fits: readonly RuleFit[]) => fits.find(({ fit }) => fit === 'yes') ?? fits[0];

function byDefault(defaults: Defaults, { surface }: PolicyRequest): Decision {
  const [effect, what] =
    surface === 'escalate'
      ? [defaults.default ?? 'ask', 'tools of the escalate class']
      : [defaults.default_natural ?? 'allow', 'natural tools'];
  return { effect, rule: 'default', reason: `No rule decides it, and the default for ${what} is ${effect}.` };
}

/** What the rules say, with nothing else looked at. */
function byRules(fits: readonly RuleFit[], request: PolicyRequest, defaults: Defaults): Decision {
  const having = (effect: Effect) => fits.filter(({ rule, fit }) => rule.effect === effect && fit !== 'no');
  const denying = foremost(having('deny'));
  if (denying) return named('deny', denying);
  for (const { rule, fit } of fits) {
    const reason = fit === 'no' ? undefined : beyondLimits(rule, request, defaults.timezone);
    if (reason !== undefined) return { effect: 'deny', rule: rule.name, reason };
  }
  const asking = foremost(having('ask'));
  if (asking?.fit === 'yes') return named('ask', asking);
  const allowing = having('allow').filter(({ fit }) => fit === 'yes');
  const allowed = allowing.find(({ rule }) => rule.unattended) ?? allowing[0];
  const decision = allowed ? named('allow', allowed) : byDefault(defaults, request);
  // A rule in doubt holds back what would be allowed; it does not lift what would be denied.
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
  const what = hours.effect === 'deny' ? 'nothing of the escalate class is done' : 'what is allowed otherwise is asked';
  return {
    effect: hours.effect,
    rule: 'quiet_hours',
    reason: `${decision.reason} These are quiet hours until ${end} ${timezone}, in which ${what}.`,
  };
}

/** @param fits every rule of the policy held against the request, in the order of the file */
export function decide(fits: readonly RuleFit[], request: PolicyRequest, defaults: Defaults): Decision {
  const decision = byRules(fits, request, defaults);
  if (request.surface === 'natural') return decision;
  const held = inQuietHours(decision, defaults, request.now);
  if (held.effect !== 'allow' || !request.unattended) return held;
  if (fits.some(({ rule, fit }) => rule.name === held.rule && fit === 'yes' && rule.unattended)) return held;
  const reason = `${held.reason} But an alarm began this turn and nobody is there, so it is asked.`;
  return { effect: 'ask', rule: held.rule, reason };
}
