/**
 * The turn of an accepted wake. Each kind of target defines how its turn is read. A daemon is queried with the token of
 * the wake when its events announce a change. For agents without a daemon the router's own record is read. A receiver without later results is reported
 * as such.
 */
import type { Dispatcher } from 'undici';
import {
  type AcceptedTurn,
  createNeoClient,
  type DaemonAddress,
  type NeoClient,
  queryTurn,
} from '../agents/neo/client.ts';
import type { Clock } from '../kit/clock/clock.ts';
import { WakeSignal } from '../kit/clock/wake-signal.ts';
import { ChangeHub } from '../kit/http/changed-ids.ts';
import { reasonOf } from '../kit/http/exchange.ts';
import type { FollowStreamOptions } from '../kit/http/follow-stream.ts';
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
/** The number of consecutive failures after which a daemon counts as gone, and the pause after one. */
const FAILURES = 3;
const FAILED_MS = 500;
/** How often a turn of a daemon without a stream of events is read. */
const WITHOUT_EVENTS_MS = 5000;
/** A stream that stalls, and a daemon whose stream has no such events, must not hide an outcome. */
const SAFETY_MS = 30_000;
const NOT_FOLLOWED: TurnOutcome = { known: 'lost', why: 'it was not followed to its end' };

type Watch = {
  /** Calls back when the turn may have changed. @returns ends it */
  subscribe(changed: () => void): () => void;
  look(): Promise<TurnOutcome | undefined>;
  /** How long to wait for the next change. */
  pauseMs(): number;
};

/** Reads a turn whenever it may have changed, until there is an outcome. */
async function follow(clock: Clock, signal: AbortSignal, { subscribe, look, pauseMs }: Watch): Promise<TurnOutcome> {
  const news = new WakeSignal(clock);
  const leave = subscribe(() => news.notify());
  try {
    while (!signal.aborted) {
      news.reset();
      const outcome = await look();
      if (outcome) return outcome;
      await news.sleepUntil(clock.now() + pauseMs(), signal);
    }
    return NOT_FOLLOWED;
  } finally {
    leave();
  }
}

/** The events of daemons with followed turns: one stream for each daemon. */
export class DaemonNews {
  readonly #clock: Clock;
  readonly #hubs = new WeakMap<Dispatcher, Map<string, ChangeHub>>();

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** Calls back when a turn may have changed, while the daemon has a stream. */
  follow(
    { dispatcher, url, token }: DaemonAddress & { dispatcher: Dispatcher },
    turnId: string,
    changed: () => void,
  ): { isOpen(): boolean; end(): void } {
    const hubs = this.#hubs.get(dispatcher) ?? new Map<string, ChangeHub>();
    this.#hubs.set(dispatcher, hubs);
    const key = `${url} ${token}`;
    const hub = hubs.get(key) ?? this.#hubOf({ dispatcher, url, token });
    hubs.set(key, hub);
    const leave = hub.follow(({ isAll, ids }) => {
      if (isAll || ids.has(turnId)) changed();
    });
    return {
      isOpen: () => hub.isOpen,
      end() {
        leave();
        if (hub.listeners === 0) hubs.delete(key);
      },
    };
  }

  #hubOf({ dispatcher, url, token }: DaemonAddress & { dispatcher: Dispatcher }): ChangeHub {
    const client = createNeoClient({ url, token, name: 'the daemon', transport: dispatcher, clock: this.#clock });
    // Without gates: the router is no person who could answer them.
    return new ChangeHub({ events: (options) => turnEvents(client, options), clock: this.#clock });
  }
}

async function* turnEvents(client: NeoClient, options: FollowStreamOptions): AsyncGenerator<{ turn_id?: string }> {
  for await (const { type, data } of client.events({ ...options, types: ['turn'] })) {
    if (type === 'turn') yield { turn_id: data.turn_id };
    // Events may have been lost.
    else if (type === 'notice') yield {};
  }
}

export type DaemonTurn = DaemonAddress & {
  news: DaemonNews;
  dispatcher: Dispatcher;
  clock: Clock;
  /** The members of the daemon's answer about the turn; only Neo must send them. */
  accepted: AcceptedTurn | undefined;
};

/**
 * The turn of a daemon with `/chat`. A daemon without a route for turns (docs/reference/api.md, "Delivery to a daemon") only reports that it
 * accepted it.
 */
export function turnOfDaemon({ news, dispatcher, clock, url, token, accepted }: DaemonTurn): WokenTurn {
  if (!accepted) return { by: 'daemon', outcome: async () => ({ known: 'accepted', why: noResult(url) }) };
  return {
    by: 'daemon',
    outcome(signal) {
      let failures = 0;
      let isOpen = () => false;
      return follow(clock, signal, {
        subscribe(changed) {
          const following = news.follow({ dispatcher, url, token }, accepted.turn_id, changed);
          isOpen = following.isOpen;
          return following.end;
        },
        async look() {
          const asked = await queryTurn(dispatcher, { url, token, turn: accepted, clock, signal });
          if (asked.result !== 'answered') {
            failures++;
            return failures < FAILURES ? undefined : { known: 'lost', why: reasonOf(asked.error) };
          }
          failures = 0;
          return outcomeOf(asked.body.toString('utf8'), asked.status, url);
        },
        pauseMs: () => (failures > 0 ? FAILED_MS : isOpen() ? SAFETY_MS : WITHOUT_EVENTS_MS),
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
export function recordedTurn({ by, preset, read, onChange }: RecordedTurn, clock: Clock): WokenTurn {
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
      follow(clock, signal, {
        subscribe: onChange,
        async look() {
          try {
            return look();
          } catch (error) {
            if (error instanceof ReveilleError) return { known: 'lost', why: error.message };
            throw error;
          }
        },
        pauseMs: () => SAFETY_MS,
      }),
  };
}
