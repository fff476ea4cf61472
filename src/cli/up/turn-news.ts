/**
 * Turns that end when nobody follows them any more: those that were under way when an earlier `up` ended, and those that
 * are tried again later. Read from the ledger, and told once: until when everything was told stands in the home.
 */
import { z } from 'zod';
import type { ChronosClient } from '../../chronos/client.ts';
import { type Clock, wait } from '../../kit/clock/clock.ts';
import { readPrivateFile, replacePrivateFile } from '../../kit/identity/private-file.ts';
import type { Logger } from '../../kit/log/log.ts';
import { formatInstant } from '../../wire/rfc3339.ts';
import type { LogEntry, NamedAlarm } from '../log/entries.ts';
import { OpenTurns } from '../log/open-turns.ts';

export type TurnNewsOptions = {
  client: ChronosClient;
  clock: Clock;
  log: Logger;
  /** The file that holds until when everything was told. */
  file: string;
  tell: (entry: LogEntry) => void;
};

const LOOK_EVERY_MS = 2000;
const TOLD: ReadonlySet<string> = new Set(['reply', 'turn_failed', 'turn_unknown', 'turn_waits']);
const fileSchema = z.object({ told_until: z.iso.datetime({ offset: true }) });

/** Until when everything was told; `undefined` where nothing says so. */
function readMark(file: string): number | undefined {
  try {
    return Date.parse(fileSchema.parse(JSON.parse(readPrivateFile(file) ?? '')).told_until);
  } catch {
    // It is a convenience: without it what happened earlier stands in the log.
    return undefined;
  }
}

export class TurnNews {
  readonly #options: TurnNewsOptions;
  readonly #turns: OpenTurns;
  readonly #ended = new AbortController();
  /** Fires that somebody else follows and tells of. */
  readonly #followed = new Set<string>();
  /** What was told of fires that were handed over, by their id. */
  readonly #toldRetry = new Map<string, string>();

  constructor(options: TurnNewsOptions) {
    this.#options = options;
    const { client, clock, file } = options;
    const since = readMark(file) ?? clock.now();
    this.#turns = new OpenTurns({ client, clock, since, signal: this.#ended.signal });
  }

  /** Begins to look, every two seconds while there is something to follow. */
  async start(): Promise<void> {
    const { clock, log } = this.#options;
    const { signal } = this.#ended;
    for (let isFirst = true; !signal.aborted; ) {
      try {
        if (isFirst) this.#tell(await this.#turns.survey());
        else if (this.#turns.size > 0) this.#tell(await this.#turns.look());
        isFirst = false;
      } catch (err) {
        if (!signal.aborted) log.debug({ err }, 'what came of turns could not be read; it is looked again');
      }
      await wait(clock, LOOK_EVERY_MS, signal);
    }
  }

  /** Somebody follows the turn of this fire and tells of it. */
  follows(fireId: string): void {
    this.#followed.add(fireId);
  }

  /** What was followed has been told. */
  told(fireId: string): void {
    this.#mark();
    // The ledger may still hear of it, so the fire stays known for as long as this process lives.
    this.#followed.add(fireId);
  }

  /**
   * Nobody follows the turn of this fire any more, although it has not ended.
   *
   * @param retryAt of a try that was told already
   */
  handOver(alarm: NamedAlarm, fireId: string, retryAt?: string): void {
    this.#followed.delete(fireId);
    if (retryAt !== undefined) this.#toldRetry.set(fireId, retryAt);
    this.#turns.watch(alarm);
  }

  stop(): void {
    this.#ended.abort();
  }

  #tell(entries: readonly LogEntry[]): void {
    const news = entries.filter(({ kind, fire_id = '', retry_at }) => {
      if (!TOLD.has(kind) || this.#followed.has(fire_id)) return false;
      return kind !== 'turn_waits' || this.#toldRetry.get(fire_id) !== retry_at;
    });
    for (const entry of news) this.#options.tell(entry);
    if (news.length > 0) this.#mark();
  }

  #mark(): void {
    const { clock, file, log } = this.#options;
    try {
      replacePrivateFile(file, `${JSON.stringify({ told_until: formatInstant(clock.now()) })}\n`);
    } catch (err) {
      log.debug({ err }, 'until when turns were told could not be stored');
    }
  }
}
