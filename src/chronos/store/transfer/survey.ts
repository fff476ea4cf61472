/** A dry run of a move: examines both sides without changing anything. */
import { type Plan, planOf } from './plan.ts';
import { parseProgress, rowsOf } from './progress.ts';
import { SourceView } from './source.ts';
import { MOVING_TABLES, type MovingTable } from './tables.ts';
import { Target, type TargetOptions } from './target.ts';

export type Survey = {
  from: string;
  /** The database, `host:port/database`. */
  to: string;
  /** The first step of the move. */
  plan: Plan;
  tables: { table: MovingTable['name']; rows: number }[];
  /** Rows that an interrupted move has already copied. */
  there: number;
  /** Whether the database has no tables yet. */
  bare: boolean;
  /** The process that seems to have the file open, and would have to be stopped. */
  owner: number | undefined;
};

/**
 * @throws ReveilleError where the move itself would be refused, as far as a dry run can detect
 */
export async function survey({
  from,
  to,
  ...rest
}: { from: string; to: string } & Omit<TargetOptions, 'uri'>): Promise<Survey> {
  const source = new SourceView(from);
  try {
    const tables = MOVING_TABLES.map((table) => ({ table: table.name, rows: source.count(table) }));
    const { target, schema } = await Target.inspect({ uri: to, ...rest });
    try {
      const bare = schema.applied === 0;
      const targetState = schema.missing === 0 ? await target.state() : undefined;
      const empty = bare || (await target.isEmpty());
      const { path, departure: sourceState, owner } = source;
      const plan = planOf({ path, sourceState: sourceState, name: target.name, targetState: targetState, empty });
      const there = plan === 'resume' && targetState ? rowsOf(parseProgress(targetState.progress)) : 0;
      return { from: path, to: target.name, plan, tables, there, bare, owner };
    } finally {
      await target.close();
    }
  } finally {
    source.close();
  }
}
