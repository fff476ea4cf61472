/** The plan of an import: the alarm of each job, and its next instants. Pure. */
import { previewAlarm } from '../../chronos/alarm/preview.ts';
import type { AlarmCreateBody } from '../../chronos/client.ts';
import { alarmPreviewRequestSchema } from '../../wire/alarm.ts';
import { ReveilleError } from '../../wire/errors.ts';
import { parseOrThrow } from '../../wire/validate.ts';
import {
  type ImportableJob,
  type ImportContext,
  type ImportSource,
  importKey,
  type JobList,
  withOwnIds,
} from './job.ts';

/** The default limits of chronosd; chronosd checks again when the alarm is set. */
const LIMITS = { minIntervalSeconds: 10, maxFailures: 100 };
const SHOWN_FIRES = 3;

/** The plan for one job. */
export type Planned = {
  source: ImportSource;
  id: string;
  name: string;
  differs: readonly string[];
  alarm?: AlarmCreateBody;
  paused?: true;
  /** The alarm's time in words, and its next instants. */
  becomes?: string;
  next?: readonly string[];
  /** Why the job is not imported. */
  not_imported?: string;
};

/** The alarm of a job, with its next instants; a job that chronosd would refuse is not imported. */
function planOf(
  source: ImportSource,
  job: ImportableJob,
  { now, zone, lacks }: Pick<ImportContext, 'now' | 'zone' | 'lacks'>,
  conversation: string | undefined,
): Planned {
  const { id, name, needs } = job;
  const missing = job.alarm.run === undefined || needs === undefined ? [] : (lacks?.(needs) ?? []);
  const differs = [...missing, ...job.differs];
  const alarm: AlarmCreateBody = {
    ...(conversation !== undefined && { conversation_id: conversation }),
    ...job.alarm,
    idempotency_key: importKey(source, id),
  };
  try {
    const request = parseOrThrow(alarmPreviewRequestSchema, { ...alarm, count: SHOWN_FIRES });
    const { text, occurrences } = previewAlarm(request, { now, limits: LIMITS, zone });
    const next = occurrences.map(({ at }) => at);
    if (next.length === 0) return { source, id, name, differs: [], not_imported: 'it never fires again' };
    return { source, id, name, differs, alarm, ...(job.isPaused && { paused: true }), becomes: text, next };
  } catch (thrown) {
    if (!(thrown instanceof ReveilleError)) throw thrown;
    return { source, id, name, differs: [], not_imported: thrown.message };
  }
}

export function planImport(
  source: ImportSource,
  { jobs }: Pick<JobList, 'jobs'>,
  context: Pick<ImportContext, 'now' | 'zone' | 'lacks'>,
  conversation?: string,
): Planned[] {
  return withOwnIds(jobs).map((job) =>
    'omitted' in job
      ? { source, id: job.id, name: job.name, differs: [], not_imported: job.omitted }
      : planOf(source, job, context, conversation),
  );
}
