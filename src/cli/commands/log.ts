/** `reveille log`: fires, replies, intents and failures of the agent, newest last. */
import { wait } from '../../kit/clock/clock.ts';
import { localTime } from '../../kit/clock/local-time.ts';
import { ChangedIds } from '../../kit/http/changed-ids.ts';
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

/** Interval of queries to the executor, which has no stream of intents, and of attempts to reach chronosd. */
const EVERY_MS = 1000;
const DEFAULT_SINCE = '24h';

/** `--since` as epoch milliseconds: an instant, or a duration before now. */
function sinceOf(given: string, now: number): number {
  if (/^\d{4}-/.test(given)) return Date.parse(instantFlag('--since', given)!);
  return now - durationFlag('--since', given, 1)! * 1000;
}

/** New intents at the executor; none when it does not run or rejects this client. */
function tasks(context: CliContext, agent: string | undefined, since: number) {
  const printed = new Set<string>();
  return async (): Promise<LogEntry[]> => {
    try {
      const intents = await executorClient(context, agent).list({ limit: LIST_LIMIT_MAX });
      const entries = intents
        .flatMap(({ value }) => entriesOfIntent(value))
        .filter(({ at }) => Date.parse(at) >= since);
      return entries.filter((entry) => !printed.has(keyOf(entry)) && printed.add(keyOf(entry)));
    } catch (error) {
      if (error instanceof ReveilleError) return [];
      throw error;
    }
  };
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
  const news = tasks(context, agent, since);
  const tell = (entries: readonly LogEntry[]) => {
    for (const entry of entries) out.result(entry, renderEntry(entry, readerOf(context)));
  };

  // Ctrl-C may come from the first line on.
  if (flags.follow) {
    for (const name of ['SIGINT', 'SIGTERM'] as const) process.once(name, () => ended.abort());
    context.process.stdout.once('error', () => ended.abort());
  }
  const changed = flags.follow ? new ChangedIds({ events: client.events, clock, signal }) : undefined;
  await changed?.opened;
  const watch = new LedgerWatch(client, { since: clock.now(), signal });
  const surveyed = async () => {
    if (changed) await watch.look();
    return [...(await turns.survey()), ...(await news())].sort(inOrder);
  };
  const past = await surveyed().catch((error: unknown) => {
    // An open stream of events would keep the process.
    ended.abort();
    throw error;
  });
  tell(past);
  if (past.length === 0) out.line(`Nothing has happened since ${localTime(since, readerOf(context))}.`);
  if (!changed) return;

  let askedAt = clock.monotonic();
  let reached = true;
  while (!signal.aborted) {
    const changes = await changed.next(EVERY_MS);
    try {
      for (const { alarm } of await watch.look(changes)) turns.watch(alarm);
      const isDue = clock.monotonic() - askedAt >= EVERY_MS;
      if (isDue) askedAt = clock.monotonic();
      tell([...(await turns.look(changes)), ...(isDue ? await news() : [])].sort(inOrder));
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
      await wait(clock, EVERY_MS, signal);
    }
  }
}
