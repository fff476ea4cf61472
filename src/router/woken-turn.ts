/**
 * The turn of an accepted wake. Each kind of target defines how its turn is read. A daemon is queried with the token of
 * the wake. For agents without a daemon the router's own record is read. A receiver without later results is reported
 * as such.
 */
import type { Dispatcher } from 'undici';
import { type AcceptedTurn, type DaemonAddress, queryTurn } from '../agents/neo/client.ts';
import { type Clock, wait } from '../kit/clock/clock.ts';
import { reasonOf } from '../kit/http/exchange.ts';
import { openEnvelope } from '../wire/envelope.ts';
import { ReveilleError } from '../wire/errors.ts';
import type { MachineTurnStatus } from '../wire/machine-turn.ts';
import { type TurnStatus, type TurnView, turnViewSchema } from '../wire/turn.ts';
import type { RecordedTurn } from './agent-host.ts';

export type TurnOutcome =
  | ({ known: 'end'; status: TurnStatus | MachineTurnStatus } & Pick<TurnView, 'reply' | 'error' | 'model'>)
  /** It has not begun, or failed temporarily, and is retried at `until`, RFC 3339. */
  | { known: 'waits'; why: string; until?: string }
  /**
   * The receiver cannot be queried for a result. `why` is a sentence. A daemon may still send a turn report, which is in
   * the ledger then.
   */
  | { known: 'accepted'; why: string }
  /** It exists, but could not be read now. */
  | { known: 'lost'; why: string };

export type WokenTurn = {
  /**
   * What accepted the wake: a `daemon`, which persists between turns; a `program` that is started for this one turn; an
   * agent's own `server`; a `receiver` of a direct delivery.
   */
  readonly by: 'daemon' | 'program' | 'server' | 'receiver';
  /** The name of the preset; a daemon has none. */
  readonly preset?: string;
  /**
   * Follows the turn to its end, or to the last known state. Never rejects; `signal` ends the following and not the
   * turn.
   */
  outcome(signal: AbortSignal): Promise<TurnOutcome>;
};

const UNFINISHED: ReadonlySet<string> = new Set(['queued', 'running']);
const FIRST_PAUSE_MS = 10;
const LONGEST_PAUSE_MS = 500;
/** The number of consecutive failures after which a daemon counts as gone. */
const FAILURES = 3;
const NOT_FOLLOWED: TurnOutcome = { known: 'lost', why: 'it was not followed to its end' };

/** Polls until there is an outcome. */
async function follow(
  clock: Clock,
  signal: AbortSignal,
  look: () => Promise<TurnOutcome | undefined>,
): Promise<TurnOutcome> {
  for (let pauseMs = FIRST_PAUSE_MS; !signal.aborted; pauseMs = Math.min(pauseMs * 2, LONGEST_PAUSE_MS)) {
    const outcome = await look();
    if (outcome) return outcome;
    await wait(clock, pauseMs, signal);
  }
  return NOT_FOLLOWED;
}

export type DaemonTurn = DaemonAddress & {
  dispatcher: Dispatcher;
  clock: Clock;
  /** The members of the daemon's answer about the turn; only Neo must send them. */
  accepted: AcceptedTurn | undefined;
};

/**
 * The turn of a daemon with `/chat`. A daemon without a route for turns (docs/reference/api.md, "Delivery to a daemon") only reports that it
 * accepted it.
 */
export function turnOfDaemon({ dispatcher, clock, url, token, accepted }: DaemonTurn): WokenTurn {
  if (!accepted) return { by: 'daemon', outcome: async () => ({ known: 'accepted', why: noResult(url) }) };
  return {
    by: 'daemon',
    outcome(signal) {
      let failures = 0;
      return follow(clock, signal, async () => {
        const asked = await queryTurn(dispatcher, { url, token, turn: accepted, clock, signal });
        if (asked.result !== 'answered') {
          failures++;
          return failures < FAILURES ? undefined : { known: 'lost', why: reasonOf(asked.error) };
        }
        failures = 0;
        return outcomeOf(asked.body.toString('utf8'), asked.status, url);
      });
    },
  };
}

const noResult = (url: string) => `the daemon at ${url} accepted it; a turn report of it is shown when it arrives`;

/** A daemon's state of a turn; `undefined` while it continues. */
function outcomeOf(text: string, status: number, url: string): TurnOutcome | undefined {
  let data: unknown;
  try {
    data = openEnvelope(text, status, 'the daemon').value();
  } catch (error) {
    if (!(error instanceof ReveilleError)) throw error;
    // It may be restarting or overloaded.
    if (status >= 500 || status === 429) return undefined;
    return { known: 'accepted', why: noResult(url) };
  }
  const turn = turnViewSchema.safeParse(data);
  if (!turn.success) return { known: 'accepted', why: noResult(url) };
  const { status: end, reply, error, model, retry_at: until } = turn.data;
  if (until !== undefined) return { known: 'waits', why: error ?? 'the model did not answer', until };
  if (UNFINISHED.has(end)) return undefined;
  return { known: 'end', status: end, reply, error, model };
}

/** The turn of an agent without a daemon, from the record of its host. */
export function recordedTurn({ by, preset, read }: RecordedTurn, clock: Clock): WokenTurn {
  const look = (): TurnOutcome | undefined => {
    const turn = read();
    if (!turn) return { known: 'lost', why: 'the router has no record of it any more' };
    if (turn.status === 'queued' && turn.waits !== undefined) return { known: 'waits', why: turn.waits };
    if (UNFINISHED.has(turn.status)) return undefined;
    if (turn.status === 'accepted') return { known: 'accepted', why: `${preset} accepted it, and reports no result` };
    return { known: 'end', status: turn.status, reply: turn.reply, error: turn.error };
  };
  return {
    by,
    preset,
    outcome: (signal) =>
      follow(clock, signal, async () => {
        try {
          return look();
        } catch (error) {
          if (error instanceof ReveilleError) return { known: 'lost', why: error.message };
          throw error;
        }
      }),
  };
}
