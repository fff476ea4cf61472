/** `reveille intent cancel` and `reconcile`: one call, and how the intent stands afterwards. */

import { laidOpen } from '../../kit/text/hidden-characters.ts';
import { executorClient } from '../access/executor.ts';
import type { CliContext } from '../context.ts';
import { statusWords } from '../screens/intent-screen.ts';
import { lookOf } from '../screens/look.ts';
import { findIntentId } from './intent-id.ts';

export async function intentAct(
  context: CliContext,
  action: 'cancel' | 'reconcile',
  flags: { user?: string },
  given: string,
): Promise<void> {
  const client = executorClient(context, flags.user);
  const intentId = await findIntentId(client, given);
  const { value, text } = await client[action](intentId);
  const words = `Intent ${intentId} is ${statusWords(value, lookOf(context))}`;
  context.out.result(text, value.error ? [words, `  ${laidOpen(value.error.message)}`] : words);
}
