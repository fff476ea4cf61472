/** The tokens and the money that a turn used, as its agent reports them. Pure. */
import { z } from 'zod';
import { labelSchema } from './did.ts';
import { givenFireIdSchema } from './fire-id.ts';

/** A turn without a report of its usage has none: that is not zero. */
export const turnUsageSchema = z.strictObject({
  /** Over all model calls of the turn; tokens that the endpoint had cached count too. */
  input_tokens: z.int().min(0).max(1e12),
  output_tokens: z.int().min(0).max(1e12),
  /** As the agent reports it, or by the operator's prices; absent if neither is known for every call. */
  cost_usd: z.number().min(0).max(1e9).optional(),
  /** The usage of at least one call is unknown: the turn used more than this. */
  incomplete: z.literal(true).optional(),
});
export type TurnUsage = z.output<typeof turnUsageSchema>;

/** The most fires of one question. */
export const USAGE_FIRES_MAX = 500;

/** The body of chronosd's `POST /internal/usage`: a router asks about fires of one user. */
export const usageQuerySchema = z.strictObject({
  user_id: labelSchema,
  fire_ids: z.array(givenFireIdSchema).min(1).max(USAGE_FIRES_MAX),
});

/** The answer: the turns that have ended; those without `usage` ended without a report of it. */
export const usageOfTurnsSchema = z.object({
  turns: z.array(z.object({ fire_id: z.string(), usage: turnUsageSchema.optional() })),
});

/** What the turns of a user's alarms used in the last 24 hours, as far as it is known. */
export const spendingSchema = z.object({
  turns: z.int(),
  tokens: z.int(),
  cost_usd: z.number(),
  /** How many of the turns ended without a report of all their usage. */
  unknown: z.int(),
  /** How many have not ended: they count when they do. */
  under_way: z.int(),
});
export type Spending = z.infer<typeof spendingSchema>;

/** The usage of a turn that has called no model. */
export const NO_USAGE: TurnUsage = { input_tokens: 0, output_tokens: 0 };

export const tokensOfUsage = ({ input_tokens, output_tokens }: TurnUsage): number => input_tokens + output_tokens;

const isNone = (usage: TurnUsage) => tokensOfUsage(usage) === 0 && usage.cost_usd === undefined;

/** Rounded to a billionth of a dollar, so that sums of prices show no error of binary fractions. */
export const roundedUsd = (usd: number): number => Number(usd.toFixed(9));

/** The sum. Its cost is known only if both costs are. */
export function addUsage(one: TurnUsage, other: TurnUsage): TurnUsage {
  const costs = [one, other].filter((usage) => !isNone(usage)).map(({ cost_usd }) => cost_usd);
  const isPriced = costs.length > 0 && costs.every((cost) => cost !== undefined);
  return {
    input_tokens: one.input_tokens + other.input_tokens,
    output_tokens: one.output_tokens + other.output_tokens,
    ...(isPriced && { cost_usd: roundedUsd(costs.reduce((sum, cost) => sum + cost, 0)) }),
    ...((one.incomplete || other.incomplete) && { incomplete: true as const }),
  };
}

/**
 * What was used between two counts of one counter; `undefined` if it has been reset in between.
 */
export function usageBetween(before: TurnUsage, after: TurnUsage): TurnUsage | undefined {
  const input_tokens = after.input_tokens - before.input_tokens;
  const output_tokens = after.output_tokens - before.output_tokens;
  if (input_tokens < 0 || output_tokens < 0) return undefined;
  if (after.cost_usd === undefined || before.cost_usd === undefined) return { input_tokens, output_tokens };
  return { input_tokens, output_tokens, cost_usd: roundedUsd(Math.max(0, after.cost_usd - before.cost_usd)) };
}

/** The usage in a stored text; `undefined` without one, and for one that is no usage. */
export function readUsage(text: string | null | undefined): TurnUsage | undefined {
  if (text === null || text === undefined) return undefined;
  try {
    return turnUsageSchema.safeParse(JSON.parse(text)).data;
  } catch {
    return undefined;
  }
}

/** `1,234`, `12.3k`, `4.56M`: a count for people. */
function countText(count: number): string {
  if (count < 10_000) return count.toLocaleString('en');
  if (count < 1_000_000) return `${Number((count / 1000).toPrecision(3))}k`;
  return `${Number((count / 1_000_000).toPrecision(3))}M`;
}

/** `$0.0123`: small amounts keep their digits. */
export const usdText = (usd: number): string =>
  usd === 0 || usd >= 1
    ? `$${usd.toFixed(2)}`
    : `$${usd.toFixed(Math.max(2, decimalsOf(usd))).replace(/(\.\d\d\d*?)0+$/, '$1')}`;

/** The decimals up to the second digit that is not zero. */
const decimalsOf = (usd: number) => Math.min(9, 1 - Math.floor(Math.log10(usd)));

/** `1,234 tokens, $0.012`; `undefined` for a turn that called no model. */
export function usageText(usage: TurnUsage | undefined): string | undefined {
  if (usage === undefined || (isNone(usage) && !usage.incomplete)) return undefined;
  const { cost_usd, incomplete } = usage;
  const tokens = tokensOfUsage(usage);
  const cost = cost_usd === undefined ? '' : `, ${usdText(cost_usd)}`;
  return `${incomplete ? 'at least ' : ''}${countText(tokens)} token${tokens === 1 ? '' : 's'}${cost}`;
}

/** `12.3k tokens and $0.21 by 14 turns; the usage of 2 is not known`. */
export function spendingText({ turns, tokens, cost_usd, unknown, under_way }: Spending): string {
  const cost = cost_usd === 0 ? '' : ` and ${usdText(cost_usd)}`;
  const used = `${countText(tokens)} token${tokens === 1 ? '' : 's'}${cost} by ${turns} turn${turns === 1 ? '' : 's'}`;
  const rest = [
    ...(under_way === 0 ? [] : [`${under_way} under way`]),
    ...(unknown === 0 ? [] : [`the usage of ${unknown} is not known`]),
  ];
  return [used, ...rest].join('; ');
}
