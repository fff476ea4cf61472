/** `doctor`, `completion`, `memory …`, `backup`, `restore` and `migrate`. */

import type { Command } from 'commander';
import type { BackupFlags, RestoreFlags } from '../commands/backup.ts';
import type { InitFlags } from '../commands/init.ts';
import type { ForgetFlags, MemoryListFlags } from '../commands/memory.ts';
import type { MigrateFlags } from '../commands/migrate.ts';
import type { OpenFlags } from '../commands/open.ts';
import type { SpreadFlags } from '../commands/spread.ts';
import { addCommand, addGroup, type FlagValue } from './command.ts';

export function addDoctor(program: Command): void {
  addCommand(program, {
    usage: 'doctor',
    summary: 'check this installation and say what to do about what is wrong',
    example: 'reveille doctor',
    tolerant: true,
    run: async (context) => (await import('../commands/doctor.ts')).doctor(context),
  });
}

export function addInit(program: Command): void {
  addCommand<InitFlags>(program, {
    usage: 'init',
    summary: 'write the configuration of a fleet, with all secrets: chronosd, router and executor start with it',
    example: 'reveille init --postgres postgres://chronos@db.internal/chronos',
    tolerant: true,
    options: (command) =>
      command
        .option('--postgres <address>', 'the database of chronosd')
        .option('--force', 'replace a configuration that is there, with new secrets'),
    run: async (context, flags) => (await import('../commands/init.ts')).init(context, flags),
  });
}

export function addCompletion(program: Command): void {
  addCommand(program, {
    usage: 'completion <shell>',
    summary: 'print what makes a shell complete these commands and flags: bash, zsh or fish',
    example: 'eval "$(reveille completion bash)"',
    tolerant: true,
    run: async (context, _flags, [shell]) =>
      (await import('../commands/completion.ts')).completion(context, program, shell!),
  });
}

export function addOpen(program: Command): void {
  addCommand<OpenFlags>(program, {
    usage: 'open',
    summary: 'open the console of the running "reveille up", or of a router elsewhere, in the browser',
    example: 'reveille open',
    options: (command) =>
      command
        .option('--print', 'print the address, which works once, and nothing else')
        .option(
          '--url <address>',
          "a router's public listener, with your token in REVEILLE_TOKEN (default: REVEILLE_URL)",
        ),
    run: async (context, flags) => (await import('../commands/open.ts')).open(context, flags),
  });
}

const load = () => import('../commands/memory.ts');

const dataDirOption = (command: Command) =>
  command.option('--data-dir <folder>', "Neo's data folder (default: that of this installation)");

const settings = ({ dataDir }: Record<string, FlagValue>) => ({
  NEO_DATA_DIR: typeof dataDir === 'string' ? dataDir : undefined,
});

export function addMemory(program: Command): void {
  const memory = addGroup(program, 'memory', 'what Neo remembers; works while it runs and while it sleeps');
  addCommand<MemoryListFlags>(memory, {
    usage: 'list',
    summary: 'list memories, the newest first, or search them',
    example: 'reveille memory list --query "home town"',
    options: (command) =>
      dataDirOption(command)
        .option('--query <words>', 'only what is found by these words, best first')
        .option('--kind <kind>', 'only of this kind: fact, event, preference, goal, pattern')
        .option('--limit <n>', 'at most so many (default: 100)')
        .option('--all', 'as many as there are, and also what newer memories contradict'),
    settings,
    run: async (context, flags) => (await load()).memoryList(context, flags),
  });
  addCommand<ForgetFlags>(memory, {
    usage: 'forget [id]',
    summary: 'forget a memory for good',
    example: 'reveille memory forget 01987c1e-2f',
    options: (command) =>
      dataDirOption(command).option('--all', 'forget everything').option('--yes', 'with --all: yes, everything'),
    settings,
    run: async (context, flags, [id]) => (await load()).memoryForget(context, flags, id),
  });
  addCommand(memory, {
    usage: 'export',
    summary: 'print all memories as JSON lines, with the turns that they were learned from',
    example: 'reveille memory export > memories.jsonl',
    options: dataDirOption,
    settings,
    run: async (context) => (await load()).memoryExport(context),
  });
}

export function addBackup(program: Command): void {
  addCommand<BackupFlags>(program, {
    usage: 'backup [file]',
    summary: 'copy everything of this installation into one sealed file, while it runs',
    example: 'reveille backup /media/disk/reveille.backup',
    options: (command) =>
      command
        .option('--check <file>', 'instead, read such a file to its end and say what it holds')
        .option('--with-approver-key', "also the approver's key, with which questions are answered"),
    run: async (context, flags, [file]) => (await import('../commands/backup.ts')).backup(context, flags, file),
  });
  addCommand<RestoreFlags>(program, {
    usage: 'restore <file>',
    summary: 'make a home of what is in a backup',
    example: 'reveille restore reveille.backup --home ~/.reveille',
    options: (command) =>
      command
        .option('--home <folder>', 'where to: a folder that is empty or not there (default: REVEILLE_HOME)')
        .option('--check', 'only read the file to its end and say what it holds')
        .option('--with-approver-key', "also the approver's key, if the backup holds one and there is none")
        .option(
          '--skip-outside-links',
          'leave out symbolic links that lead out of the home, instead of refusing the file',
        ),
    settings: ({ home }) => ({ REVEILLE_HOME: typeof home === 'string' ? home : undefined }),
    tolerant: true,
    run: async (context, flags, [file]) => (await import('../commands/backup.ts')).restore(context, flags, file!),
  });
}

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

export function addSpread(program: Command): void {
  addCommand<SpreadFlags>(program, {
    usage: 'spread',
    summary: 'deal the alarms of a PostgreSQL database out to buckets, and to the servers of Citus',
    example: 'reveille spread --buckets 64 --citus',
    options: (command) =>
      command
        .requiredOption('--buckets <n>', 'how many: 1 for one server, 64 or more for several (1 to 4096)')
        .option('--citus', 'hand the tables to Citus, which keeps each bucket on one of its workers')
        .option(
          '--to <uri>',
          'the database (default: CHRONOS_POSTGRES_URI, which shows no password in a process list)',
        ),
    run: async (context, flags) => (await import('../commands/spread.ts')).spreadAlarms(context, flags),
  });
}
