/** `reveille intent cancel` and `reconcile`: one call, and how the intent stands afterwards. */
import type { CliContext } from '../context.ts';
import { executorClient } from '../executor-access.ts';
import { laidOpen, statusWords } from '../intent-screen.ts';
import { lookOf } from '../look.ts';

export async function intentAct(
  context: CliContext,
  action: 'cancel' | 'reconcile',
  flags: { user?: string },
  intentId: string,
): Promise<void> {
  const { value, text } = await executorClient(context, flags.user)[action](intentId);
  const words = `Intent ${intentId} is ${statusWords(value, lookOf(context))}`;
  context.out.result(text, value.error ? [words, `  ${laidOpen(value.error.message)}`] : words);
}
