/** Rules that can never have an effect, because a stricter one speaks of every call that they speak of. Pure. */
import type { PatternSource } from './argument-pattern.ts';
import { fitsGlob } from './glob.ts';
import type { PolicyRule } from './policy-file.ts';

const STRICTNESS = { allow: 0, ask: 1, deny: 2 } as const;

const same = (one: PatternSource, other: PatternSource | undefined) => JSON.stringify(one) === JSON.stringify(other);

/** Whether every call that `rule` is about is one that `stricter` is about. It may miss some that are, never the other way round. */
function covers(stricter: PolicyRule, rule: PolicyRule): boolean {
  if (!fitsGlob(stricter.tool, rule.tool)) return false;
  if (stricter.users && !rule.users?.every((user) => stricter.users?.includes(user))) return false;
  return Object.entries(stricter.args ?? {}).every(([pointer, pattern]) => same(pattern, rule.args?.[pointer]));
}

/** Which rules have no effect, by their places in the list, and which rule makes it so. */
export function coveredRules(rules: readonly PolicyRule[]): { index: number; by: PolicyRule }[] {
  return rules.flatMap((rule, index) => {
    const by = rules.find((other) => STRICTNESS[other.effect] > STRICTNESS[rule.effect] && covers(other, rule));
    // Its limits deny what is beyond them, whichever rule asks.
    return by === undefined || (rule.limits && by.effect === 'ask') ? [] : [{ index, by }];
  });
}
