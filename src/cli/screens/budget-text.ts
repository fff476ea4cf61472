/** A budget as text. */
import { formatDuration } from '../../kit/clock/duration.ts';
import { BREAKER_PAUSE_SECONDS, type Budget } from '../../wire/budget.ts';

const count = (amount: number, what: string) => `${amount} ${what}${amount === 1 ? '' : 's'}`;

/** `at most 10 wakes an hour, 50 a day; …`; `no limits` for a budget without any. */
export function budgetText(budget: Budget): string {
  const { wakes_per_hour: hour, wakes_per_day: day, min_gap_seconds: gap, quiet, breaker } = budget;
  const most = [
    ...(hour === undefined ? [] : [`${count(hour, 'wake')} an hour`]),
    ...(day === undefined ? [] : [`${count(day, 'wake')} a day`]),
  ];
  const parts: string[] = [];
  if (most.length > 0) parts.push(`at most ${most.join(' and ')}`);
  if (gap !== undefined) parts.push(`${formatDuration(gap * 1000)} between two wakes`);
  if (quiet) {
    const days = quiet.days ? ` beginning on ${quiet.days.join(', ')}` : '';
    parts.push(`quiet from ${quiet.from} to ${quiet.to} ${quiet.timezone}${days}`);
  }
  if (breaker) {
    const pause = formatDuration((breaker.pause_seconds ?? BREAKER_PAUSE_SECONDS) * 1000);
    parts.push(`a pause of ${pause} and more after ${count(breaker.failures, 'failed start')} in a row`);
  }
  return parts.length === 0 ? 'no limits' : parts.join('; ');
}
