/** What a call has at stake and what it made, read where the manifest says that it stands. Pure. */
import type { Rail } from '../../wire/manifest.ts';
import { valueAt } from './pointer.ts';

type WithRail = { readonly rail: Rail | undefined };
type Args = Readonly<Record<string, unknown>>;

/** Without exponent, sign or leading zeros: what everybody reads as the same number. */
const DECIMAL = /^(?:0|[1-9]\d{0,77})(?:\.\d{1,78})?$/;
const CURRENCY = /^[\p{L}\p{N}._:/-]{1,100}$/u;

/** Stands for the currency of a tool whose manifest names none. */
export const NO_CURRENCY = '';

/**
 * How much a call moves.
 *
 * @returns `undefined` for a tool of which the manifest does not say it; `unreadable` where it says so and no amount
 *   can be read
 *   there: a negative one, one in scientific notation, none at all
 */
export function amountOf(
  { rail }: WithRail,
  args: Args,
): { value: string; currency: string } | 'unreadable' | undefined {
  if (rail?.amount === undefined) return undefined;
  const given = valueAt(args, rail.amount);
  const value = typeof given === 'number' ? String(given) : given;
  if (typeof value !== 'string' || !DECIMAL.test(value)) return 'unreadable';
  if (rail.currency === undefined) return { value, currency: NO_CURRENCY };
  const currency = valueAt(args, rail.currency);
  return typeof currency === 'string' && CURRENCY.test(currency) ? { value, currency } : 'unreadable';
}

const LONGEST_REFERENCE = 1000;

function isReference(value: unknown): boolean {
  if (typeof value === 'string') return value.length <= LONGEST_REFERENCE && value.isWellFormed();
  // Of a longer whole number the digits are lost already.
  return typeof value === 'number' && (Number.isSafeInteger(value) || !Number.isInteger(value));
}

/** What a call made elsewhere, by the pointers that the manifest names; `undefined` when there is none of it. */
export function referencesOf({ rail }: WithRail, result: unknown): Readonly<Record<string, unknown>> | undefined {
  const found = (rail?.references ?? []).map((pointer) => [pointer, valueAt(result, pointer)] as const);
  const kept = found.filter(([, value]) => isReference(value));
  return kept.length === 0 ? undefined : Object.fromEntries(kept);
}
