/** The tools of the user's agent. */

import type { CliContext } from '../context.ts';
import { UsageError } from '../flags/usage-error.ts';
import { orUndefined } from './unreachable.ts';

/**
 * Checks names of tools. Without an answer of a Neo nothing is known.
 *
 * @throws UsageError with the tools of the agent, when one is not among them
 */
export async function checkTools(context: CliContext, names: readonly string[] | null | undefined): Promise<void> {
  if (!names || names.length === 0) return;
  const [{ refusedTools }, { personClient }] = await Promise.all([
    import('../../agents/neo/client.ts'),
    import('./router.ts'),
  ]);
  const client = orUndefined(() => personClient(context));
  const refusal = client && (await refusedTools(client, names, context.clock));
  if (refusal !== undefined) throw new UsageError(`--${refusal}`);
}
