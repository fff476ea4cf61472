/** `reveille alarm backfill`: fires a series for its instants in a part of the past, and says before how many they are. */
import { isZone } from '../../kit/clock/zone.ts';
import { readDateOrInstant } from '../../kit/phrase/date-or-instant.ts';
import { type AlarmBackfilled, BACKFILL_UNCONFIRMED } from '../../wire/alarm.ts';
import { formatInstant } from '../../wire/rfc3339.ts';
import { alarmClient, personOf } from '../access/chronos.ts';
import type { CliContext } from '../context.ts';
import { UsageError } from '../flags/usage-error.ts';
import { counted } from '../screens/columns.ts';
import { readerOf } from '../screens/reader.ts';
import { instantText, type Reader } from '../screens/render.ts';
import { findAlarmId } from './alarm.ts';
import { personAt } from './neo-server-review.ts';

export type BackfillFlags = { from?: string; to?: string; zone?: string; dryRun?: boolean; yes?: boolean };

/** An instant, which may be in the past: RFC 3339, or a date with or without a time in a zone. */
export function dateOrInstant(flag: string, text: string, zone: string): string {
  if (!isZone(zone)) throw new UsageError(`--zone must be a time zone such as Europe/Berlin (got "${zone}")`);
  const at = readDateOrInstant(text, zone);
  if (at !== undefined) return formatInstant(at);
  throw new UsageError(`${flag} must be a date or an instant, such as ${flag} "2026-11-20 09:00" (got "${text}")`);
}

type Counts = AlarmBackfilled['backfill'];

/** How many fires a backfill has, and from when to when. */
function linesOf({ added, known, first, last }: Counts, id: string, says: string, look: Reader): string[] {
  const lines =
    first === undefined || last === undefined
      ? [`Nothing to backfill for ${id}`]
      : [
          `${says} ${counted(added, 'fire')} of ${id}, the oldest first`,
          `  from ${instantText(first, look)} to ${instantText(last, look)}`,
        ];
  return known > 0 ? [...lines, `  ${known} of that time have fired or wait already`] : lines;
}

/** Whether the person at the terminal agrees; without one, yes. */
async function isAgreed(context: CliContext): Promise<boolean> {
  const person = personAt(context);
  if (!person) return true;
  try {
    return /^y(es)?$/i.test((await person.ask('Fire them now? (y/N) ')).trim());
  } finally {
    person.close();
  }
}

export async function alarmBackfill(context: CliContext, flags: BackfillFlags, given: string): Promise<void> {
  const { out } = context;
  const look = readerOf(context);
  const zone = flags.zone ?? look.zone;
  if (flags.from === undefined) throw new UsageError('--from is missing: the beginning of the time to backfill');
  const part = {
    from: dateOrInstant('--from', flags.from, zone),
    to: flags.to === undefined ? formatInstant(context.clock.now()) : dateOrInstant('--to', flags.to, zone),
  };
  const client = alarmClient(context, personOf(context));
  const id = await findAlarmId(client, given);
  const planned = await client.backfillAlarm(id, { ...part, dry_run: true });
  if (flags.dryRun) return out.result(planned, linesOf(planned.backfill, id, 'Would backfill', look));
  const lines = linesOf(planned.backfill, id, 'Backfills', look);
  // Printed before the fires begin; chronosd refuses many of them without --yes.
  for (const line of lines) out.line(line);
  const needsAnswer = planned.backfill.added > 0 && !flags.yes && planned.backfill.added <= BACKFILL_UNCONFIRMED;
  if (needsAnswer && !(await isAgreed(context))) return out.line('Nothing was changed');
  const answer = await client.backfillAlarm(id, { ...part, ...(flags.yes ? { confirm_over: true } : {}) });
  if (out.json) out.result(answer);
}
