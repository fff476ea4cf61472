/**
 * Turns that end later: turns in progress when an earlier `up` ended, and retried turns. They are read from the ledger when
 * chronosd's events announce them, and reported once; the home has the instant up to which all were reported.
 */
import { z } from 'zod';
import type { ChronosClient } from '../../chronos/client.ts';
import { type Clock, wait } from '../../kit/clock/clock.ts';
import { ALL_CHANGED, ChangedIds } from '../../kit/http/changed-ids.ts';
import { readPrivateFile, replacePrivateFile } from '../../kit/identity/private-file.ts';
import type { Logger } from '../../kit/log/log.ts';
import { formatInstant } from '../../wire/rfc3339.ts';
import type { LogEntry, NamedAlarm } from '../log/entries.ts';
import { OpenTurns } from '../log/open-turns.ts';

export type TurnNewsOptions = {
  client: ChronosClient;
  clock: Clock;
  log: Logger;
  /** The file with that instant. */
  file: string;
  tell: (entry: LogEntry) => void;
};

/** Pause after a failed query. */
const AGAIN_MS = 2000;
/** Events of a burst are read together. */
const GATHER_MS = 50;
const TOLD: ReadonlySet<string> = new Set(['reply', 'turn_failed', 'turn_unknown', 'turn_waits']);
const TURN_EVENTS = ['turn.started', 'turn.finished', 'turn.failed'] as const;
const fileSchema = z.object({ told_until: z.iso.datetime({ offset: true }) });

/** The instant up to which all turns were reported; `undefined` when unknown. */
function readMark(file: string): number | undefined {
  try {
    return Date.parse(fileSchema.parse(JSON.parse(readPrivateFile(file) ?? '')).told_until);
  } catch {
    // Optional: without it, earlier turns are in the log.
    return undefined;
  }
}

export class TurnNews {
  readonly #options: TurnNewsOptions;
  readonly #turns: OpenTurns;
  readonly #ended = new AbortController();
  readonly #changed: ChangedIds;
  /** Fires that another part follows and reports. */
  readonly #followed = new Set<string>();
  /** Reports about handed-over fires, by their id. */
  readonly #reportedRetry = new Map<string, string>();

  constructor(options: TurnNewsOptions) {
    this.#options = options;
    const { client, clock, file } = options;
    const since = readMark(file) ?? clock.now();
    const { signal } = this.#ended;
    this.#turns = new OpenTurns({ client, clock, since, signal });
    const events: typeof client.events = (follow) => client.events({ ...follow, types: TURN_EVENTS });
    this.#changed = new ChangedIds({ events, clock, signal });
  }

  /** Reports turns until {@link stop}. */
  async start(): Promise<void> {
    const { clock, log } = this.#options;
    const { signal } = this.#ended;
    await this.#changed.opened;
    let changes = ALL_CHANGED;
    for (let isFirst = true; !signal.aborted; changes = await this.#changed.next()) {
      try {
        if (isFirst) this.#tell(await this.#turns.survey());
        else if (this.#turns.size > 0) this.#tell(await this.#turns.look(changes));
        isFirst = false;
        await wait(clock, GATHER_MS, signal);
      } catch (err) {
        if (!signal.aborted) log.debug({ err }, 'turns could not be read; the query is repeated');
        this.#changed.giveBack(changes);
        await wait(clock, AGAIN_MS, signal);
      }
    }
  }

  /** Another part follows the turn of this fire and reports it. */
  follows(fireId: string): void {
    this.#followed.add(fireId);
  }

  /** The turn was reported. */
  markReported(fireId: string): void {
    this.#mark();
    // The ledger may still report it, so the fire stays known while this process runs.
    this.#followed.add(fireId);
  }

  /**
   * The turn of this fire is no longer followed, although it has not ended.
   *
   * @param retryAt of a retry that was already reported
   */
  handOver(alarm: NamedAlarm, fireId: string, retryAt?: string): void {
    this.#followed.delete(fireId);
    if (retryAt !== undefined) this.#reportedRetry.set(fireId, retryAt);
    this.#turns.watch(alarm);
    this.#changed.add(alarm.id);
  }

  stop(): void {
    this.#ended.abort();
  }

  #tell(entries: readonly LogEntry[]): void {
    const news = entries.filter(({ kind, fire_id = '', retry_at }) => {
      if (!TOLD.has(kind) || this.#followed.has(fire_id)) return false;
      return kind !== 'turn_waits' || this.#reportedRetry.get(fire_id) !== retry_at;
    });
    for (const entry of news) this.#options.tell(entry);
    if (news.length > 0) this.#mark();
  }

  #mark(): void {
    const { clock, file, log } = this.#options;
    try {
      replacePrivateFile(file, `${JSON.stringify({ told_until: formatInstant(clock.now()) })}\n`);
    } catch (err) {
      log.debug({ err }, 'the instant of the last report could not be stored');
    }
  }
}
