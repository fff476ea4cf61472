/** The schema of a policy file (docs/reference/policies.md). */
import { z } from 'zod';
import { quietHoursSchema, WEEKDAYS } from '../../wire/budget.ts';
import { readIsoDuration } from '../../wire/iso-duration.ts';
import { shortText } from '../../wire/text.ts';
import { isMore, readDecimal } from './decimal.ts';
import { compileExpression, ExpressionError } from './expression.ts';

const DAY_MS = 86_400_000;
const LONGEST_APPROVAL_MS = 365 * DAY_MS;
const MOST_RULES = 500;

/** Names of decisions that no rule makes. */
const RESERVED: ReadonlySet<string> = new Set(['default', 'quiet_hours']);

/** Reports a problem of the member at `path`. */
const complain = (context: z.RefinementCtx, path: PropertyKey[], message: string) =>
  context.addIssue({ code: 'custom', path, message });

const effect = z.enum(['allow', 'ask', 'deny']);

const decimal = z.union([z.string(), z.number()], { error: 'must be a decimal number such as "250.00"' });

const number = decimal.refine((value) => readDecimal(value) !== undefined, 'must be a decimal number such as "250.00"');

const amount = decimal.refine((value) => {
  const read = readDecimal(value);
  return read !== undefined && read.units >= 0n;
}, 'must be an amount such as "250.00", not negative, without exponent or leading zeros');

/** Empty for tools whose manifest names no currency. */
const currency = z.string().regex(/^[A-Za-z0-9._:/-]{0,100}$/, 'must be a currency as the calls write it, such as EUR');

const amounts = z
  .record(currency, amount)
  .refine((given) => Object.keys(given).length > 0, 'must name at least one currency, such as {EUR: "250.00"}');

const limits = z
  .strictObject({ per_call: amounts.optional(), per_day: amounts.optional() })
  .superRefine(({ per_call, per_day }, context) => {
    if (!per_call && !per_day) complain(context, [], 'must have per_call or per_day');
    if (!per_call || !per_day) return;
    const why = 'has no counterpart: per_call and per_day must name the same currencies';
    for (const [name, here, there] of [
      ['per_call', per_call, per_day],
      ['per_day', per_day, per_call],
    ] as const)
      for (const currency of Object.keys(here))
        if (!Object.hasOwn(there, currency)) complain(context, [name, currency], why);
  });

const plainValue = z.union([z.string(), z.number(), z.boolean()], { error: 'must be a text, a number, true or false' });

const expression = z
  .string()
  .max(1000)
  .superRefine((source, context) => {
    try {
      compileExpression(source);
    } catch (error) {
      if (!(error instanceof ExpressionError)) throw error;
      complain(context, [], `must be a regular expression; it ${error.message}`);
    }
  });

const range = z
  .strictObject({ min: number.optional(), max: number.optional() })
  .superRefine(({ min, max }, context) => {
    const [least, most] = [readDecimal(min), readDecimal(max)];
    if (!least && !most) complain(context, [], 'must have min or max');
    if (least && most && isMore(least, most)) complain(context, ['max'], 'must not be less than min');
  });

/** A pattern for an argument; every present member must match. */
const pattern = z
  .strictObject({
    equals: plainValue.optional(),
    one_of: z
      .array(plainValue)
      .min(1)
      .refine((values) => new Set(values.map((value) => typeof value)).size === 1, 'must be all texts or all numbers')
      .optional(),
    glob: z.string().optional(),
    matches: expression.optional(),
    range: range.optional(),
    /** The argument may be missing: a rule that denies or asks does not match a call without it. */
    optional: z.boolean().optional(),
  })
  .refine(
    ({ optional, ...tests }) => Object.values(tests).some((test) => test !== undefined),
    'must have one of equals, one_of, glob, matches, range',
  );

const pointer = z.string().regex(/^(\/([^~/]|~[01])*)+$/, 'must be a JSON Pointer such as /to');

const rule = z
  .strictObject({
    name: shortText(100).regex(
      /^[\p{L}\p{N}](?:[\p{L}\p{N}\p{P} ]*[\p{L}\p{N}\p{P}])?$/u,
      'must be letters, digits, punctuation and blanks',
    ),
    tool: z
      .string()
      .max(200)
      .regex(/^(?:\*|[A-Za-z0-9_*-]+\/.+)$/u, 'must be <alias>/<tool>, such as ledger/transfer or ledger/*'),
    args: z.record(pointer, pattern).optional(),
    users: z.array(z.string().min(1)).min(1).optional(),
    effect,
    unattended: z.boolean().optional(),
    limits: limits.optional(),
  })
  .superRefine(({ name, effect, unattended, limits, args = {} }, context) => {
    if (RESERVED.has(name))
      complain(context, ['name'], 'must be another name: receipts use this one for decisions without a rule');
    if (unattended && effect !== 'allow') complain(context, ['unattended'], 'is allowed only with the effect allow');
    if (limits && effect === 'deny') complain(context, ['limits'], 'is not allowed with the effect deny');
    if (effect !== 'allow') return;
    const why = 'is not allowed with the effect allow: an allowed argument must be present';
    for (const [place, { optional }] of Object.entries(args))
      if (optional) complain(context, ['args', place, 'optional'], why);
  });

const { from, to, timezone } = quietHoursSchema.shape;

const quietWindow = z
  .strictObject({
    from,
    to,
    days: z.array(z.enum(WEEKDAYS)).min(1).optional(),
    effect: z.enum(['ask', 'deny']).optional(),
  })
  .superRefine(({ from, to }, context) => {
    if (from === to) complain(context, ['to'], 'must differ from from; equal times would make every hour quiet');
  });

const approvalTimeout = z.string().refine((text) => {
  const ms = readIsoDuration(text);
  return ms !== undefined && ms >= 1000 && ms <= LONGEST_APPROVAL_MS;
}, 'must be an ISO 8601 duration from PT1S to P365D, such as PT24H');

export const policyFileSchema = z
  .strictObject({
    version: z.literal(1),
    /** For the escalate class, when no rule decides. */
    default: effect.optional(),
    /** The same for natural tools. */
    default_natural: effect.optional(),
    timezone: timezone.optional(),
    approval_timeout: approvalTimeout.optional(),
    quiet_hours: z.array(quietWindow).max(50).optional(),
    rules: z.array(rule).max(MOST_RULES).optional(),
  })
  .superRefine(({ rules = [] }, context) => {
    const names = new Map<string, number>();
    for (const [index, { name }] of rules.entries()) {
      const before = names.get(name);
      if (before === undefined) names.set(name, index);
      else complain(context, ['rules', index, 'name'], `must differ from the name of rule ${before + 1}`);
    }
  });

export type PolicyFile = z.output<typeof policyFileSchema>;
export type PolicyRule = z.output<typeof rule>;
export type ArgumentPattern = z.output<typeof pattern>;
