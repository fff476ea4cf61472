/**
 * Converts HTML to text for a model. Pages may be hostile, so each is converted in its own thread with a time and a
 * memory limit. The server answers other calls meanwhile.
 */
import { Worker } from 'node:worker_threads';
import type { Clock } from '../kit/clock/clock.ts';
import { KeyedQueue } from '../kit/queue/keyed-queue.ts';
import { ReveilleError } from '../wire/errors.ts';

/** @param base the address of the page, to resolve its links */
export type PageSource = { readonly html: string; readonly base: string };
/** The thread's answer: the text, or a reason that follows "the page is not read:". */
export type PageText = { readonly text: string } | { readonly refusal: string };

/** A page of 4 MiB takes up to 5 s. */
export const DEADLINE_MS = 15_000;
const MEMORY_MIB = 512;

const refused = (why: string) =>
  new ReveilleError('unavailable', `the page is not read: ${why}; raw: true returns its source`, { retryable: false });

export class PageReader {
  readonly #clock: Clock;
  readonly #threads = new Set<Worker>();
  /** Pages are converted one after the other, which bounds the total memory. */
  readonly #conversions = new KeyedQueue();

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /**
   * @param signal ends the conversion, like the time limit
   * @throws ReveilleError `unavailable` for a page that takes too long
   */
  read(source: PageSource, signal: AbortSignal): Promise<string> {
    return this.#conversions.run('page', () => this.#convert(source, signal));
  }

  async #convert(source: PageSource, signal: AbortSignal): Promise<string> {
    if (signal.aborted) throw refused('the call was cancelled');
    const thread = new Worker(new URL('./page-text-thread.ts', import.meta.url), {
      workerData: source,
      resourceLimits: { maxOldGenerationSizeMb: MEMORY_MIB },
    });
    this.#threads.add(thread);
    const answered = Promise.withResolvers<PageText>();
    const giveUp = (why: string) => answered.resolve({ refusal: why });
    const onAbort = () => giveUp('the call was cancelled');
    signal.addEventListener('abort', onAbort, { once: true });
    const cancel = this.#clock.after(DEADLINE_MS, () =>
      giveUp(`its conversion took more than ${DEADLINE_MS / 1000} s`),
    );
    thread.once('message', (answer: PageText) => answered.resolve(answer));
    thread.once('error', ({ message }) => giveUp(`its conversion failed (${message})`));
    thread.once('exit', () => giveUp('its conversion was ended'));
    try {
      const answer = await answered.promise;
      if ('text' in answer) return answer.text;
      throw refused(answer.refusal);
    } finally {
      cancel();
      signal.removeEventListener('abort', onAbort);
      await thread.terminate();
      this.#threads.delete(thread);
    }
  }

  /** Ends conversions in progress. */
  async close(): Promise<void> {
    await Promise.all([...this.#threads].map((thread) => thread.terminate()));
  }
}
