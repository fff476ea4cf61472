/** `reveille intent submit`, `list`, `show`, `receipt`, `cancel`, `reconcile` and `watch`, and the ids of intents. */

import { randomUUID } from 'node:crypto';
import { writeFileSync } from 'node:fs';
import type { ExecutorClient, Reply, WaitingGate } from '../../executor/client.ts';
import { wait } from '../../kit/clock/clock.ts';
import { wallTime } from '../../kit/clock/local-time.ts';
import { ChangedIds } from '../../kit/http/changed-ids.ts';
import { shellWord } from '../../kit/identity/private-file.ts';
import { fullyEscaped } from '../../kit/text/hidden-characters.ts';
import { shortIds } from '../../kit/text/short-ids.ts';
import { LIST_LIMIT_MAX } from '../../wire/alarm.ts';
import { ReveilleError, systemCodeOf, thrownText } from '../../wire/errors.ts';
import { INTENT_STATUSES, isIntentFinal } from '../../wire/executor.ts';
import { intentReceiptSchema } from '../../wire/intent-receipt.ts';
import type { IntentView } from '../../wire/intent-view.ts';
import { encodeJson, RawJson, sliceAt } from '../../wire/json.ts';
import { executorAdmin, executorClient } from '../access/executor.ts';
import { ignored, orUndefined } from '../access/unreachable.ts';
import { EXIT } from '../cli-process.ts';
import type { CliContext } from '../context.ts';
import { choiceFlag, fileFlag, jsonFlag, wholeNumberFlag } from '../flags/flags.ts';
import { UsageError } from '../flags/usage-error.ts';
import { renderGate } from '../screens/gate-screen.ts';
import { errorLines, renderIntent, renderIntents, statusWords } from '../screens/intent-screen.ts';
import { readerOf } from '../screens/reader.ts';
import type { Reader } from '../screens/render.ts';

/** The shortest accepted beginning of a UUID. */
const BEGINNING = /^[0-9a-f][0-9a-f-]{5,34}$/;
/** Intents listed when a beginning is ambiguous. */
const NAMED = 5;

/**
 * Searches the newest intents; an older one needs its whole id. Text that is not the beginning of a UUID is passed on
 * unchanged: the executor may use other ids.
 *
 * @throws ReveilleError `not_found` or `conflict` when no intent, or more than one, begins with it
 */
export async function findIntentId(client: ExecutorClient, given: string): Promise<string> {
  const beginning = given.toLowerCase();
  if (!BEGINNING.test(beginning)) return given;
  const ids = (await client.list({ limit: LIST_LIMIT_MAX })).map(({ value }) => value.intent_id);
  if (ids.includes(given)) return given;
  const found = ids.filter((id) => id.startsWith(beginning));
  const [only, ...others] = found;
  if (only === undefined) {
    const message = `none of your newest ${LIST_LIMIT_MAX} intents begins with ${beginning}; list yours with: reveille intent list`;
    throw new ReveilleError('not_found', message);
  }
  if (others.length === 0) return only;
  const named = [...shortIds(found).values()].slice(0, NAMED).join(', ');
  const more = found.length > NAMED ? ', and others' : '';
  throw new ReveilleError('conflict', `${beginning} matches ${named}${more}; give more of the id`);
}

export type SubmitFlags = { user?: string; jsonFile?: string; idempotencyKey?: string; conversation?: string };

function taskOf(prose: string | undefined, file: string | undefined): { prose: string } | { intent: RawJson } {
  if (file === undefined && prose !== undefined) return { prose };
  if (file !== undefined && prose === undefined)
    return { intent: jsonFlag(`--json-file ${file}`, fileFlag('--json-file', file), '') };
  const example = 'reveille intent submit "Transfer 10 EUR to Ada"';
  throw new UsageError(`give the intent as a sentence or with --json-file, not both; for example: ${example}`);
}

/** Early failures are reported at once: a missing model, or an invalid plan. */
const FIRST_LOOKS = 8;
const BETWEEN_LOOKS_MS = 125;

