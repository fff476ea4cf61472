/** Prices of models that the operator configures: none are built in, because they change. Pure. */
import { z } from 'zod';
import { roundedUsd, type TurnUsage } from '../../wire/usage.ts';

/** US dollars for a million tokens. Cached input costs what other input costs. */
type Price = { readonly input: number; readonly output: number };

/** By the model's name; `*` is any other model. */
export type Prices = ReadonlyMap<string, Price>;

const PER = 1_000_000;
const ENTRY = /^(\S+?)\s*=\s*(\d{1,6}(?:\.\d{1,6})?)\/(\d{1,6}(?:\.\d{1,6})?)$/;

/** `gpt-5=1.25/10, *=1/4`: US dollars for a million tokens of input and of output. */
export const pricesSetting = z.string().transform((text, context): Prices => {
  const prices = new Map<string, Price>();
  for (const entry of text.split(',')) {
    const match = ENTRY.exec(entry.trim());
    if (!match) {
      const message = 'must be prices such as gpt-5=1.25/10, *=1/4: dollars for a million tokens of input/output';
      context.addIssue({ code: 'custom', message });
      return z.NEVER;
    }
    prices.set(match[1]!, { input: Number(match[2]), output: Number(match[3]) });
  }
  return prices;
});

/**
 * The usage with its cost. A cost that the agent reports stays; an unknown price leaves the cost unknown.
 *
 * @param names of the model, the most specific first
 */
export function priced(usage: TurnUsage, prices: Prices, names: readonly (string | undefined)[]): TurnUsage {
  if (usage.cost_usd !== undefined || prices.size === 0) return usage;
  const name = [...names, '*'].find((each) => each !== undefined && prices.has(each));
  if (name === undefined) return usage;
  const { input, output } = prices.get(name)!;
  const cost_usd = roundedUsd((usage.input_tokens * input + usage.output_tokens * output) / PER);
  const { incomplete, ...known } = usage;
  return { ...known, cost_usd, ...(incomplete && { incomplete }) };
}
