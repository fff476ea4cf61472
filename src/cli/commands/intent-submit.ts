/** `reveille intent submit`: hand a task over to the executor. */
import type { RawJson } from '../../wire/json.ts';
import type { CliContext } from '../context.ts';
import { executorClient } from '../executor-access.ts';
import { fileFlag, jsonFlag } from '../flags.ts';
import { UsageError } from '../usage-error.ts';

export type SubmitFlags = { user?: string; jsonFile?: string; idempotencyKey?: string; conversation?: string };

function taskOf(prose: string | undefined, file: string | undefined): { prose: string } | { intent: RawJson } {
  if (file === undefined && prose !== undefined) return { prose };
  if (file !== undefined && prose === undefined)
    return { intent: jsonFlag('--json-file', fileFlag('--json-file', file)) };
  const example = 'reveille intent submit "Transfer 10 EUR to Ada"';
  throw new UsageError(`give the task in words or with --json-file, one of the two; for example: ${example}`);
}

export async function intentSubmit(context: CliContext, flags: SubmitFlags, prose: string | undefined): Promise<void> {
  const intentId = await executorClient(context, flags.user).submit({
    ...taskOf(prose, flags.jsonFile),
    ...(flags.idempotencyKey === undefined ? {} : { idempotency_key: flags.idempotencyKey }),
    ...(flags.conversation === undefined ? {} : { conversation_id: flags.conversation }),
    origin: 'person',
  });
  const lines = [`Submitted ${intentId}`, `  follow it with: reveille intent watch ${intentId}`];
  context.out.result({ intent_id: intentId }, lines);
}
