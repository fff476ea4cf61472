/** When there will be something to claim. */
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
