/** `migrate`. */
import type { Command } from 'commander';
import type { MigrateFlags } from '../commands/migrate.ts';
import { addCommand } from './command.ts';

export function addMigrate(program: Command): void {
  addCommand<MigrateFlags>(program, {
    usage: 'migrate',
    summary: 'move the alarms of this installation from SQLite to PostgreSQL',
    example: 'reveille migrate --to postgres://reveille:a-password@db.example:5432/chronos',
    options: (command) =>
      command
        .option('--to <uri>', 'the database (default: CHRONOS_POSTGRES_URI, which shows no password in a process list)')
        .option('--from <file>', "the SQLite file (default: chronosd's own, chronos.db in CHRONOS_DATA_DIR)")
        .option('--dry-run', 'say what would be moved and where; change nothing')
        .option('--abandon', 'give the move up and ring the alarms from the SQLite file again')
        .option('--discard', 'with --abandon: also when the database has changed since, or cannot be asked'),
    run: async (context, flags) => (await import('../commands/migrate.ts')).migrate(context, flags),
  });
}
