/**
 * `reveille migrate` moves the alarms of a SQLite installation to PostgreSQL. `reveille reshard` changes the number of
 * buckets of a database in use, and distributes its tables with Citus.
 */
import { join } from 'node:path';
import { parseChronosConfig } from '../../chronos/config.ts';
import { withoutPassword } from '../../chronos/store/postgres/address.ts';
import { MOST_BUCKETS } from '../../chronos/store/sharding/buckets.ts';
import { type ReshardResult, reshard } from '../../chronos/store/sharding/reshard.ts';
import { abandon } from '../../chronos/store/transfer/abandon.ts';
import { type MoveResult, move } from '../../chronos/store/transfer/move.ts';
import { survey } from '../../chronos/store/transfer/survey.ts';
import { ReveilleError } from '../../wire/errors.ts';
import { formatInstant } from '../../wire/rfc3339.ts';
import type { Settings } from '../../wire/settings.ts';
import type { CliContext } from '../context.ts';
import { UsageError } from '../flags/usage-error.ts';
import {
  type Next,
  progressLine,
  renderAbandoned,
  renderComparisons,
  renderMoved,
  renderSurvey,
} from '../screens/migrate-screen.ts';
import { readerOf } from '../screens/reader.ts';

export type MigrateFlags = { to?: string; from?: string; dryRun?: boolean; abandon?: boolean; discard?: boolean };

function checkAddress(to: string | undefined): void {
  if (to !== undefined && !/^postgres(?:ql)?:\/\//.test(to))
    throw new UsageError('--to must begin with postgres:// or postgresql://');
}

function required(uri: string | undefined): string {
  if (uri !== undefined) return uri;
  throw new UsageError('--to is missing; name the database: --to postgres://user:password@host:5432/database');
}

/** chronosd's settings. Its secrets, address and enrollment mode are checked when it starts. */
const storeConfig = (settings: Settings) =>
  parseChronosConfig({ ...settings, CHRONOS_DEV: '1', CHRONOS_HOST: undefined, CHRONOS_ENROLLMENT: 'required' });

function checkFlags({ to, dryRun, abandon: givenUp, discard }: MigrateFlags): void {
  checkAddress(to);
  if (dryRun && givenUp) throw new UsageError('--dry-run is for a move; omit it with --abandon');
  if (discard && !givenUp) throw new UsageError('--discard needs --abandon');
}

/** Source and destination of the alarms, from the flags and chronosd's settings. */
function placesOf({ settings }: CliContext, flags: MigrateFlags): { from: string; to: string | undefined } {
  const config = storeConfig(flags.to === undefined ? settings : { ...settings, CHRONOS_POSTGRES_URI: flags.to });
  return { from: flags.from ?? join(config.CHRONOS_DATA_DIR, 'chronos.db'), to: config.CHRONOS_POSTGRES_URI };
}

/** The line to add, unless `config.yaml` names the database already. */
function nextOf({ environment, settings, home }: CliContext, flags: MigrateFlags, uri: string): Next {
  const { configFile } = home;
  const enrollmentSaid = Boolean(settings.CHRONOS_ENROLLMENT);
  if (flags.to === undefined && !environment.CHRONOS_POSTGRES_URI)
    return { line: undefined, configFile, enrollmentSaid };
  return { line: `CHRONOS_POSTGRES_URI: ${JSON.stringify(withoutPassword(uri))}`, configFile, enrollmentSaid };
}

function moveRecord({ outcome, from, to, since, tables, copied, copyMs }: MoveResult, next: Next) {
  return {
    outcome,
    from,
    to,
    moved_at: outcome === 'differs' ? null : formatInstant(since),
    tables: tables.map(({ table, equal, source, target, difference }) => ({
      table,
      equal,
      rows: source.rows,
      sha256: source.sha256,
      ...(equal
        ? {}
        : { target_rows: target.rows, target_sha256: target.sha256, first_difference: difference ?? null }),
    })),
    copied_rows: copied,
    copy_ms: Math.round(copyMs),
    rows_per_second: copied === 0 ? null : Math.round((copied * 1000) / Math.max(copyMs, 1)),
    config_file: next.configFile,
    config_line: outcome === 'differs' ? null : (next.line ?? null),
  };
}

async function moveAlarms(context: CliContext, flags: MigrateFlags, from: string, to: string): Promise<void> {
  const { out, clock } = context;
  const log = await context.log('migrate', 'error');
  const next = nextOf(context, flags, to);
  const result = await move({ from, to, clock, log, report: progressLine(out, clock) });
  const look = readerOf(context);
  if (result.outcome !== 'differs') {
    out.result(moveRecord(result, next), renderMoved(result, next, look));
    return;
  }
  out.result(moveRecord(result, next), renderComparisons(result.tables, look));
  const worst = result.tables.find(({ equal }) => !equal)!;
  const first = worst.difference === undefined ? '' : `, first at ${worst.difference}`;
  throw new ReveilleError(
    'conflict',
    `the copy in ${result.to} differs from ${result.from} (${worst.table}${first}), so neither is opened. One of them was changed during the move: cancel it with "reveille migrate --abandon" and start again`,
  );
}

async function dryRun(context: CliContext, from: string, to: string): Promise<void> {
  const { out, clock } = context;
  const found = await survey({ from, to, clock, log: await context.log('migrate', 'error') });
  const { owner, there, bare, ...rest } = found;
  const record = { dry_run: true, ...rest, rows_there: there, new_database: bare, in_use_by: owner ?? null };
  out.result(record, renderSurvey(found, readerOf(context)));
}

async function giveUp(context: CliContext, flags: MigrateFlags, from: string, to: string | undefined): Promise<void> {
  const { out, clock } = context;
  const log = await context.log('migrate', 'error');
  const discard = flags.discard === true;
  const result = await abandon({ from, to, discard, clock, log, report: progressLine(out, clock) });
  const { closed, ...rest } = result;
  const outcome = result.was === 'home' ? 'nothing' : 'abandoned';
  out.result({ outcome, ...rest, database_closed: closed }, renderAbandoned(result));
}

export async function migrate(context: CliContext, flags: MigrateFlags): Promise<void> {
  checkFlags(flags);
  const { from, to } = placesOf(context, flags);
  if (flags.abandon) return giveUp(context, flags, from, to);
  return flags.dryRun ? dryRun(context, from, required(to)) : moveAlarms(context, flags, from, required(to));
}

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
  checkAddress(flags.to);
  const uri = required(flags.to ?? storeConfig(settings).CHRONOS_POSTGRES_URI);
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
