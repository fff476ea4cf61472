/**
 * What a rule says of one argument, and whether a call fits. Pure. There are three answers: an argument that is missing, or of another
 * type than the pattern speaks of, neither fits nor fails to. Such a doubt never makes a rule more lenient (docs/policies.md).
 */

import { isMore, readDecimal } from './decimal.ts';
import { compileExpression } from './expression.ts';
import { fitsGlob } from './glob.ts';

export type Fit = 'yes' | 'no' | 'unclear';

export type PlainValue = string | number | boolean;

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
export type ArgumentTest = (value: unknown) => Fit;

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
export function compilePattern({ equals, one_of, glob, matches, range, optional }: PatternSource): ArgumentTest {
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
