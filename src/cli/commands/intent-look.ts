/** `reveille intent list`, `show` and `receipt`: what there is, one of them, and the proof of it. */
import { writeFileSync } from 'node:fs';
import { shellWord } from '../../kit/identity/private-file.ts';
import { ReveilleError } from '../../wire/errors.ts';
import { INTENT_STATUSES } from '../../wire/executor.ts';
import { intentReceiptSchema } from '../../wire/intent-receipt.ts';
import { encodeJson, RawJson, sliceAt } from '../../wire/json.ts';
import { executorAdmin, executorClient } from '../access/executor.ts';
import type { CliContext } from '../context.ts';
import { choiceFlag, wholeNumberFlag } from '../flags/flags.ts';
import { renderIntent, renderIntents } from '../screens/intent-screen.ts';
import { lookOf } from '../screens/look.ts';
import { findIntentId } from './intent-id.ts';

export type ListFlags = { user?: string; status?: string; limit?: string };

export async function intentList(context: CliContext, flags: ListFlags): Promise<void> {
  const { out } = context;
  const status = choiceFlag('--status', flags.status, INTENT_STATUSES);
  const limit = wholeNumberFlag('--limit', flags.limit, 1, 500);
  const intents = await executorClient(context, flags.user).list({ status, limit });
  if (out.json) {
    for (const { text } of intents) out.result(text, []);
    return;
  }
  for (const line of renderIntents(
    intents.map(({ value }) => value),
    lookOf(context),
  ))
    out.line(line);
}

export type ShowFlags = { user?: string; full?: boolean };

export async function intentShow(context: CliContext, flags: ShowFlags, given: string): Promise<void> {
  const client = executorClient(context, flags.user);
  const intentId = await findIntentId(client, given);
  const [view, waiting] = await Promise.all([client.view(intentId), client.gates(intentId)]);
  const gates = waiting.map(({ value }) => value);
  const data = new RawJson(`${view.text.text.slice(0, -1)},"gates":${encodeJson(gates)}}`);
  context.out.result(data, renderIntent(view, gates, lookOf(context), flags.full));
}

/** The executor's public key, in its own word and not the receipt's; what stands for it where this machine may not ask. */
async function receiptKey(context: CliContext): Promise<string> {
  try {
    return (await executorAdmin(context).approvers()).executor;
  } catch (error) {
    if (error instanceof ReveilleError) return '<the key that "reveille approver list" names where the executor runs>';
    throw error;
  }
}

export type ReceiptFlags = { user?: string; output?: string };

export async function intentReceipt(context: CliContext, flags: ReceiptFlags, given: string): Promise<void> {
  const client = executorClient(context, flags.user);
  const intentId = await findIntentId(client, given);
  const receipt = await client.receipt(intentId);
  const count = intentReceiptSchema.safeParse(receipt.value()).data?.envelopes.length;
  if (count === undefined || sliceAt(receipt.text, ['envelopes']) === undefined)
    throw new ReveilleError('unavailable', 'the executor answered with something that is no receipt', {
      retryable: false,
    });
  const { output } = flags;
  // Without a file, the receipt itself is the result, whoever reads it.
  if (output === undefined) return context.out.result(receipt);
  try {
    writeFileSync(output, `${receipt.text}\n`, { flag: 'wx' });
  } catch (cause) {
    const isThere = (cause as NodeJS.ErrnoException).code === 'EEXIST';
    if (isThere) throw new ReveilleError('conflict', `--output ${output} is there already; name a new file`, { cause });
    const why = cause instanceof Error ? cause.message : String(cause);
    throw new ReveilleError('unavailable', `--output ${output} cannot be written: ${why}`, { retryable: false, cause });
  }
  const lines = [
    `Wrote ${count} envelopes to ${output}`,
    '  check it, here or on any machine, with:',
    `  reveille receipt verify ${shellWord(output)} --key ${await receiptKey(context)}`,
  ];
  context.out.result({ intent_id: intentId, file: output, envelopes: count }, lines);
}
