/** Prompts the user at the terminal for an answer to a waiting question. */
import { createInterface } from 'node:readline/promises';
import type { WaitingGate } from '../../executor/client.ts';
import type { CliContext } from '../context.ts';
import { renderGate, renderGist, renderInline } from './gate-screen.ts';
import { lookOf } from './look.ts';
import type { Look } from './render.ts';

const PROMPT = 'Approve? yes, no, d for details: ';
/** An earlier answer was typed before the question could be read, for example in a conversation. */
const SEEN_MS = 700;
const ANSWERS: ReadonlyMap<string | undefined, 'yes' | 'no'> = new Map([
  ['y', 'yes'],
  ['yes', 'yes'],
  ['n', 'no'],
  ['no', 'no'],
]);
const MORE = '-- Enter for more, q to end --';

/**
 * One answer. `undefined` when the terminal changed its size, so that the screen needs a new layout, and when the
 * question is withdrawn.
 */
async function ask({ process }: CliContext, prompt: string, withdrawn?: AbortSignal): Promise<string | undefined> {
  const resized = new AbortController();
  const onResize = () => resized.abort();
  if (withdrawn?.aborted) return undefined;
  withdrawn?.addEventListener('abort', onResize);
  const reader = createInterface({ input: process.stdin, output: process.stdout });
  process.stdout.once('resize', onResize);
  try {
    // At the end of the input without an answer, nothing is approved.
    const closed = new Promise<string>((resolve) => reader.once('close', () => resolve('')));
    const answer = await Promise.race([reader.question(prompt, { signal: resized.signal }), closed]);
    return answer.trim().toLowerCase();
  } catch (error) {
    if (resized.signal.aborted) return undefined;
    throw error;
  } finally {
    process.stdout.removeListener('resize', onResize);
    withdrawn?.removeEventListener('abort', onResize);
    reader.close();
  }
}

/** Shows everything, one screen at a time. */
async function page(context: CliContext, lines: readonly string[], withdrawn?: AbortSignal): Promise<void> {
  const { out } = context;
  for (let at = 0; at < lines.length; ) {
    const size = Math.max(1, out.rows - 2);
    for (const line of lines.slice(at, at + size)) out.line(line);
    at += size;
    if (at < lines.length && (await ask(context, MORE, withdrawn)) === 'q') return;
    if (withdrawn?.aborted) return;
  }
}

/** The end of the pages: read to the end, or left; `again` when they need a new layout. */
type Read = 'read' | 'again' | 'no' | 'neither';

/**
 * Shows the effect of the call. If it is longer than the terminal, no approval is accepted before its last page.
 *
 * @param gist the text that must be shown whole
 */
async function showGist(context: CliContext, gist: readonly string[], withdrawn?: AbortSignal): Promise<Read> {
  const { out } = context;
  const size = Math.max(1, out.rows - 2);
  const pages = Math.ceil(gist.length / size);
  for (let page = 1; page <= pages; page++) {
    for (const line of gist.slice((page - 1) * size, page * size)) out.line(line);
    if (page === pages) break;
    const answer = await ask(context, `-- ${page} of ${pages}, Enter for more, q to end --`, withdrawn);
    if (answer === undefined) return 'again';
    if (answer === 'q') return 'neither';
    if (ANSWERS.get(answer) === 'no') return 'no';
  }
  return 'read';
}

/** The whole question, and the effect of the call again, right above the prompt. */
const whole = (intentId: string, gate: WaitingGate, look: Look) => [
  ...renderGate(intentId, gate, look),
  '',
  ...renderGist(gate, look),
];

/**
 * Shows a question and prompts until the answer is yes, no or something else. The effect of the call is right above the
 * prompt, or on the same screen.
 *
 * @param inline inside a conversation: the effect comes first, and an answer that was typed before it could be read does
 *   not count. `withdrawn` aborts when the question no longer waits.
 * @returns `neither` for any other answer and at the end of the input: the question still waits
 */
export async function askPerson(
  context: CliContext,
  intentId: string,
  gate: WaitingGate,
  inline?: { readonly withdrawn: AbortSignal | undefined },
): Promise<'yes' | 'no' | 'neither'> {
  const { out, clock } = context;
  const withdrawn = inline?.withdrawn;
  const layOut = async (look: Look): Promise<Read> => {
    const lines = inline ? renderInline(intentId, gate, look, out.rows) : whole(intentId, gate, look);
    const gist = renderGist(gate, look);
    // A question that fits on one screen is shown once.
    const before =
      lines.length >= gist.length && lines.at(-gist.length) === gist[0] ? lines.slice(0, -gist.length) : [];
    for (const line of before.length > 0 ? before : lines) out.line(line);
    return before.length > 0 ? await showGist(context, gist, withdrawn) : 'read';
  };
  for (let isLaidOut = false; ; ) {
    const look = lookOf(context);
    const read = isLaidOut ? 'read' : await layOut(look);
    if (withdrawn?.aborted) return 'neither';
    if (read === 'again') continue;
    if (read !== 'read') return read;
    const shownAt = clock.monotonic();
    const answer = await ask(context, PROMPT, withdrawn);
    if (withdrawn?.aborted) return 'neither';
    const said = ANSWERS.get(answer);
    const isTooSoon = said !== undefined && inline !== undefined && clock.monotonic() - shownAt < SEEN_MS;
    // The effect is still right above the typed answer.
    isLaidOut = isTooSoon;
    if (isTooSoon) out.line('That was typed before the question could be read. It is not an answer.');
    else if (said !== undefined) return said;
    else if (answer === 'd' || answer === 'details')
      await page(context, renderGate(intentId, gate, look, true), withdrawn);
    else if (answer !== undefined) return 'neither';
  }
}