/** The state after a moment; `undefined` when it cannot be read. The intent is submitted in either case. */
async function firstLook({ clock }: CliContext, client: ExecutorClient, id: string): Promise<IntentView | undefined> {
  for (let looks = 1; ; looks++) {
    const value = (await client.view(id).catch(ignored))?.value;
    if (value?.status !== 'drafting' || value.queued_behind !== undefined || looks === FIRST_LOOKS) return value;
    await wait(clock, BETWEEN_LOOKS_MS);
  }
}

export async function intentSubmit(context: CliContext, flags: SubmitFlags, prose: string | undefined): Promise<void> {
  const client = executorClient(context, flags.user);
  const intentId = await client.submit({
    ...taskOf(prose, flags.jsonFile),
    // Created here, so that a request without a response can be repeated without a second execution.
    idempotency_key: flags.idempotencyKey ?? randomUUID(),
    ...(flags.conversation === undefined ? {} : { conversation_id: flags.conversation }),
    origin: 'person',
  });
  const view = await firstLook(context, client, intentId);
  const behind = view?.queued_behind;
  const waits = behind === undefined ? [] : [`  it waits for intent ${behind}`];
  const lines = [`Submitted ${intentId}`, ...waits, `  follow it with: reveille intent watch ${intentId}`];
  const submitted = { intent_id: intentId, ...(behind !== undefined && { queued_behind: behind }) };
  const error = view?.status === 'failed' ? view.error : undefined;
  if (error === undefined) return context.out.result(submitted, lines);
  context.process.exitCode = EXIT.failed;
  context.out.result({ ...submitted, error }, [
    `Submitted ${intentId}, but it failed`,
    ...errorLines(error, readerOf(context)),
  ]);
}

export type ListFlags = { user?: string; status?: string; limit?: string };

export async function intentList(context: CliContext, flags: ListFlags): Promise<void> {
  const status = choiceFlag('--status', flags.status, INTENT_STATUSES);
  const limit = wholeNumberFlag('--limit', flags.limit, 1, 500);
  const intents = await executorClient(context, flags.user).list({ status, limit });
  const views = intents.map(({ value }) => value);
  context.out.list(
    intents.map(({ text }) => text),
    () => renderIntents(views, readerOf(context)),
  );
}

export type ShowFlags = { user?: string; full?: boolean };

export async function intentShow(context: CliContext, flags: ShowFlags, given: string): Promise<void> {
  const client = executorClient(context, flags.user);
  const intentId = await findIntentId(client, given);
  const [view, waiting] = await Promise.all([client.view(intentId), client.gates(intentId)]);
  const gates = waiting.map(({ value }) => value);
  const data = new RawJson(`${view.text.text.slice(0, -1)},"gates":${encodeJson(gates)}}`);
  context.out.result(data, renderIntent(view, gates, readerOf(context), flags.full));
}

/** The executor's public key, from the executor and not from the receipt; a placeholder when it cannot be read. */
async function receiptKey(context: CliContext): Promise<string> {
  const roster = await orUndefined(() => executorAdmin(context).approvers())?.catch(ignored);
  return roster?.executor ?? '<the key that "reveille approver list" names where the executor runs>';
}

export type ReceiptFlags = { user?: string; output?: string };

export async function intentReceipt(context: CliContext, flags: ReceiptFlags, given: string): Promise<void> {
  const client = executorClient(context, flags.user);
  const intentId = await findIntentId(client, given);
  const receipt = await client.receipt(intentId);
  const count = intentReceiptSchema.safeParse(receipt.value()).data?.envelopes.length;
  if (count === undefined || sliceAt(receipt.text, ['envelopes']) === undefined)
    throw new ReveilleError('unavailable', 'the executor answered with an invalid receipt', {
      retryable: false,
    });
  const { output } = flags;
  // Without a file, the receipt is the output.
  if (output === undefined) return context.out.result(receipt);
  try {
    writeFileSync(output, `${receipt.text}\n`, { flag: 'wx' });
  } catch (cause) {
    const isThere = systemCodeOf(cause) === 'EEXIST';
    if (isThere) throw new ReveilleError('conflict', `--output ${output} exists; name a new file`, { cause });
    const why = thrownText(cause);
    throw new ReveilleError('unavailable', `--output ${output} cannot be written: ${why}`, { retryable: false, cause });
  }
  const lines = [
    `Wrote ${count} envelopes to ${output}`,
    '  verify it on any computer with:',
    `  reveille receipt verify ${shellWord(output)} --key ${await receiptKey(context)}`,
  ];
  context.out.result({ intent_id: intentId, file: output, envelopes: count }, lines);
}

