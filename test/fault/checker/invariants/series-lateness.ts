/** Part of 6: the occurrences that `max_lateness_seconds` drops, and must drop. */
import { type AlarmCase, alarmIdOf, type Evidence } from '../evidence.ts';
import { at, named } from '../finding.ts';

/** The limit in milliseconds; `undefined` where an edit or a redrive may have removed it for some attempts. */
function boundOf({ id, definitions }: AlarmCase, evidence: Evidence): number | undefined {
  if (evidence.acts(id, 'redrive').length > 0) return undefined;
  const bounds = new Set(definitions.map(({ maxLatenessSeconds }) => maxLatenessSeconds));
  const [bound] = bounds;
  if (bounds.size !== 1 || bound === undefined) return undefined;
  return bound === null ? Number.POSITIVE_INFINITY : bound * 1000;
}

/** Attempts that started too late, and dropped occurrences that could have started in time. */
export function lateness(evidence: Evidence): string[] {
  return evidence.history.database.attempts.flatMap(({ fireId, attempt, startedAt, scheduledFor, outcome }) => {
    const one = evidence.caseOf(alarmIdOf(fireId));
    const bound = one && boundOf(one, evidence);
    if (bound === undefined) return [];
    const lateMs = startedAt - scheduledFor;
    if (outcome === 'missed' && lateMs <= bound)
      return [
        `${named(one!)}: ${fireId} was dropped at ${at(startedAt)}, ${lateMs} ms after it was due, and it had ${bound} ms`,
      ];
    // An unfinished attempt may have been claimed too late and interrupted before that was recorded.
    if ((outcome === 'delivered' || outcome === 'failed') && lateMs > bound)
      return [
        `${named(one!)}: attempt ${attempt} at ${fireId} started ${lateMs} ms after it was due, and it had ${bound} ms`,
      ];
    return [];
  });
}
