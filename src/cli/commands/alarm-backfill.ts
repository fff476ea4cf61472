/** `reveille alarm backfill`: fires a series for its instants in a part of the past. */
import { readPhrase } from '../../kit/phrase/phrase.ts';
import { formatInstant, parseInstant } from '../../wire/rfc3339.ts';
import { alarmClient } from '../access/chronos.ts';
import type { CliContext } from '../context.ts';
import { UsageError } from '../flags/usage-error.ts';
import { readerOf } from '../screens/reader.ts';
import { instantText } from '../screens/render.ts';
import { findAlarmId } from './alarm.ts';

export type BackfillFlags = { from?: string; to?: string; zone?: string; yes?: boolean };

const DATE = /^\d{4}-\d{2}-\d{2}$/;
const DATE_AND_TIME = /^\d{4}-\d{2}-\d{2}[ T]\d{1,2}:\d{2}(:\d{2})?$/;

/** An instant, which may be in the past: RFC 3339, or a date with or without a time in a zone. */
export function dateOrInstant(flag: string, text: string, zone: string): string {
  if (parseInstant(text) !== undefined) return text;
  const words = DATE.test(text) ? `${text} 00:00` : text;
  try {
    // Read as if it were still to come, because phrases name the future.
    const reading = DATE_AND_TIME.test(words) ? readPhrase(words, { now: 0, zone }) : undefined;
    if (reading?.kind === 'instant') return formatInstant(reading.at);
  } catch {
    // The message below has an example of a valid text.
  }
  throw new UsageError(`${flag} must be a date or an instant, such as ${flag} "2026-11-20 09:00" (got "${text}")`);
}

export async function alarmBackfill(context: CliContext, flags: BackfillFlags, given: string): Promise<void> {
  const look = readerOf(context);
  const zone = flags.zone ?? look.zone;
  if (flags.from === undefined) throw new UsageError('--from is missing: the beginning of the time to backfill');
  const from = dateOrInstant('--from', flags.from, zone);
  const to = flags.to === undefined ? formatInstant(context.clock.now()) : dateOrInstant('--to', flags.to, zone);
  const client = alarmClient(context);
  const id = await findAlarmId(client, given);
  const answer = await client.backfillAlarm(id, { from, to, ...(flags.yes ? { confirm_over: true } : {}) });
  const { added, known, first, last } = answer.backfill;
  const fires = added === 1 ? '1 fire' : `${added} fires`;
  const lines =
    first === undefined || last === undefined
      ? [`Nothing to backfill for ${id}`]
      : [
          `Backfills ${fires} of ${id}, the oldest first`,
          `  from ${instantText(first, look)} to ${instantText(last, look)}`,
        ];
  if (known > 0) lines.push(`  ${known} of that time have fired or wait already`);
  context.out.result(answer, lines);
}
