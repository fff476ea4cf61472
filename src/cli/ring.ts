/** A ring as `reveille up` follows it: what chronosd and the router each know about it, and the turn it caused. */
import type { FireReport } from '../chronos/dispatch/dispatcher.ts';
import type { Clock } from '../clock/clock.ts';
import type { WakeNotice } from '../router/wake.ts';
import { formatInstant } from '../wire/rfc3339.ts';
import type { TurnView } from '../wire/turn.ts';
import { finishedTurn } from './turn-watch.ts';

/** A ring from due to reply, as far as it got. */
export type Ring = { fire: FireReport; wake: WakeNotice | undefined; turn: TurnView | undefined };

/** The line that `up --json` prints for a ring (contracts §10). */
export function ringRecord({ fire, wake, turn }: Ring) {
  return {
    alarm_id: fire.alarm.id,
    fire_id: fire.occurrence.fireId,
    scheduled_for: formatInstant(fire.occurrence.scheduledFor),
    delivered_at: formatInstant(fire.finishedAt),
    lateness_ms: fire.startedAt - fire.occurrence.scheduledFor,
    machine_start_ms: wake?.machineStartMs ?? null,
    conversation_id: wake?.conversation_id ?? null,
    turn_id: wake?.turn_id ?? null,
    reply: turn?.reply ?? null,
    model: turn?.model ?? null,
  };
}

/** Puts together what chronosd and the router each know about a ring, then waits for the turn it caused. */
export class RingWatch {
  readonly #wakes = new Map<string, WakeNotice>();
  readonly #clock: Clock;
  readonly #onRing: (ring: Ring) => void;
  readonly #stopped = new AbortController();
  neoToken = '';

  constructor(clock: Clock, onRing: (ring: Ring) => void) {
    this.#clock = clock;
    this.#onRing = onRing;
  }

  wake(report: WakeNotice): void {
    this.#wakes.set(report.fire_id, report);
  }

  fire(fire: FireReport): void {
    const { fireId } = fire.occurrence;
    const wake = this.#wakes.get(fireId);
    this.#wakes.delete(fireId);
    void this.#follow(fire, wake);
  }

  stop(): void {
    this.#stopped.abort();
  }

  async #follow(fire: FireReport, wake: WakeNotice | undefined): Promise<void> {
    const { daemon_url: daemonUrl, conversation_id: conversationId, turn_id: turnId } = wake ?? {};
    const watchable = fire.result.outcome === 'delivered' && daemonUrl && conversationId && turnId;
    const turn = watchable
      ? await finishedTurn(
          { daemonUrl, token: this.neoToken, conversationId, turnId },
          this.#clock,
          this.#stopped.signal,
        ).catch(() => undefined)
      : undefined;
    if (!this.#stopped.signal.aborted) this.#onRing({ fire, wake, turn });
  }
}
