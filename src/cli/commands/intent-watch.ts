/** `reveille intent watch`: follows an intent until it is final. */

import { followIntent, type Reply, type WaitingGate } from '../../executor/client.ts';
import { wait } from '../../kit/clock/clock.ts';
import { wallTime } from '../../kit/clock/local-time.ts';
import { fullyEscaped } from '../../kit/text/hidden-characters.ts';
import { ReveilleError } from '../../wire/errors.ts';
import { isIntentFinal } from '../../wire/executor.ts';
import type { IntentView } from '../../wire/intent-view.ts';
import { encodeJson } from '../../wire/json.ts';
import { executorClient } from '../access/executor.ts';
import { EXIT } from '../cli-process.ts';
import type { CliContext } from '../context.ts';
import { renderGate } from '../screens/gate-screen.ts';
import { renderIntent, statusWords } from '../screens/intent-screen.ts';
import { readerOf } from '../screens/reader.ts';
import type { Reader } from '../screens/render.ts';
import { findIntentId } from './intent.ts';

/** Interval of queries without events. */
const LOOK_MS = 2000;

export async function intentWatch(context: CliContext, flags: { user?: string }, given: string): Promise<void> {
  const { out, clock } = context;
  const client = executorClient(context, flags.user);
  const intentId = await findIntentId(client, given);
  const ended = new AbortController();
  let hint = new AbortController();
  // The first query reports its failure.
  let view = await client.view(intentId);
  followIntent((signal) => client.openEvents(intentId, signal), {
    clock,
    signal: ended.signal,
    onHint: () => hint.abort(),
  });
  let trace = '';
  let answers = true;
  const shown = new Map<string, string>();
  try {
    for (;;) {
      const { value, text } = view;
      const asks = value.status === 'awaiting_approval';
      const gates = (asks && (await lookAgain(() => client.gates(intentId)))) || [];
      const now = encodeJson([value.status, value.nodes, value.queued_behind]);
      if (now !== trace) {
        trace = now;
        if (out.json) out.result(text, []);
        else out.line(`${timeOf(value, readerOf(context))}  ${statusWords(value, readerOf(context))}`);
      }
      tellGates(context, intentId, gates, shown);
      if (isIntentFinal(value) || value.clarify !== undefined) break;
      await wait(clock, LOOK_MS, hint.signal);
      if (hint.signal.aborted) hint = new AbortController();
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
