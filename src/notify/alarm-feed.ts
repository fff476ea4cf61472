/** Finds news about one owner's alarms by polling chronosd. Its memory can be lost without losing news. */
import { type ChronosClient, eachAlarm, firesSince, isTurnOpen, LONGEST_TURN_MS } from '../chronos/client.ts';
import type { Clock } from '../kit/clock/clock.ts';
import { type AlarmView, type FireView, LIST_LIMIT_MAX } from '../wire/alarm.ts';
import { alarmNews, type News } from './news.ts';

/** The news, and a callback for when they are on disk. */
export type Look = { readonly news: readonly News[]; readonly settle: () => void };

export type AlarmFeedOptions = {
  readonly client: Pick<ChronosClient, 'listAlarms' | 'listFires'>;
  readonly clock: Clock;
  /** Earlier events are not news, epoch milliseconds. */
  readonly begunAt: number;
  /** An earlier process found everything up to here. */
  readonly since: number;
};

/** Alarms per query. */
const AT_ONCE = 4;

/** For a known alarm, the latest attempts are usually enough. */
const LATEST = 20;
/** An attempt is in the ledger after its end, by chronosd's clock, which may differ from ours by this. */
const CLOCKS_DIFFER_MS = 3_600_000;
/** A long turn is polled less often: at most this share of its time passes before its end is found. */
const SHARE_OF_TURN = 1 / 60;

/** The known state of an alarm. */
type Known = {
  /** Its fields at that time. */
  readonly trace: string;
  /** Attempts from here on have to be read again, because their turns may continue. */
  readonly from: number;
  /** When unfinished turns are read again, on the monotonic clock; `undefined` without any. */
  readonly again: number | undefined;
};

/** The fields of an alarm that change when an attempt ends. */
function traceOf(alarm: AlarmView): string {
  const { status, fire_count, failure_count, last_fired_at, last_error } = alarm;
  return JSON.stringify([status, fire_count, failure_count, last_fired_at, last_error]);
}

export class AlarmFeed {
  readonly #options: AlarmFeedOptions;
  readonly #known = new Map<string, Known>();

  constructor(options: AlarmFeedOptions) {
    this.#options = options;
  }

  /**
   * Possible news since the last query. It may repeat known news; none is omitted.
   *
   * @throws ReveilleError as the client; the next query finds what a failed one missed
   */
  async look(signal: AbortSignal): Promise<Look> {
    const began = this.#options.clock.now();
    const alarms = await this.#changed(signal);
    const found: { alarm: AlarmView; fires: FireView[] }[] = [];
    for (let at = 0; at < alarms.length; at += AT_ONCE) {
      const some = alarms.slice(at, at + AT_ONCE);
      found.push(
        ...(await Promise.all(some.map(async (alarm) => ({ alarm, fires: await this.#ledger(alarm.id, signal) })))),
      );
    }
    const { begunAt } = this.#options;
    const news = found
      .flatMap(({ alarm, fires }) => alarmNews(alarm, fires))
      .filter(({ at }) => at >= begunAt)
      .sort((one, other) => one.at - other.at);
    const settle = () => {
      for (const { alarm, fires } of found) this.#known.set(alarm.id, this.#knownOf(alarm, fires, began));
    };
    return { news, settle };
  }

  async #changed(signal: AbortSignal): Promise<AlarmView[]> {
    const { client } = this.#options;
    const changed: AlarmView[] = [];
    for await (const alarm of eachAlarm(client, {}, { signal })) if (this.#mayTell(alarm)) changed.push(alarm);
    return changed;
  }

  #mayTell(alarm: AlarmView): boolean {
    const known = this.#known.get(alarm.id);
    const { clock, since } = this.#options;
    if (known !== undefined) return known.trace !== traceOf(alarm) || (known.again ?? Infinity) <= clock.monotonic();
    const { last_fired_at: last, last_error, failure_count } = alarm;
    const isOld = last === undefined || Date.parse(last) < since - LONGEST_TURN_MS;
    if (!isOld || last_error !== undefined || failure_count > 0) return true;
    this.#known.set(alarm.id, this.#knownOf(alarm, [], clock.now()));
    return false;
  }

  #knownOf(alarm: AlarmView, fires: readonly FireView[], readAt: number): Known {
    const { clock } = this.#options;
    const open = fires.filter((fire) => isTurnOpen(fire, readAt));
    const from = Math.min(readAt, ...open.map(({ started_at }) => Date.parse(started_at))) - CLOCKS_DIFFER_MS;
    const latest = Math.max(...open.map(({ finished_at }) => Date.parse(finished_at)));
    const age = Math.max(0, readAt - latest);
    const again = open.length === 0 ? undefined : clock.monotonic() + age * SHARE_OF_TURN;
    return { trace: traceOf(alarm), from, again };
  }

  /** Attempts back to the first turn that may have unreported news, latest first. */
  async #ledger(id: string, signal: AbortSignal): Promise<FireView[]> {
    const { client, since } = this.#options;
    const known = this.#known.get(id);
    const [from, limit] = known ? [known.from, LATEST] : [since - LONGEST_TURN_MS, LIST_LIMIT_MAX];
    const fires = await firesSince(client, id, { from, limit }, { signal });
    // Older ones were reported, or are too old to report.
    return fires.filter(({ finished_at }) => Date.parse(finished_at) >= from);
  }
}
