/** The rules of a policy, made ready, and which of them speak of a call. Pure. */
import { valueAt } from '../intent/pointer.ts';
import { isMore, readDecimal } from './decimal.ts';
import { compileExpression } from './expression.ts';
import type { PolicyRequest } from './policy.ts';
import type { PolicyRule } from './policy-file.ts';

/** Whether a rule is about a call; `because` says why it is not, or what the doubt is. */
export type RuleFit = { readonly rule: PolicyRule; readonly fit: Fit; readonly because: string };

/** Holds a call against one rule. */
type RuleTest = (request: PolicyRequest) => RuleFit;

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

type Fit = 'yes' | 'no' | 'unclear';

type PlainValue = string | number | boolean;

/** As the file says it; every member that is given has to hold. */
export type PatternSource = {
  readonly equals?: PlainValue | undefined;
  readonly one_of?: readonly PlainValue[] | undefined;
  readonly glob?: string | undefined;
  readonly matches?: string | undefined;
  readonly range?:
    | { readonly min?: string | number | undefined; readonly max?: string | number | undefined }
    | undefined;
  /** The argument may be left out: a rule that denies or asks is not about a call without it. */
  readonly optional?: boolean | undefined;
};

/** Judges an argument; `undefined` where there is none. */
type ArgumentTest = (value: unknown) => Fit;

/** Longer texts are not matched against expressions. */
const LONGEST_MATCHED = 4096;

const fit = (holds: boolean): Fit => (holds ? 'yes' : 'no');

/** All of several: one that fails is enough, and one in doubt leaves it in doubt. */
export function all(fits: readonly Fit[]): Fit {
  if (fits.includes('no')) return 'no';
  return fits.includes('unclear') ? 'unclear' : 'yes';
}

/** @param values all of one type */
function among(values: readonly PlainValue[]): ArgumentTest {
  const known = new Set<unknown>(values);
  return (value) => (typeof value === typeof values[0] ? fit(known.has(value)) : 'unclear');
}

const ofText =
  (holds: (text: string) => boolean, longest = Number.POSITIVE_INFINITY): ArgumentTest =>
  (value) =>
    typeof value === 'string' && value.length <= longest ? fit(holds(value)) : 'unclear';

function within(min: string | number | undefined, max: string | number | undefined): ArgumentTest {
  const [least, most] = [readDecimal(min), readDecimal(max)];
  return (value) => {
    const number = readDecimal(value);
    if (number === undefined) return 'unclear';
    return fit(!(least && isMore(least, number)) && !(most && isMore(number, most)));
  };
}

/** @throws ExpressionError for a `matches` that cannot be understood */
function compilePattern({ equals, one_of, glob, matches, range, optional }: PatternSource): ArgumentTest {
  const tests: ArgumentTest[] = [];
  if (equals !== undefined) tests.push(among([equals]));
  if (one_of !== undefined) tests.push(among(one_of));
  if (glob !== undefined) tests.push(ofText((text) => fitsGlob(glob, text)));
  if (matches !== undefined) tests.push(ofText(compileExpression(matches), LONGEST_MATCHED));
  if (range !== undefined) tests.push(within(range.min, range.max));
  return (value) => {
    if (value === undefined) return optional ? 'no' : 'unclear';
    return all(tests.map((test) => test(value)));
  };
}

/**
 * Whether the whole text fits. Nothing is normalised: characters are compared code unit by code unit.
 *
 * Given another pattern as `text`, a `true` means that every text that fits that pattern fits this one.
 */
export function fitsGlob(glob: string, text: string): boolean {
  const [head, ...rest] = glob.split('*') as [string, ...string[]];
  const tail = rest.pop();
  if (tail === undefined) return text === head;
  if (!text.startsWith(head) || text.length < head.length + tail.length || !text.endsWith(tail)) return false;
  let at = head.length;
  const end = text.length - tail.length;
  for (const part of rest) {
    // The leftmost place leaves the most to those that follow.
    const found = text.indexOf(part, at);
    if (found === -1 || found + part.length > end) return false;
    at = found + part.length;
  }
  return true;
}
