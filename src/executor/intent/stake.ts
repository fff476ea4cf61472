/** The amount that a call moves and the identifiers that it created, read at the pointers of the manifest. Pure. */
import type { Rail } from '../../wire/manifest.ts';
import { valueAt } from './pointer.ts';

type WithRail = { readonly rail: Rail | undefined };
type Args = Readonly<Record<string, unknown>>;

/** Without exponent, sign or leading zeros, so that every reader gets the same number. */
const DECIMAL = /^(?:0|[1-9]\d{0,77})(?:\.\d{1,78})?$/;
const CURRENCY = /^[\p{L}\p{N}._:/-]{1,100}$/u;

/** The currency of a tool whose manifest names none. */
export const NO_CURRENCY = '';

/**
 * The amount that a call moves.
 *
 * @returns `undefined` when the manifest declares no amount; `unreadable` when the declared amount is missing, negative
 *   or in scientific notation
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
  // A larger integer has already lost digits.
  return typeof value === 'number' && (Number.isSafeInteger(value) || !Number.isInteger(value));
}

/** The identifiers of what a call created, by the pointers of the manifest; `undefined` when there are none. */
export function referencesOf({ rail }: WithRail, result: unknown): Readonly<Record<string, unknown>> | undefined {
  const found = (rail?.references ?? []).map((pointer) => [pointer, valueAt(result, pointer)] as const);
  const kept = found.filter(([, value]) => isReference(value));
  return kept.length === 0 ? undefined : Object.fromEntries(kept);
}
