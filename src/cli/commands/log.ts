/** `reveille log`: fires, replies, intents and failures of the agent, newest last. */
import type { ExecutorClient } from '../../executor/client.ts';
import { type Clock, wait } from '../../kit/clock/clock.ts';
import { localTime } from '../../kit/clock/local-time.ts';
import { ALL_CHANGED, ChangedIds, type Changes } from '../../kit/http/changed-ids.ts';
import { LIST_LIMIT_MAX } from '../../wire/alarm.ts';
import { ReveilleError } from '../../wire/errors.ts';
import { alarmClient } from '../access/chronos.ts';
import { executorClient } from '../access/executor.ts';
import type { CliContext } from '../context.ts';
import { durationFlag, instantFlag } from '../flags/flags.ts';
import { entriesOfIntent, inOrder, keyOf, type LogEntry } from '../log/entries.ts';
import { OpenTurns } from '../log/open-turns.ts';
import { renderEntry } from '../screens/log-screen.ts';
import { readerOf } from '../screens/reader.ts';
import { LedgerWatch } from '../up/ledger-watch.ts';

export type LogFlags = { since?: string; follow?: boolean; agent?: string };

/** Interval of attempts to reach chronosd. */
const AGAIN_MS = 1000;
/** A stream that is opened again announces everything; this is for a query that fails while the stream continues. */
const SAFETY_MS = 30_000;
/** Events of a burst are read together. */
const GATHER_MS = 50;
const DEFAULT_SINCE = '24h';

/** `--since` as epoch milliseconds: an instant, or a duration before now. */
function sinceOf(given: string, now: number): number {
  if (/^\d{4}-/.test(given)) return Date.parse(instantFlag('--since', given)!);
  return now - durationFlag('--since', given, 1)! * 1000;
}

/** Unreported entries about intents. @returns reads them; throws the errors of the client */
function intentNews(client: ExecutorClient, since: number) {
  const printed = new Set<string>();
  return async ({ isAll, ids }: Changes): Promise<LogEntry[]> => {
    const intents = isAll
      ? await client.list({ limit: LIST_LIMIT_MAX })
      : await Promise.all([...ids].map((id) => client.view(id)));
    return intents
      .flatMap(({ value }) => entriesOfIntent(value))
      .filter((entry) => Date.parse(entry.at) >= since && !printed.has(keyOf(entry)) && printed.add(keyOf(entry)))
      .sort(inOrder);
  };
}

/** Without an executor, or where it rejects this client, there are no entries. */
function noneWithout(error: unknown): LogEntry[] {
  if (error instanceof ReveilleError) return [];
  throw error;
}

/** Reports changed intents until the signal aborts. */
async function followIntents(
  changed: ChangedIds,
  { signal, clock, look }: { signal: AbortSignal; clock: Clock; look: (changes: Changes) => Promise<void> },
): Promise<void> {
  let hasMissed = false;
  while (!signal.aborted) {
    changed.giveBack(await changed.next(hasMissed ? SAFETY_MS : undefined));
    await wait(clock, GATHER_MS, signal);
    const changes = await changed.next(0);
    try {
      await look(hasMissed ? ALL_CHANGED : changes);
      hasMissed = false;
    } catch (error) {
      if (!(error instanceof ReveilleError)) throw error;
      hasMissed = true;
    }
  }
}

export async function log(given: CliContext, flags: LogFlags): Promise<void> {
  const { agent } = flags;
  const context = agent === undefined ? given : { ...given, settings: { ...given.settings, MATRIX_USER_ID: agent } };
  const { out, clock } = context;
  const since = sinceOf(flags.since ?? DEFAULT_SINCE, clock.now());
  const ended = new AbortController();
  const { signal } = ended;
  const client = alarmClient(context);
  const turns = new OpenTurns({ client, clock, since, signal });
  const executor = executorClient(context, agent);
  const news = intentNews(executor, since);
  const tell = (entries: readonly LogEntry[]) => {
    for (const entry of entries) out.result(entry, renderEntry(entry, readerOf(context)));
  };

  // Ctrl-C may come from the first line on.
  if (flags.follow) {
    for (const name of ['SIGINT', 'SIGTERM'] as const) process.once(name, () => ended.abort());
    context.process.stdout.once('error', () => ended.abort());
  }
  const changed = flags.follow ? new ChangedIds({ events: client.events, clock, signal }) : undefined;
  const intentsChanged = flags.follow ? new ChangedIds({ events: executor.events, clock, signal }) : undefined;
  await Promise.all([changed?.opened, intentsChanged?.opened]);
  const watch = new LedgerWatch(client, { since: clock.now(), signal });
  const surveyed = async () => {
    if (changed) await watch.look();
    return [...(await turns.survey()), ...(await news(ALL_CHANGED).catch(noneWithout))].sort(inOrder);
  };
  const past = await surveyed().catch((error: unknown) => {
    // An open stream of events would keep the process.
    ended.abort();
    throw error;
  });
  tell(past);
  if (past.length === 0) out.line(`Nothing has happened since ${localTime(since, readerOf(context))}.`);
  if (!changed || !intentsChanged) return;
  const followedIntents = followIntents(intentsChanged, { signal, clock, look: async (c) => tell(await news(c)) });

  let reached = true;
  while (!signal.aborted) {
    const changes = await changed.next();
    try {
      for (const { alarm } of await watch.look(changes)) turns.watch(alarm);
      tell(await turns.look(changes));
      if (!reached) out.remark('chronosd answers again');
      reached = true;
    } catch (error) {
      if (signal.aborted) break;
      if (!(error instanceof ReveilleError && error.retryable)) {
        ended.abort();
        throw error;
      }
      if (reached) out.remark('chronosd does not answer; asking again every second');
      reached = false;
      changed.giveBack(changes);
      await wait(clock, AGAIN_MS, signal);
    }
  }
  await followedIntents;
}
