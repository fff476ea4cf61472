/** `reveille migrate`: moves the alarms of a SQLite installation to PostgreSQL. */
import { join } from 'node:path';
import { parseChronosConfig } from '../../chronos/config.ts';
import { withoutPassword } from '../../chronos/store/postgres/address.ts';
import { abandon } from '../../chronos/store/transfer/abandon.ts';
import { type MoveResult, move } from '../../chronos/store/transfer/move.ts';
import { survey } from '../../chronos/store/transfer/survey.ts';
import { ReveilleError } from '../../wire/errors.ts';
import { formatInstant } from '../../wire/rfc3339.ts';
import type { CliContext } from '../context.ts';
import { UsageError } from '../flags/usage-error.ts';
import { lookOf } from '../screens/look.ts';
import {
  type Next,
  progressLine,
  renderAbandoned,
  renderComparisons,
  renderMoved,
  renderSurvey,
} from '../screens/migrate-screen.ts';

export type MigrateFlags = { to?: string; from?: string; dryRun?: boolean; abandon?: boolean; discard?: boolean };

function checkFlags({ to, dryRun, abandon: givenUp, discard }: MigrateFlags): void {
  if (to !== undefined && !/^postgres(?:ql)?:\/\//.test(to))
    throw new UsageError('--to must begin with postgres:// or postgresql://');
  if (dryRun && givenUp) throw new UsageError('--dry-run is for a move; omit it with --abandon');
  if (discard && !givenUp) throw new UsageError('--discard needs --abandon');
}

/** Source and destination of the alarms, from the flags and chronosd's settings. */
function placesOf({ settings }: CliContext, flags: MigrateFlags): { from: string; to: string | undefined } {
  const named = flags.to === undefined ? {} : { CHRONOS_POSTGRES_URI: flags.to };
  // chronosd checks its secrets, address and enrollment mode.
  const own = { CHRONOS_DEV: '1', CHRONOS_HOST: undefined, CHRONOS_ENROLLMENT: 'required' };
  const config = parseChronosConfig({ ...settings, ...named, ...own });
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
  const look = lookOf(context);
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
  out.result(record, renderSurvey(found, lookOf(context)));
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
  if (to === undefined)
    throw new UsageError('--to is missing; name the database: --to postgres://user:password@host:5432/database');
  return flags.dryRun ? dryRun(context, from, to) : moveAlarms(context, flags, from, to);
}