export async function intentAct(
  context: CliContext,
  action: 'cancel' | 'reconcile',
  flags: { user?: string },
  given: string,
): Promise<void> {
  const client = executorClient(context, flags.user);
  const intentId = await findIntentId(client, given);
  const { value, text } = await client[action](intentId);
  const words = `Intent ${intentId} is ${statusWords(value, readerOf(context))}`;
  context.out.result(text, value.error ? [words, `  ${fullyEscaped(value.error.message)}`] : words);
}

/** Interval of queries while the executor does not answer. */
const AGAIN_MS = 2000;

export async function intentWatch(context: CliContext, flags: { user?: string }, given: string): Promise<void> {
  const { out, clock } = context;
  const client = executorClient(context, flags.user);
  const intentId = await findIntentId(client, given);
  const ended = new AbortController();
  // The first query reports its failure.
  let view = await client.view(intentId);
  // Of all intents: this one may begin when another one has ended.
  const changed = new ChangedIds({ events: client.events, clock, signal: ended.signal });
  // Changes from before are in none of them.
  void changed.opened.then(() => changed.add(undefined));
  let trace = '';
  let answers = true;
  const shown = new Map<string, string>();
  try {
    for (;;) {
      const { value, text } = view;
      const asks = value.status === 'awaiting_approval';
      const gates = asks ? await lookAgain(() => client.gates(intentId)) : [];
      const now = encodeJson([value.status, value.nodes, value.queued_behind]);
      if (now !== trace) {
        trace = now;
        if (out.json) out.result(text, []);
        else out.line(`${timeOf(value, readerOf(context))}  ${statusWords(value, readerOf(context))}`);
      }
      tellGates(context, intentId, gates ?? [], shown);
      if (isIntentFinal(value) || value.clarify !== undefined) break;
      await changed.next(answers && gates ? undefined : AGAIN_MS);
      const seen = await lookAgain(() => client.view(intentId));
      if ((seen !== undefined) !== answers)
        out.remark(
          seen ? 'the executor answers again' : 'the executor does not answer; asking again every two seconds',
        );
      answers = seen !== undefined;
      view = seen ?? view;
    }
  } finally {
    ended.abort();
  }
  if (!out.json) for (const line of ['', ...renderIntent(view, [], readerOf(context))]) out.line(line);
  if (view.value.status !== 'completed') context.process.exitCode = EXIT.failed;
}

/** A final state has its recorded time; other events are shown when they are seen. */
const timeOf = ({ ended_at }: IntentView, look: Reader) =>
  wallTime(ended_at === undefined ? look.now : Date.parse(ended_at), look);

/** Waits for an executor that restarts: `undefined` while it does not answer. */
async function lookAgain<T>(look: () => Promise<T>): Promise<T | undefined> {
  try {
    return await look();
  } catch (error) {
    if (error instanceof ReveilleError && error.retryable) return undefined;
    throw error;
  }
}

/**
 * Shows each question whole when it is asked, also one that replaces another.
 *
 * @param shown the digest of the last displayed question of each step
 */
function tellGates(
  context: CliContext,
  intentId: string,
  gates: readonly Reply<WaitingGate>[],
  shown: Map<string, string>,
): void {
  const { out } = context;
  const look = readerOf(context);
  for (const { value: gate } of gates) {
    const { node_id, displayed_sha256 } = gate;
    const before = shown.get(node_id);
    if (before === displayed_sha256) continue;
    shown.set(node_id, displayed_sha256);
    if (before !== undefined) {
      const step = fullyEscaped(node_id);
      out.line(look.paint('yellow', `The question above about step ${step} is no longer valid: it is asked again.`));
      out.line(look.paint('dim', `  it was ${before}; an answer to it is rejected`));
    }
    for (const line of ['', ...renderGate(intentId, gate, look), '']) out.line(line);
  }
}
