/** Passes the world's three logs to the checker. */
import { foldClient, foldReceiver } from '../checker/fold.ts';
import type { History } from '../checker/history.ts';
import { judge } from '../checker/judge.ts';
import type { Contents } from './durable.ts';
import { OVERDUE_LIMIT_MS } from './watch.ts';
import type { World } from './world.ts';

/** A log has a resolution of one millisecond. */
const ROUNDING_MS = 1;
/** The time limit of a wake, and some for its outcome. */
const LONGEST_CLAIM_MS = 90_000;

/**
 * The checker's violations.
 *
 * @param healedAt the database's time of the last fault's end
 * @param jumpMs sum of the jumps of the database's clock
 */
export function judgeWorld(
  { scenario, clientLines, receiverLines, durable, watch, databaseNow }: World,
  { states, attempts }: Contents,
  { healedAt, jumpMs }: { healedAt: number; jumpMs: number },
): string[] {
  const clockToleranceMs = jumpMs + Math.ceil(watch.clockErrorMs) + ROUNDING_MS;
  const history: History = {
    client: { clockToleranceMs, calls: foldClient(clientLines) },
    database: {
      readAt: Math.floor(databaseNow()),
      wholeSince: Math.ceil(healedAt),
      alarms: states.map(({ alarm }) => alarm),
      occurrences: states.flatMap(({ occurrences }) => occurrences),
      attempts,
      audit: durable.audit(),
    },
    receiver: { clockToleranceMs, ...foldReceiver(receiverLines) },
    policy: {
      maxFailures: scenario.limits.maxFailures,
      userConcurrency: scenario.config.userConcurrency,
      longestClaimMs: LONGEST_CLAIM_MS,
      overdueLimitMs: OVERDUE_LIMIT_MS,
    },
  };
  return [...judge(history).violations];
}
