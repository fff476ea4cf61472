/** `reveille intent submit`: hand a task over to the executor. */
import { randomUUID } from 'node:crypto';
import { ReveilleError } from '../../wire/errors.ts';
import type { RawJson } from '../../wire/json.ts';
import type { CliContext } from '../context.ts';
import { type ExecutorClient, executorClient } from '../executor-access.ts';
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

/** The intent that has to come to its end before this one begins. It is handed over, whether or not that can be told. */
async function queuedBehind(client: ExecutorClient, intentId: string): Promise<string | undefined> {
  try {
    return (await client.view(intentId)).value.queued_behind;
  } catch (error) {
    if (error instanceof ReveilleError) return undefined;
    throw error;
  }
}

export async function intentSubmit(context: CliContext, flags: SubmitFlags, prose: string | undefined): Promise<void> {
  const client = executorClient(context, flags.user);
  const intentId = await client.submit({
    ...taskOf(prose, flags.jsonFile),
    // Made here, so that a task of which nobody knows whether it arrived can be handed over again without being carried out twice.
    idempotency_key: flags.idempotencyKey ?? randomUUID(),
    ...(flags.conversation === undefined ? {} : { conversation_id: flags.conversation }),
    origin: 'person',
  });
  const behind = await queuedBehind(client, intentId);
  const waits = behind === undefined ? [] : [`  it waits until intent ${behind} is over`];
  const lines = [`Submitted ${intentId}`, ...waits, `  follow it with: reveille intent watch ${intentId}`];
  context.out.result({ intent_id: intentId, ...(behind !== undefined && { queued_behind: behind }) }, lines);
}
