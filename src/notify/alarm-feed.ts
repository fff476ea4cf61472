/** Finds out what has become of one owner's alarms, by asking chronosd: losing what is in memory here loses nothing. */
import { type ChronosClient, eachAlarm, firesSince, isTurnOpen, LONGEST_TURN_MS } from '../chronos/client.ts';
import type { Clock } from '../kit/clock/clock.ts';
import { type AlarmView, type FireView, LIST_LIMIT_MAX } from '../wire/alarm.ts';
import { alarmNews, type News } from './news.ts';

/** What was found, and what to call when it is on disk. */
export type Look = { readonly news: readonly News[]; readonly settle: () => void };

export type AlarmFeedOptions = {
  readonly client: Pick<ChronosClient, 'listAlarms' | 'listFires'>;
  readonly clock: Clock;
  /** What happened before is nobody's news, epoch milliseconds. */
  readonly begunAt: number;
  /** Up to when everything was found by an earlier process. */
  readonly since: number;
};

/** Alarms that are asked about at a time. */
const AT_ONCE = 4;

/** Of an alarm that is known, the latest attempts are enough most of the time. */
const LATEST = 20;
/** An attempt stands in the ledger when it has ended, by chronosd's clock, which may be so far from ours. */
const CLOCKS_DIFFER_MS = 3_600_000;
/** A turn that takes long is looked at less often: at most so much of its time passes before its end is found. */
const SHARE_OF_TURN = 1 / 60;

/** What was read of an alarm. */
type Known = {
  /** What the alarm looked like then. */
  readonly trace: string;
  /** From when on attempts have to be read again: those whose turns may go on are among them. */
  readonly from: number;
  /** When the turns that may go on are looked at again, on the monotonic clock; `undefined` where there are none. */
  readonly again: number | undefined;
};

/** What changes in an alarm when an attempt at it ends. */
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
   * What may be new since the look before. It may hold what was found already; nothing is left out.
   *
   * @throws ReveilleError as the client; the next look makes up for one that failed
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

  /** Attempts back to where a turn could have begun that nobody was told of, latest first. */
  async #ledger(id: string, signal: AbortSignal): Promise<FireView[]> {
    const { client, since } = this.#options;
    const known = this.#known.get(id);
    const [from, limit] = known ? [known.from, LATEST] : [since - LONGEST_TURN_MS, LIST_LIMIT_MAX];
    const fires = await firesSince(client, id, { from, limit }, { signal });
    // What is older was told, or forgotten as told.
    return fires.filter(({ finished_at }) => Date.parse(finished_at) >= from);
  }
}
