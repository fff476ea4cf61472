/** `reveille machine budget`: how often and when an agent may be woken. */
import type { MachineView } from '../../router/machines/machine-schema.ts';
import { routerClient } from '../access/router.ts';
import type { CliContext } from '../context.ts';
import { type BudgetFlags, budgetOf } from '../flags/budget-flags.ts';
import { userOf } from '../flags/machine-user.ts';
import { UsageError } from '../flags/usage-error.ts';
import { budgetWords } from '../screens/budget-words.ts';

export type SetBudgetFlags = BudgetFlags & { default?: boolean };

/** The budget that applies to a machine, in words; nothing where there is none. */
export function budgetOfMachine({ budget, default_budget: standard }: MachineView): string | undefined {
  if (budget) return budgetWords(budget);
  return standard && `${budgetWords(standard)} (the router's setting for all)`;
}

/** Sets the budget as a whole; without flags, shows it. */
export async function machineBudget(
  context: CliContext,
  flags: SetBudgetFlags,
  given: string | undefined,
): Promise<void> {
  const budget = budgetOf(flags);
  if (flags.default && budget !== undefined)
    throw new UsageError('--default goes with no other flag of a budget; leave it or them out');
  const router = routerClient(context);
  const userId = userOf(context, given);
  const wanted = flags.default ? null : budget;
  const machine = wanted === undefined ? await router.show(userId) : await router.bound(userId, wanted);
  const words = budgetOfMachine(machine) ?? 'no limits';
  context.out.result(machine, `Budget of ${machine.user_id}: ${words}`);
}
