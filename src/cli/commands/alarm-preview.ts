/**
 * `reveille alarm preview`: when an alarm would fire. It computes with chronosd's own schedule engine and the calendars of
 * this computer, so chronosd need not run.
 */
import { previewAlarm } from '../../chronos/alarm/preview.ts';
import { type AlarmPreview, alarmPreviewRequestSchema, PREVIEW_MAX } from '../../wire/alarm.ts';
import { parseOrThrow } from '../../wire/validate.ts';
import { calendarsOf } from '../access/calendars.ts';
import type { CliContext } from '../context.ts';
import { wholeNumberFlag } from '../flags/flags.ts';
import { readerOf } from '../screens/reader.ts';
import { renderPreview } from '../screens/render.ts';
import { dateOrInstant } from './alarm-backfill.ts';
import { alarmOf, inFlags, type SetFlags, typedWhere } from './alarm-set.ts';

export type PreviewFlags = Omit<SetFlags, 'payload' | 'payloadFile' | 'messageFile' | 'key' | 'as'> & {
  count?: string;
  from?: string;
};

/** The defaults of chronosd. */
const LIMITS = { minIntervalSeconds: 10, maxFailures: 100 };

export async function alarmPreview(context: CliContext, flags: PreviewFlags, words: string | undefined): Promise<void> {
  const typed = await typedWhere(context);
  const look = readerOf(context);
  const { count, from, ...rest } = flags;
  const { alarm, assumed, readIn: zone = look.zone } = alarmOf('preview', rest, typed, words);
  const body = {
    ...alarm,
    ...(count !== undefined && { count: wholeNumberFlag('--count', count, 1, PREVIEW_MAX) }),
    ...(from !== undefined && { from: dateOrInstant('--from', from, flags.zone ?? look.zone) }),
  };
  const minIntervalSeconds = Number(context.settings.CHRONOS_MIN_INTERVAL_SECONDS) || LIMITS.minIntervalSeconds;
  const calendars = calendarsOf(context);
  const limits = { ...LIMITS, minIntervalSeconds };
  const work = async (): Promise<AlarmPreview> =>
    previewAlarm(parseOrThrow(alarmPreviewRequestSchema, body), { now: typed.now, limits, zone, calendars });
  const preview = await inFlags(work());
  const shown = { ...preview, ...(assumed !== undefined && { assumed }) };
  context.out.result(shown, renderPreview(shown, look));
}
