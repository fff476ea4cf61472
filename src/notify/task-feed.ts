/** Finds out which questions wait for a user at the executor, and which of their tasks failed. */
import type { ExecutorClient } from '../executor/client.ts';
import { LIST_LIMIT_MAX } from '../wire/alarm.ts';
import { ReveilleError } from '../wire/errors.ts';
import type { IntentView } from '../wire/intent-view.ts';
import type { Look } from './alarm-feed.ts';
import { type News, type Question, questionNews, taskNews } from './news.ts';

export type TaskFeedOptions = {
  readonly client: Pick<ExecutorClient, 'list' | 'gates'>;
  readonly now: () => number;
  /** What ended before is nobody's news, epoch milliseconds. A question that waits is. */
  readonly begunAt: number;
  /** Up to when everything was found by an earlier process. */
  readonly since: number;
};

const AT_ONCE = 4;
/** Of what ended, looked at each time. */
const LATEST = 50;
/** A task may be found over so much later than it ended. */
const LATEST_MS = 24 * 3_600_000;

export class TaskFeed {
  readonly #options: TaskFeedOptions;
  /** What ended before was told, or forgotten as told. */
  #from: number;
  #isFirst = true;

  constructor(options: TaskFeedOptions) {
    this.#options = options;
    this.#from = options.since - LATEST_MS;
  }

  /** @throws ReveilleError as the client; the next look makes up for one that failed */
  async look(signal: AbortSignal): Promise<Look> {
    const { client, begunAt, now } = this.#options;
    const began = now();
    const from = Math.max(begunAt, this.#from);
    const [waiting, failed, unknown] = await Promise.all(
      (['awaiting_approval', 'failed', 'unknown'] as const).map(async (status) => {
        // A question may be old; of what ended, the newest are enough after the first look.
        const isAll = status === 'awaiting_approval' || this.#isFirst;
        const found = await client.list({ status, limit: isAll ? LIST_LIMIT_MAX : LATEST }, signal);
        return found.map(({ value }) => value);
      }),
    );
    const news: News[] = [];
    for (let at = 0; at < waiting!.length; at += AT_ONCE) {
      const some = waiting!.slice(at, at + AT_ONCE);
      news.push(...(await Promise.all(some.map((intent) => this.#questions(intent, signal)))).flat());
    }
    const settle = () => {
      this.#isFirst = false;
      this.#from = began - LATEST_MS;
    };
    const ended = [...failed!, ...unknown!].map(taskNews).filter((one) => one !== undefined);
    return { news: [...news, ...ended.filter(({ at }) => at >= from)], settle };
  }

  /**
   * Whether a question waits as it was shown; true when that cannot be found out: then it is told rather than kept.
   */
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
