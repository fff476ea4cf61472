/** `reveille intent submit`: hand a task over to the executor. */
import { randomUUID } from 'node:crypto';
import type { ExecutorClient } from '../../executor/client.ts';
import { wait } from '../../kit/clock/clock.ts';
import { ReveilleError } from '../../wire/errors.ts';
import type { IntentView } from '../../wire/intent-view.ts';
import type { RawJson } from '../../wire/json.ts';
import { executorClient } from '../access/executor.ts';
import type { CliContext } from '../context.ts';
import { EXIT } from '../exit-status.ts';
import { fileFlag, jsonFlag } from '../flags/flags.ts';
import { UsageError } from '../flags/usage-error.ts';
import { errorLines } from '../screens/intent-screen.ts';
import { lookOf } from '../screens/look.ts';

export type SubmitFlags = { user?: string; jsonFile?: string; idempotencyKey?: string; conversation?: string };

function taskOf(prose: string | undefined, file: string | undefined): { prose: string } | { intent: RawJson } {
  if (file === undefined && prose !== undefined) return { prose };
  if (file !== undefined && prose === undefined)
    return { intent: jsonFlag('--json-file', fileFlag('--json-file', file)) };
  const example = 'reveille intent submit "Transfer 10 EUR to Ada"';
  throw new UsageError(`give the task in words or with --json-file, one of the two; for example: ${example}`);
}

/** What can be told at once is waited for: that there is no model, that the plan is none. */
const FIRST_LOOKS = 8;
const BETWEEN_LOOKS_MS = 125;

/** How it stands after a moment. It is handed over, whether or not that can be told. */
async function firstLook({ clock }: CliContext, client: ExecutorClient, id: string): Promise<IntentView | undefined> {
  try {
    for (let looks = 1; ; looks++) {
      const { value } = await client.view(id);
      if (value.status !== 'drafting' || value.queued_behind !== undefined || looks === FIRST_LOOKS) return value;
      await wait(clock, BETWEEN_LOOKS_MS);
    }
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
  const view = await firstLook(context, client, intentId);
  const behind = view?.queued_behind;
  const waits = behind === undefined ? [] : [`  it waits until intent ${behind} is over`];
  const lines = [`Submitted ${intentId}`, ...waits, `  follow it with: reveille intent watch ${intentId}`];
  const told = { intent_id: intentId, ...(behind !== undefined && { queued_behind: behind }) };
  const error = view?.status === 'failed' ? view.error : undefined;
  if (error === undefined) return context.out.result(told, lines);
  context.process.exitCode = EXIT.failed;
  context.out.result({ ...told, error }, [
    `Submitted ${intentId}, but it failed`,
    ...errorLines(error, lookOf(context)),
  ]);
}
