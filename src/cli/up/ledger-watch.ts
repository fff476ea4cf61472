/** Reads the fires of all alarms of one owner, or of one of them, when they change. */
import { type ChronosClient, eachAlarm } from '../../chronos/client.ts';
import { ALL_CHANGED, type Changes } from '../../kit/http/changed-ids.ts';
import { type AlarmView, type FireView, LIST_LIMIT_DEFAULT } from '../../wire/alarm.ts';
import { ReveilleError } from '../../wire/errors.ts';

/** An ended attempt, and the current alarm. */
export type RingEvent = { alarm: AlarmView; fire: FireView };

/** The fields of an alarm that change when an attempt ends. */
function traceOf(alarm: AlarmView): string {
  const { status, fire_count, failure_count, last_fired_at, last_error, next_fire_at, in_flight } = alarm;
  return JSON.stringify([status, fire_count, failure_count, last_fired_at, last_error, next_fire_at, in_flight]);
}

function hasHistory(alarm: AlarmView): boolean {
  const hasFired = alarm.fire_count > 0 || alarm.failure_count > 0 || alarm.last_error !== undefined;
  // A skipped fire of a series is in none of these.
  return hasFired || alarm.check !== undefined;
}

const isOver = ({ status }: AlarmView) => status !== 'active' && status !== 'paused';
const attemptOf = (fire: FireView) => `${fire.fire_id}#${fire.attempt}`;

export class LedgerWatch {
  readonly #client: ChronosClient;
  readonly #since: number;
  readonly #only: string | undefined;
  readonly #signal: AbortSignal;
  /** The alarms of the last query, with those fields. */
  #known: Map<string, { alarm: AlarmView; trace: string }> | undefined;
  /** Returned attempts; the set grows with every fire. */
  readonly #reported = new Set<string>();

  /**
   * @param options.since attempts that ended before this instant of chronosd's clock, epoch ms, are not returned
   * @param options.only the id of one alarm to follow; without it all of the owner's
   * @param options.signal aborts a query
   */
  constructor(client: ChronosClient, options: { since: number; only?: string | undefined; signal: AbortSignal }) {
    this.#client = client;
    this.#since = options.since;
    this.#only = options.only;
    this.#signal = options.signal;
  }

  /** The alarms of the last query. */
  get alarms(): AlarmView[] {
    return [...(this.#known?.values() ?? [])].map(({ alarm }) => alarm);
  }

  /**
   * Queries changed alarms again.
   *
   * @param changes of the stream of events
   * @returns attempts that have ended since the query before, in the order of their ends
   * @throws ReveilleError as the client; the next query returns what a failed one missed
   */
  async look(changes: Changes = ALL_CHANGED): Promise<RingEvent[]> {
    const before = this.#known;
    const isAll = changes.isAll || before === undefined;
    const alarms = isAll ? await this.#present() : await this.#named(changes.ids);
    const events: RingEvent[] = [];
    for (const alarm of alarms.values()) {
      const seen = before?.get(alarm.id);
      const changed = seen ? seen.trace !== traceOf(alarm) : before !== undefined && hasHistory(alarm);
      if (changed || !isAll || this.#only !== undefined) events.push(...(await this.#newAttempts(alarm)));
    }
    // After the query: a failed one leaves no gap.
    this.#known = isAll ? new Map() : before;
    for (const [id, alarm] of alarms) this.#known.set(id, { alarm, trace: traceOf(alarm) });
    for (const { fire } of events) this.#reported.add(attemptOf(fire));
    return events.sort((one, other) => Date.parse(one.fire.finished_at) - Date.parse(other.fire.finished_at));
  }

  /** Active alarms, those of the last query, and the newest, which may have fired and ended between two queries. */
  async #present(): Promise<Map<string, AlarmView>> {
    const alarms = new Map<string, AlarmView>();
    const add = (found: readonly AlarmView[]) => {
      for (const alarm of found) alarms.set(alarm.id, alarm);
    };
    if (this.#only !== undefined) {
      add([await this.#client.getAlarm(this.#only, { signal: this.#signal })]);
      return alarms;
    }
    add((await this.#client.listAlarms({ limit: LIST_LIMIT_DEFAULT }, { signal: this.#signal })).alarms);
    for (const status of ['active', 'paused'] as const) {
      add(await Array.fromAsync(eachAlarm(this.#client, { status }, { signal: this.#signal })));
    }
    const left = [...(this.#known?.values() ?? [])].filter(({ alarm }) => !isOver(alarm) && !alarms.has(alarm.id));
    for (const { alarm } of left) add(await this.#again(alarm.id));
    return alarms;
  }

  async #named(ids: ReadonlySet<string>): Promise<Map<string, AlarmView>> {
    const alarms = new Map<string, AlarmView>();
    for (const id of ids)
      if (this.#only === undefined || this.#only === id)
        for (const alarm of await this.#again(id)) alarms.set(id, alarm);
    return alarms;
  }

  async #again(id: string): Promise<AlarmView[]> {
    try {
      return [await this.#client.getAlarm(id, { signal: this.#signal })];
    } catch (error) {
      if (error instanceof ReveilleError && error.code === 'not_found') return [];
      throw error;
    }
  }

  /** The attempts at an alarm that were not returned yet; the ledger lists the latest first. */
  async #newAttempts(alarm: AlarmView): Promise<RingEvent[]> {
    const events: RingEvent[] = [];
    let cursor: string | undefined;
    do {
      const query = cursor === undefined ? {} : { cursor };
      const page = await this.#client.listFires(alarm.id, query, { signal: this.#signal });
      const fresh = page.fires.filter(
        (fire) => Date.parse(fire.finished_at) >= this.#since && !this.#reported.has(attemptOf(fire)),
      );
      events.push(...fresh.map((fire) => ({ alarm, fire })));
      cursor = fresh.length > 0 ? page.next_cursor : undefined;
    } while (cursor !== undefined);
    return events;
  }
}
