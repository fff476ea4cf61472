/** `reveille reshard`: changes the number of buckets of a database in use, and distributes its tables with Citus. */
import { parseChronosConfig } from '../../chronos/config.ts';
import { MOST_BUCKETS } from '../../chronos/store/sharding/buckets.ts';
import { type ReshardResult, reshard } from '../../chronos/store/sharding/reshard.ts';
import type { CliContext } from '../context.ts';
import { UsageError } from '../flags/usage-error.ts';

export type ReshardFlags = { buckets: string; citus?: boolean; to?: string };

function render({ database, was, buckets, rows, blockedMs, distributed }: ReshardResult): string[] {
  const kept = distributed ? ', distributed over the workers of Citus' : '';
  if (was === buckets) return [`The alarms in ${database} are in ${buckets} buckets${kept}.`];
  return [
    `The alarms in ${database} are in ${buckets} buckets now (${was} before)${kept}.`,
    `${rows.toLocaleString('en-US')} rows were copied; replicas waited for ${Math.round(blockedMs)} ms.`,
  ];
}

export async function reshardAlarms(context: CliContext, flags: ReshardFlags): Promise<void> {
  const { out, clock, settings } = context;
  const buckets = Number(flags.buckets);
  if (!Number.isInteger(buckets) || buckets < 1 || buckets > MOST_BUCKETS)
    throw new UsageError(`--buckets must be a whole number from 1 to ${MOST_BUCKETS} (got ${flags.buckets})`);
  if (flags.to !== undefined && !/^postgres(?:ql)?:\/\//.test(flags.to))
    throw new UsageError('--to must begin with postgres:// or postgresql://');
  // chronosd checks its secrets, address and enrollment mode.
  const own = { CHRONOS_DEV: '1', CHRONOS_HOST: undefined, CHRONOS_ENROLLMENT: 'required' };
  const uri = flags.to ?? parseChronosConfig({ ...settings, ...own }).CHRONOS_POSTGRES_URI;
  if (uri === undefined)
    throw new UsageError('--to is missing; name the database: --to postgres://user:password@host:5432/database');
  const log = await context.log('spread', 'error');
  const result = await reshard({
    uri,
    buckets,
    citus: flags.citus === true,
    clock,
    log,
    report: (table, rows) => out.progress(`copying ${table}: ${rows.toLocaleString('en-US')} rows so far`),
  });
  out.result(
    {
      database: result.database,
      buckets: result.buckets,
      buckets_before: result.was,
      copied_rows: result.rows,
      stood_still_ms: Math.round(result.blockedMs),
      citus: result.distributed,
    },
    render(result),
  );
}
