/** A fire in `reveille up`: the data of chronosd and the router, and the turn that it started. */
import type { FireReport } from '../../chronos/dispatch/dispatcher.ts';
import type { WakeNotice } from '../../router/wake.ts';
import type { TurnOutcome, WokenTurn } from '../../router/woken-turn.ts';
import { formatInstant } from '../../wire/rfc3339.ts';

/** A fire from its due time to the reply, as far as it got. `taken`: how the target accepted the wake; `turn`: its outcome. */
export type FollowedFire = {
  fire: FireReport;
  wake: WakeNotice | undefined;
  taken: Pick<WokenTurn, 'by' | 'preset'> | undefined;
  turn: TurnOutcome | undefined;
};

/** The line of `up --json` for a fire (docs/reference/api.md). */
export function fireRecord({ fire, wake, turn }: FollowedFire) {
  const { attempt } = fire;
  const end = turn?.known === 'end' ? turn : undefined;
  return {
    alarm_id: fire.alarm.id,
    fire_id: attempt.fireId,
    scheduled_for: formatInstant(attempt.scheduledFor),
    delivered_at: formatInstant(attempt.finishedAt),
    lateness_ms: attempt.startedAt - attempt.scheduledFor,
    machine_start_ms: wake?.machineStartMs ?? null,
    conversation_id: wake?.conversation_id ?? null,
    turn_id: wake?.turn_id ?? null,
    reply: end?.reply ?? null,
    model: end?.model ?? null,
  };
}

/** Joins the data of chronosd and the router about a fire, then waits for its turn. */
export class FireWatch {
  readonly #wakes = new Map<string, { wake: WakeNotice; turn: WokenTurn | undefined }>();
  readonly #onRang: (ring: FollowedFire) => void;
  readonly #onRing: (ring: FollowedFire) => void;
  readonly #stopped = new AbortController();
  /** Turns that a daemon executes. */
  #ofDaemons = 0;

  /**
   * @param onRang called when a wake was accepted and its turn is followed
   * @param onRing called when nothing more is expected for a fire
   */
  constructor(onRang: (ring: FollowedFire) => void, onRing: (ring: FollowedFire) => void) {
    this.#onRang = onRang;
    this.#onRing = onRing;
  }

  wake(wake: WakeNotice, turn: WokenTurn | undefined): void {
    this.#wakes.set(wake.fire_id, { wake, turn });
  }

  fire(fire: FireReport): void {
    const { fireId } = fire.attempt;
    const woken = this.#wakes.get(fireId);
    this.#wakes.delete(fireId);
    void this.#follow(fire, woken);
  }

  /** The number of followed turns of daemons. */
  get ofDaemons(): number {
    return this.#ofDaemons;
  }

  stop(): void {
    this.#stopped.abort();
  }

  async #follow(fire: FireReport, woken: { wake: WakeNotice; turn: WokenTurn | undefined } | undefined): Promise<void> {
    const { signal } = this.#stopped;
    const taken = fire.attempt.outcome === 'delivered' ? woken?.turn : undefined;
    const isOfDaemon = taken?.by === 'daemon';
    if (isOfDaemon) this.#ofDaemons++;
    if (taken) this.#onRang({ fire, wake: woken?.wake, taken, turn: undefined });
    const turn = await taken?.outcome(signal);
    if (isOfDaemon) this.#ofDaemons--;
    if (!signal.aborted) this.#onRing({ fire, wake: woken?.wake, taken, turn });
  }
}
