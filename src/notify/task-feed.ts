/** Finds waiting questions of a user at the executor, and failed intents. */
import type { ExecutorClient } from '../executor/client.ts';
import type { Changes } from '../kit/http/changed-ids.ts';
import { LIST_LIMIT_MAX } from '../wire/alarm.ts';
import { ReveilleError } from '../wire/errors.ts';
import { isIntentFinal } from '../wire/executor.ts';
import type { IntentView } from '../wire/intent-view.ts';
import type { Look } from './alarm-feed.ts';
import { type News, type Question, questionNews, taskNews } from './news.ts';

export type TaskFeedOptions = {
  readonly client: Pick<ExecutorClient, 'list' | 'view' | 'gates'>;
  readonly now: () => number;
  /** Intents that ended before are not news, epoch milliseconds. A waiting question is. */
  readonly begunAt: number;
  /** An earlier process found everything up to here. */
  readonly since: number;
};

const AT_ONCE = 4;
/** With more changed intents, all are listed. */
const MOST_NAMED = 100;
/** Ended intents per query. */
const LATEST = 50;
/** Limit between the end of an intent and its discovery. */
const LATEST_MS = 24 * 3_600_000;

export class TaskFeed {
  readonly #options: TaskFeedOptions;
  /** Earlier ends were reported, or are too old to report. */
  #from: number;
  #isFirst = true;

  constructor(options: TaskFeedOptions) {
    this.#options = options;
    this.#from = options.since - LATEST_MS;
  }

  /**
   * Possible news of changed intents.
   *
   * @param changes of the stream of events
   * @throws ReveilleError as the client; the next query finds what a failed one missed
   */
  async look({ isAll, ids }: Changes, signal: AbortSignal): Promise<Look> {
    const { begunAt, now } = this.#options;
    const began = now();
    const from = Math.max(begunAt, this.#from);
    const isListed = isAll || ids.size > MOST_NAMED;
    const intents = isListed ? await this.#listed(signal) : await this.#named(ids, signal);
    const waiting = intents.filter((intent) => !isIntentFinal(intent));
    const news: News[] = [];
    for (let at = 0; at < waiting.length; at += AT_ONCE) {
      const some = waiting.slice(at, at + AT_ONCE);
      news.push(...(await Promise.all(some.map((intent) => this.#questions(intent, signal)))).flat());
    }
    const settle = () => {
      if (!isListed) return;
      this.#isFirst = false;
      this.#from = began - LATEST_MS;
    };
    const ended = intents.map(taskNews).filter((one) => one !== undefined);
    return { news: [...news, ...ended.filter(({ at }) => at >= from)], settle };
  }

  /** Intents with a question, and failed ones. */
  async #listed(signal: AbortSignal): Promise<IntentView[]> {
    const found = await Promise.all(
      (['awaiting_approval', 'failed', 'unknown'] as const).map((status) => {
        // A question may be old; of ended intents, the newest are enough after the first query.
        const isAll = status === 'awaiting_approval' || this.#isFirst;
        return this.#options.client.list({ status, limit: isAll ? LIST_LIMIT_MAX : LATEST }, signal);
      }),
    );
    return found.flat().map(({ value }) => value);
  }

  async #named(ids: ReadonlySet<string>, signal: AbortSignal): Promise<IntentView[]> {
    const found: IntentView[] = [];
    for (const id of ids)
      try {
        found.push((await this.#options.client.view(id, signal)).value);
      } catch (thrown) {
        if (!(thrown instanceof ReveilleError && thrown.code === 'not_found')) throw thrown;
      }
    return found;
  }

  /** Whether a question still waits in the notified form; true when unknown, so that it is sent. */
  async waits({ intent_id, node_id, displayed_sha256 }: Question, signal: AbortSignal): Promise<boolean> {
    try {
      const gates = await this.#options.client.gates(intent_id, signal);
      return gates.some(({ value }) => value.node_id === node_id && value.displayed_sha256 === displayed_sha256);
    } catch (thrown) {
      return !(thrown instanceof ReveilleError && thrown.code === 'not_found');
    }
  }

  async #questions(intent: IntentView, signal: AbortSignal): Promise<News[]> {
    const gates = await this.#options.client.gates(intent.intent_id, signal);
    return gates.map(({ value }) => questionNews(intent, value, this.#options.now()));
  }
}
