/** Follows turns by the fire ledger: news of some alarms that has not been reported. */
import { type ChronosClient, eachAlarm, firesSince, isTurnOpen, LONGEST_TURN_MS } from '../../chronos/client.ts';
import type { Clock } from '../../kit/clock/clock.ts';
import { ALL_CHANGED, type Changes } from '../../kit/http/changed-ids.ts';
import type { AlarmView, FireView } from '../../wire/alarm.ts';
import { entriesOf, inOrder, keyOf, type LogEntry, type NamedAlarm } from './entries.ts';

/** Limit for turns whose machine sends no turn reports. */
export const NO_WORD_MS = 10 * 60_000;
/** Alarms per query. */
const AT_ONCE = 8;
/** Attempts per followed alarm. */
const LATEST_FIRES = 20;

export type OpenTurnsOptions = {
  client: ChronosClient;
  clock: Clock;
  /** Earlier events are not reported, epoch ms. */
  since: number;
  signal: AbortSignal;
};

export class OpenTurns {
  readonly #options: OpenTurnsOptions;
  readonly #watched = new Map<string, NamedAlarm>();
  readonly #reported = new Set<string>();

  constructor(options: OpenTurnsOptions) {
    this.#options = options;
  }

  /** An alarm has fired: its turn is reported from the next query on. */
  watch(alarm: NamedAlarm): void {
    this.#watched.set(alarm.id, alarm);
  }

  /** Number of followed alarms. */
  get size(): number {
    return this.#watched.size;
  }

  /**
   * The history of all alarms of the owner, and the alarms to follow.
   *
   * @throws ReveilleError as the client
   */
  async survey(): Promise<LogEntry[]> {
    const { client, since, signal } = this.#options;
    for await (const alarm of eachAlarm(client, {}, { signal })) if (mayTell(alarm, since)) this.watch(alarm);
    return this.look(ALL_CHANGED, true);
  }

  /**
   * News of followed alarms that have changed. Alarms without further news are dropped.
   *
   * @param changes of the stream of events
   * @param whole reads the ledger back to `since` instead of its latest entries
   * @throws ReveilleError as the client; the next query reports what a failed one missed
   */
  async look({ isAll, ids }: Changes, whole = false): Promise<LogEntry[]> {
    const alarms = [...this.#watched.values()].filter(({ id }) => isAll || ids.has(id));
    const entries: LogEntry[] = [];
    for (let at = 0; at < alarms.length; at += AT_ONCE) {
      const some = alarms.slice(at, at + AT_ONCE);
      const ledgers = await Promise.all(some.map((alarm) => this.#ledger(alarm.id, whole)));
      for (const [n, fires] of ledgers.entries()) entries.push(...this.#newsOf(some[n]!, fires));
    }
    return entries.sort(inOrder);
  }

  #newsOf(alarm: NamedAlarm, fires: readonly FireView[]): LogEntry[] {
    const { clock, since } = this.#options;
    const now = clock.now();
    if (!fires.some((fire) => isTurnOpen(fire, now, NO_WORD_MS))) this.#watched.delete(alarm.id);
    return entriesOf(alarm, fires).filter((entry) => {
      if (Date.parse(entry.at) < since) return false;
      const key = keyOf(entry);
      return !this.#reported.has(key) && this.#reported.add(key);
    });
  }

  async #ledger(id: string, whole: boolean): Promise<FireView[]> {
    const { client, since, signal } = this.#options;
    if (whole) return firesSince(client, id, { from: since - LONGEST_TURN_MS }, { signal });
    const { fires } = await client.listFires(id, { limit: LATEST_FIRES }, { signal });
    return fires;
  }
}

/** Whether an alarm may have news since then. Failures and skipped fires have no time in the list. */
function mayTell({ last_fired_at: last, last_error, failure_count, check }: AlarmView, since: number): boolean {
  if (last_error !== undefined || failure_count > 0 || check !== undefined) return true;
  return last !== undefined && Date.parse(last) >= since - LONGEST_TURN_MS;
}
