/** Waiting for a turn that a daemon has accepted. */
import { type Clock, wait } from '../clock/clock.ts';
import { openEnvelope } from '../wire/envelope.ts';
import { type TurnView, turnViewSchema } from '../wire/turn.ts';

const UNFINISHED: ReadonlySet<string> = new Set(['queued', 'running']);
const FIRST_PAUSE_MS = 10;
const LONGEST_PAUSE_MS = 500;

export type TurnToWatch = { daemonUrl: string; token: string; conversationId: string; turnId: string };

/**
 * Asks the daemon until the turn has finished.
 *
 * @param signal gives up; the turn goes on
 * @returns the finished turn, or `undefined` when the daemon went away
 * @throws ReveilleError when the daemon does not know the turn
 */
export async function finishedTurn(
  turn: TurnToWatch,
  clock: Clock,
  signal: AbortSignal,
): Promise<TurnView | undefined> {
  const url = `${turn.daemonUrl}/conversations/${turn.conversationId}/turns/${turn.turnId}`;
  for (let pauseMs = FIRST_PAUSE_MS; !signal.aborted; pauseMs = Math.min(pauseMs * 2, LONGEST_PAUSE_MS)) {
    let text: string;
    let status: number;
    try {
      const answer = await fetch(url, {
        headers: { authorization: `Bearer ${turn.token}` },
        redirect: 'error',
        signal,
      });
      status = answer.status;
      text = await answer.text();
    } catch {
      return undefined;
    }
    const found = turnViewSchema.parse(openEnvelope(text, status, 'the daemon').value());
    if (!UNFINISHED.has(found.status)) return found;
    await wait(clock, pauseMs, signal);
  }
  return undefined;
}
