/** The rules of a policy, made ready, and which of them speak of a call. Pure. */
import { valueAt } from '../intent/pointer.ts';
import { type ArgumentTest, all, compilePattern, type Fit } from './argument-pattern.ts';
import { fitsGlob } from './glob.ts';
import type { PolicyRequest } from './policy.ts';
import type { PolicyRule } from './policy-file.ts';

/** Whether a rule is about a call; `because` says why it is not, or what the doubt is. */
export type RuleFit = { readonly rule: PolicyRule; readonly fit: Fit; readonly because: string };

/** Holds a call against one rule. */
export type RuleTest = (request: PolicyRequest) => RuleFit;

function doubt(pointer: string, value: unknown): string {
  return value === undefined ? `${pointer} is missing` : `${pointer} is of another kind than the rule speaks of`;
}

export function compileRule(rule: PolicyRule): RuleTest {
  const tests: (readonly [string, ArgumentTest])[] = Object.entries(rule.args ?? {}).map(
    ([pointer, pattern]) => [pointer, compilePattern(pattern)] as const,
  );
  const users = rule.users && new Set(rule.users);
  return ({ tool, user, args }) => {
    const not = (because: string): RuleFit => ({ rule, fit: 'no', because });
    if (!fitsGlob(rule.tool, tool)) return not(`it is about ${rule.tool}`);
    if (users && !users.has(user)) return not('it is about other users');
    const results = tests.map(([pointer, test]) => {
      const value = valueAt(args, pointer);
      return { pointer, value, fit: test(value) };
    });
    const differing = results.find(({ fit }) => fit === 'no');
    if (differing) return not(`${differing.pointer} is not what it is about`);
    const fit = all(results.map((result) => result.fit));
    const doubts = results
      .filter((result) => result.fit === 'unclear')
      .map(({ pointer, value }) => doubt(pointer, value));
    return { rule, fit, because: fit === 'yes' ? 'everything fits' : doubts.join(', ') };
  };
}
