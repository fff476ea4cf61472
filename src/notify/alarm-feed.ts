/** Finds news about one owner's alarms. Its memory can be lost without losing news. */
import { type ChronosClient, eachAlarm, firesSince, isTurnOpen, LONGEST_TURN_MS } from '../chronos/client.ts';
import type { Clock } from '../kit/clock/clock.ts';
import type { Changes } from '../kit/http/changed-ids.ts';
import { type AlarmView, type FireView, LIST_LIMIT_MAX } from '../wire/alarm.ts';
import { ReveilleError } from '../wire/errors.ts';
import { alarmNews, type News } from './news.ts';

/** The news, and a callback for when they are on disk. */
export type Look = { readonly news: readonly News[]; readonly settle: () => void };

export type AlarmFeedOptions = {
  readonly client: Pick<ChronosClient, 'listAlarms' | 'getAlarm' | 'listFires'>;
  readonly clock: Clock;
  /** Earlier events are not news, epoch milliseconds. */
  readonly begunAt: number;
  /** An earlier process found everything up to here. */
  readonly since: number;
};

/** Alarms per query. */
const AT_ONCE = 4;
/** With more changed alarms, all are listed. */
const MOST_NAMED = 100;

/** For a known alarm, the latest attempts are usually enough. */
const LATEST = 20;
/** An attempt is in the ledger after its end, by chronosd's clock, which may differ from ours by this. */
const CLOCKS_DIFFER_MS = 3_600_000;
/** The known state of an alarm. */
type Known = {
  /** Its fields at that time. */
  readonly trace: string;
  /** Attempts from here on have to be read again, because their turns may continue. */
  readonly from: number;
  /** It has unfinished turns, whose reports do not change its fields. */
  readonly isOpen: boolean;
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
   * Possible news of changed alarms. It may repeat known news; none is omitted.
   *
   * @param changes of the stream of events
   * @throws ReveilleError as the client; the next query finds what a failed one missed
   */
  async look({ isAll, ids }: Changes, signal: AbortSignal): Promise<Look> {
    const began = this.#options.clock.now();
    const alarms = isAll || ids.size > MOST_NAMED ? await this.#changed(signal) : await this.#named(ids, signal);
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

  async #named(ids: ReadonlySet<string>, signal: AbortSignal): Promise<AlarmView[]> {
    const found: AlarmView[] = [];
    for (const id of ids)
      try {
        found.push(await this.#options.client.getAlarm(id, { signal }));
      } catch (thrown) {
        if (!(thrown instanceof ReveilleError && thrown.code === 'not_found')) throw thrown;
      }
    return found;
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
    if (known !== undefined) return known.isOpen || known.trace !== traceOf(alarm);
    const { last_fired_at: last, last_error, failure_count } = alarm;
    const isOld = last === undefined || Date.parse(last) < since - LONGEST_TURN_MS;
    if (!isOld || last_error !== undefined || failure_count > 0) return true;
    this.#known.set(alarm.id, this.#knownOf(alarm, [], clock.now()));
    return false;
  }

  #knownOf(alarm: AlarmView, fires: readonly FireView[], readAt: number): Known {
    const open = fires.filter((fire) => isTurnOpen(fire, readAt));
    const from = Math.min(readAt, ...open.map(({ started_at }) => Date.parse(started_at))) - CLOCKS_DIFFER_MS;
    return { trace: traceOf(alarm), from, isOpen: open.length > 0 };
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
