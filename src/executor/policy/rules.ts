/** Compiles the rules of a policy and matches them against calls. Pure. */
import { valueAt } from '../intent/pointer.ts';
import { isMore, readDecimal } from './decimal.ts';
import { compileExpression } from './expression.ts';
import type { PolicyRequest } from './policy.ts';
import type { ArgumentPattern, PolicyRule } from './policy-file.ts';

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
export function all(fits: readonly Fit[]): Fit {
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
