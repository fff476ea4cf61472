/** When there will be something to claim, and how much there is. */
import type { Executor } from './pool.ts';
import { statement } from './statement.ts';

const NEXT = statement(
  'next_due',
  `
  SELECT LEAST(
    (SELECT due_at FROM occurrences
     WHERE due_at IS NOT NULL AND lease_until IS NULL AND owner <> ALL ($1::text[]) ORDER BY due_at LIMIT 1),
    (SELECT lease_until FROM occurrences
     WHERE lease_until IS NOT NULL AND owner <> ALL ($1::text[]) ORDER BY lease_until LIMIT 1))`,
);

export async function nextDue(executor: Executor, saturated: ReadonlySet<string>): Promise<number | undefined> {
  const [row] = await executor.query(NEXT, [[...saturated]]);
  return (row?.[0] as number | null) ?? undefined;
}

const COUNT = statement(
  'count_due',
  `
  SELECT count(*) FROM (
    SELECT 1 FROM occurrences WHERE due_at <= $1::bigint AND lease_until IS NULL LIMIT $2::bigint) AS due`,
);

export async function countDue(executor: Executor, { now, atMost }: { now: number; atMost: number }): Promise<number> {
  const [row] = await executor.query(COUNT, [now, atMost]);
  return Number(row![0]);
}
