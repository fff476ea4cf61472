/** The history of a fire: its progress, derived from its attempts and its machine's turn reports. Pure. */
import type { FireStage, FireView } from '../../wire/alarm.ts';
import { formatInstant } from '../../wire/rfc3339.ts';
import type { TurnReport } from '../../wire/turn-report.ts';
import { readUsage } from '../../wire/usage.ts';
import type { Attempt } from './alarm.ts';
import type { LastTurn } from './lifecycle.ts';
import { viewAttempt } from './view.ts';

/** A stored turn report of a fire. */
export type StoredTurnReport = TurnReport & {
  owner: string;
  alarmId: string;
  fireId: string;
  /** When its first report arrived. */
  recordedAt: number;
};

/** To find an attempt at one fire, at most this many attempts at its alarm are read, from the fire's due time on. */
export const ATTEMPTS_READ = 1000;

const waitsOf = ({ at, retryAt, error }: StoredTurnReport) => ({
  at: formatInstant(at),
  retry_at: formatInstant(retryAt ?? at),
  ...(error === null ? {} : { error }),
});

/** The progress of the fires that some attempts belong to. */
class FireHistories {
  readonly #reports = new Map<string, Partial<Record<StoredTurnReport['stage'], StoredTurnReport>>>();
  readonly #accepted = new Set<string>();
  readonly #ready = new Set<string>();

  constructor(attempts: readonly Attempt[], reports: readonly StoredTurnReport[]) {
    for (const { fireId, outcome, machineReadyMs } of attempts) {
      if (outcome === 'delivered') this.#accepted.add(fireId);
      if (machineReadyMs !== null) this.#ready.add(fireId);
    }
    for (const report of reports)
      this.#reports.set(report.fireId, { ...this.#reports.get(report.fireId), [report.stage]: report });
  }

  reached(fireId: string): FireStage | undefined {
    const { turn_started, turn_waits, turn_finished } = this.#reports.get(fireId) ?? {};
    if (turn_finished) return 'turn_finished';
    if (turn_started ?? turn_waits) return 'turn_started';
    if (this.#accepted.has(fireId)) return 'accepted';
    return this.#ready.has(fireId) ? 'machine_ready' : undefined;
  }

  turn(fireId: string): FireView['turn'] {
    const { turn_started: started, turn_waits: waits, turn_finished: finished } = this.#reports.get(fireId) ?? {};
    const latest = finished ?? waits ?? started;
    if (!latest) return undefined;
    const turnId = latest.turnId ?? started?.turnId;
    const conversationId = latest.conversationId ?? started?.conversationId;
    const usage = readUsage(finished?.usage);
    return {
      ...(turnId ? { turn_id: turnId } : {}),
      ...(conversationId ? { conversation_id: conversationId } : {}),
      ...(started ? { started_at: formatInstant(started.at) } : {}),
      ...(finished ? { finished_at: formatInstant(finished.at) } : {}),
      ...(!finished || finished.outcome === 'unknown' ? {} : { ok: finished.outcome === 'ok' }),
      ...(finished?.error ? { error: finished.error } : {}),
      ...(waits ? { waits: waitsOf(waits) } : {}),
      ...(finished?.reply ? { reply: finished.reply } : {}),
      ...(usage ? { usage } : {}),
    };
  }
}

/**
 * The status of the turn of the alarm's latest delivered fire.
 *
 * @param attempts attempts at the alarm, latest first
 * @param reports reports of the fires of these attempts
 */
export function lastTurnOf(attempts: readonly Attempt[], reports: readonly StoredTurnReport[]): LastTurn {
  const latest = attempts.find(({ outcome }) => outcome === 'delivered');
  if (!latest) return 'none';
  const turn = new FireHistories(attempts, reports).turn(latest.fireId);
  if (turn?.finished_at !== undefined) return turn.ok === true ? 'ok' : 'failed';
  return turn?.waits === undefined ? 'under_way' : 'waits';
}

/**
 * A page of the ledger.
 *
 * @param reports reports of the fires of these attempts
 */
export function viewFires(attempts: readonly Attempt[], reports: readonly StoredTurnReport[]): FireView[] {
  const histories = new FireHistories(attempts, reports);
  return attempts.map((attempt) => {
    const reached = histories.reached(attempt.fireId);
    const turn = histories.turn(attempt.fireId);
    return { ...viewAttempt(attempt), ...(reached ? { reached } : {}), ...(turn ? { turn } : {}) };
  });
}
