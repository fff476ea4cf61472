/** Counts what the models of a turn use, over its attempts. */
import type { ModelAnswer } from '../../kit/model/model.ts';
import { type Prices, priced } from '../../kit/model/prices.ts';
import type { Turn } from '../../turns/turn.ts';
import { addUsage, NO_USAGE, type TurnUsage, tokensOfUsage } from '../../wire/usage.ts';
import type { JournalledStep } from './loop/journal.ts';
import type { NeoModel } from './model.ts';

/** The usage of one call; `undefined` if the endpoint does not report it. */
function usageOf({ usage, model }: ModelAnswer, asked: string, prices: Prices): TurnUsage | undefined {
  if (usage?.inputTokens === undefined || usage.outputTokens === undefined) return undefined;
  const counted = { input_tokens: usage.inputTokens, output_tokens: usage.outputTokens };
  return priced(counted, prices, [asked, model]);
}

/** The usage of earlier attempts: of the last step that was stored, or when the turn was set aside. */
function earlierUsage({ usage, attempts, retries }: Turn, steps: readonly JournalledStep[]): TurnUsage {
  const ofSteps = steps.at(-1)?.usage;
  const known = [usage, ofSteps].filter((each) => each !== undefined);
  known.sort((one, other) => tokensOfUsage(other) - tokensOfUsage(one));
  // A call that was under way when Neo stopped may have been charged.
  const isCut = attempts > retries + 1 || (attempts > 1 && known.length === 0);
  return { ...(known[0] ?? NO_USAGE), ...(isCut && { incomplete: true as const }) };
}

/**
 * Starts to count.
 *
 * @param steps the journal of the turn
 */
export function usageMeter(turn: Turn, steps: readonly JournalledStep[], prices: Prices) {
  let used = earlierUsage(turn, steps);
  const limit = turn.terms?.tokens_per_turn;
  const missOne = () => {
    used = { ...used, incomplete: true };
  };

  return {
    /** The model, whose calls are counted. */
    metered: (model: NeoModel): NeoModel => ({
      ...model,
      async generate(request) {
        let hasBegun = false;
        const onText = (piece: string) => {
          hasBegun = true;
          request.onText(piece);
        };
        try {
          const answer = await model.generate({ ...request, onText });
          const usage = usageOf(answer, model.name, prices);
          if (usage) used = addUsage(used, usage);
          else missOne();
          return answer;
        } catch (thrown) {
          // An answer that breaks off is charged, and only its end reports the usage.
          if (hasBegun) missOne();
          throw thrown;
        }
      },
    }),

    /** What the turn used so far; `undefined` if nothing of it is known. */
    used: (): TurnUsage | undefined => (used.incomplete && tokensOfUsage(used) === 0 ? undefined : used),

    /** Why the turn may not call a model again, if its budget is used up. */
    exhausted(): string | undefined {
      const tokens = tokensOfUsage(used);
      if (limit === undefined || tokens < limit) return undefined;
      return `it has used ${tokens} tokens, and its user's budget is ${limit} per turn (tokens_per_turn)`;
    },
  };
}
export type UsageMeter = ReturnType<typeof usageMeter>;
