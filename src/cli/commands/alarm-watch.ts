/** `reveille alarm watch`: a line for each fire and failure, until Ctrl-C. */
import { wait } from '../../kit/clock/clock.ts';
import { fromNow } from '../../kit/clock/local-time.ts';
import { ALL_CHANGED, ChangedIds, type Changes } from '../../kit/http/changed-ids.ts';
import type { AlarmView } from '../../wire/alarm.ts';
import { ReveilleError } from '../../wire/errors.ts';
import { alarmClient, findChronos, personOf } from '../access/chronos.ts';
import { serverTime } from '../access/unreachable.ts';
import type { CliContext } from '../context.ts';
import { fit } from '../screens/columns.ts';
import { readerOf } from '../screens/reader.ts';
import { preview, renderEvent } from '../screens/render.ts';
import { LedgerWatch, type RingEvent } from '../up/ledger-watch.ts';
import { findAlarmId } from './alarm.ts';

export type WatchFlags = { id?: string };

/** Interval of the countdown, and of attempts to reach chronosd. */
const EVERY_MS = 1000;
/** Events of a burst are read together. */
const GATHER_MS = 50;

/** The JSON line of an event. */
function eventRecord({ alarm, fire }: RingEvent) {
  const { id, label, kind, status } = alarm;
  return { alarm_id: id, label, kind, status, ...fire };
}

/** Such an alarm does not change any more; a failed one may still be redriven. */
const isOver = ({ status }: AlarmView) => status === 'fired' || status === 'cancelled';

/** The next fire, for the line that is redrawn every second. */
function comingUp(alarms: readonly AlarmView[], now: number): string {
  const due = alarms.flatMap((alarm) =>
    alarm.next_fire_at === undefined ? [] : [{ at: Date.parse(alarm.next_fire_at), alarm }],
  );
  if (due.length === 0) return 'nothing is due';
  const next = due.reduce((one, other) => (other.at < one.at ? other : one));
  return `next ${next.at <= now ? 'now' : fromNow(next.at, now)}: ${preview(next.alarm)}`;
}

/** Runs one query and prints its events; `false` when chronosd did not answer and the next query may succeed. */
async function lookAndTell(context: CliContext, watch: LedgerWatch, changes: Changes): Promise<boolean> {
  let events: RingEvent[];
  try {
    events = await watch.look(changes);
  } catch (error) {
    if (error instanceof ReveilleError && error.retryable) return false;
    throw error;
  }
  const { out } = context;
  for (const event of events) out.result(eventRecord(event), renderEvent(event.alarm, event.fire, readerOf(context)));
  return true;
}

export async function alarmWatch(context: CliContext, flags: WatchFlags): Promise<void> {
  const ended = new AbortController();
  for (const name of ['SIGINT', 'SIGTERM'] as const) process.once(name, () => ended.abort());
  // The reader has closed the pipe.
  context.process.stdout.once('error', () => ended.abort());
  try {
    await watchUntil(context, flags, ended.signal);
  } finally {
    // An open stream of events would keep the process.
    ended.abort();
  }
}

async function watchUntil(context: CliContext, { id }: WatchFlags, signal: AbortSignal): Promise<void> {
  const { out, clock } = context;
  const client = alarmClient(context, personOf(context));
  // In parallel: the clock of an unresponsive chronosd adds no delay.
  const [time, only] = await Promise.all([
    serverTime(findChronos(context).url, clock),
    id === undefined ? client.listAlarms({ limit: 1 }).then(() => undefined) : findAlarmId(client, id),
  ]);
  const since = time?.second ?? clock.now();
  const watch = new LedgerWatch(client, { since, only, signal });
  const changed = new ChangedIds({ events: client.events, clock, signal });
  await changed.opened;
  // The first query must succeed, so that a user does not wait for invisible fires.
  await watch.look(ALL_CHANGED).catch((error: unknown) => {
    if (!signal.aborted) throw error;
  });
  const waiting = watch.alarms.filter(({ status }) => status === 'active').length;
  if (!signal.aborted) out.line(`Watching ${waiting} active alarm${waiting === 1 ? '' : 's'}; Ctrl-C ends.`);

  let reached = true;
  while (!signal.aborted && !(only !== undefined && watch.alarms.every(isOver))) {
    if (reached) out.progress(fit(comingUp(watch.alarms, clock.now()), out.columns - 1));
    const changes = await changed.next(out.live ? EVERY_MS : undefined);
    if (signal.aborted) break;
    if (!changes.isAll && changes.ids.size === 0) continue;
    const answered = await lookAndTell(context, watch, changes);
    if (!answered) changed.giveBack(changes);
    await wait(clock, answered ? GATHER_MS : EVERY_MS, signal);
    if (signal.aborted) break;
    if (answered !== reached)
      out.remark(answered ? 'chronosd answers again' : 'chronosd does not answer; asking again every second');
    reached = answered;
  }
  out.progress('');
}
