/** `doctor`, `init`, `open`, `completion`, `memory …`, `backup`, `restore`, `migrate` and `reshard`. */

import type { Command } from 'commander';
import type { BackupFlags, RestoreFlags } from '../commands/backup.ts';
import type { ConfigFlags } from '../commands/config.ts';
import type { InitFlags } from '../commands/init.ts';
import type { ForgetFlags, MemoryListFlags } from '../commands/memory.ts';
import type { MigrateFlags } from '../commands/migrate.ts';
import type { OpenFlags } from '../commands/open.ts';
import type { ReshardFlags } from '../commands/reshard.ts';
import { addCommand, addGroup, type FlagValue } from './command.ts';

export function addDoctor(program: Command): void {
  addCommand(program, {
    usage: 'doctor',
    summary: 'check this installation and print remedies',
    examples: ['reveille doctor', 'reveille doctor --json'],
    tolerant: true,
    run: async (context) => (await import('../commands/doctor.ts')).doctor(context),
  });
}

export function addInit(program: Command): void {
  addCommand<InitFlags>(program, {
    usage: 'init',
    summary: 'write config.yaml and secrets for a team installation',
    examples: ['reveille init --postgres postgres://chronos@db.internal/chronos'],
    tolerant: true,
    options: (command) =>
      command
        .option('--postgres <address>', 'the PostgreSQL address for chronosd')
        .option('--force', 'replace an existing configuration and its secrets'),
    run: async (context, flags) => (await import('../commands/init.ts')).init(context, flags),
  });
}

export function addCompletion(program: Command): void {
  addCommand(program, {
    usage: 'completion <shell>',
    summary: 'print the completion script for bash, zsh or fish',
    examples: ['eval "$(reveille completion bash)"', 'reveille completion fish | source'],
    tolerant: true,
    run: async (context, _flags, [shell]) =>
      (await import('../commands/completion.ts')).completion(context, program, shell!),
  });
}

export function addOpen(program: Command): void {
  addCommand<OpenFlags>(program, {
    usage: 'open',
    summary: 'open the console in the browser',
    examples: ['reveille open', 'reveille open --print'],
    options: (command) =>
      command
        .option('--print', 'print the address only; it works once')
        .option(
          '--url <address>',
          'the public listener of another router; set your token in REVEILLE_TOKEN (default: REVEILLE_URL)',
        ),
    run: async (context, flags) => (await import('../commands/open.ts')).open(context, flags),
  });
}

const load = () => import('../commands/memory.ts');

const dataDirOption = (command: Command) =>
  command.option('--data-dir <folder>', "Neo's data folder (default: the one of this installation)");

const settings = ({ dataDir }: Record<string, FlagValue>) => ({
  NEO_DATA_DIR: typeof dataDir === 'string' ? dataDir : undefined,
});

export function addMemory(program: Command): void {
  const memory = addGroup(program, 'memory', "list, forget and export Neo's memories", [
    'reveille memory list --query "home town"',
    'reveille memory export > memories.jsonl',
  ]);
  addCommand<MemoryListFlags>(memory, {
    usage: 'list',
    summary: 'list or search memories, newest first',
    examples: ['reveille memory list', 'reveille memory list --query "home town"'],
    options: (command) =>
      dataDirOption(command)
        .option('--query <words>', 'only memories that match these words, best first')
        .option('--kind <kind>', 'only this kind: fact, event, preference, goal, pattern')
        .option('--limit <n>', 'at most this many (default: 100)')
        .option('--all', 'all memories, contradicted ones included'),
    settings,
    run: async (context, flags) => (await load()).memoryList(context, flags),
  });
  addCommand<ForgetFlags>(memory, {
    usage: 'forget [id]',
    summary: 'delete a memory permanently',
    examples: ['reveille memory forget 01987c1e-2f', 'reveille memory forget --all --yes'],
    options: (command) =>
      dataDirOption(command).option('--all', 'delete all memories').option('--yes', 'with --all: confirm'),
    settings,
    run: async (context, flags, [id]) => (await load()).memoryForget(context, flags, id),
  });
  addCommand(memory, {
    usage: 'export',
    summary: 'print all memories as JSON lines, with their source turns',
    examples: ['reveille memory export', 'reveille memory export > memories.jsonl'],
    options: dataDirOption,
    settings,
    run: async (context) => (await load()).memoryExport(context),
  });
}

export function addBackup(program: Command): void {
  addCommand<BackupFlags>(program, {
    usage: 'backup [file]',
    summary: 'write an encrypted backup while everything runs',
    examples: ['reveille backup', 'reveille backup /media/disk/reveille.backup'],
    options: (command) =>
      command
        .option('--check <file>', 'verify a backup file and list its content')
        .option('--with-approver-key', "include the approver's key"),
    run: async (context, flags, [file]) => (await import('../commands/backup.ts')).backup(context, flags, file),
  });
  addCommand<RestoreFlags>(program, {
    usage: 'restore <file>',
    summary: 'restore a backup into a new home folder',
    examples: ['reveille restore reveille.backup', 'reveille restore reveille.backup --home ~/.reveille'],
    options: (command) =>
      command
        .option('--home <folder>', 'the new home: an empty or missing folder (default: REVEILLE_HOME)')
        .option('--check', 'verify the file and list its content; write nothing')
        .option('--with-approver-key', "restore the approver's key if the backup has one and this computer has none")
        .option(
          '--skip-outside-links',
          'skip symbolic links that point outside the home, instead of rejecting the file',
        ),
    settings: ({ home }) => ({ REVEILLE_HOME: typeof home === 'string' ? home : undefined }),
    tolerant: true,
    run: async (context, flags, [file]) => (await import('../commands/backup.ts')).restore(context, flags, file!),
  });
}

export function addMigrate(program: Command): void {
  addCommand<MigrateFlags>(program, {
    usage: 'migrate',
    summary: 'move alarms from SQLite to PostgreSQL',
    examples: [
      'reveille migrate --dry-run --to postgres://reveille@db.example/chronos',
      'reveille migrate --to postgres://reveille@db.example/chronos',
    ],
    options: (command) =>
      command
        .option(
          '--to <uri>',
          'the database (default: CHRONOS_POSTGRES_URI, which keeps a password out of the process list)',
        )
        .option('--from <file>', 'the SQLite file (default: chronos.db in CHRONOS_DATA_DIR)')
        .option('--dry-run', 'print what would be moved; change nothing')
        .option('--abandon', 'cancel the move and fire alarms from the SQLite file again')
        .option('--discard', 'with --abandon: even when the database has changed or is unreachable'),
    run: async (context, flags) => (await import('../commands/migrate.ts')).migrate(context, flags),
  });
}

export function addReshard(program: Command): void {
  addCommand<ReshardFlags>(program, {
    usage: 'reshard',
    // The name before 0.2.0; it prints a warning.
    formerly: 'spread',
    summary: 'change the number of buckets in PostgreSQL, or distribute them with Citus',
    examples: ['reveille reshard --buckets 64', 'reveille reshard --buckets 64 --citus'],
    options: (command) =>
      command
        .requiredOption('--buckets <n>', 'number of buckets, 1 to 4096: 1 for one replica, 64 or more for several')
        .option('--citus', 'distribute the tables with Citus; each bucket is on one worker')
        .option(
          '--to <uri>',
          'the database (default: CHRONOS_POSTGRES_URI, which keeps a password out of the process list)',
        ),
    run: async (context, flags) => (await import('../commands/reshard.ts')).reshardAlarms(context, flags),
  });
}

export function addConfig(program: Command): void {
  addCommand<ConfigFlags>(program, {
    usage: 'config [name] [value]',
    summary: 'show or change settings',
    examples: ['reveille config', 'reveille config ROUTER_PORT 9088'],
    options: (command) => command.option('--unset', 'remove the setting from config.yaml'),
    run: async (context, flags, [name, value]) =>
      (await import('../commands/config.ts')).config(context, flags, name, value),
  });
}

export function addDocs(program: Command): void {
  addCommand(program, {
    usage: 'docs [topic...]',
    summary: 'print the documentation offline',
    examples: ['reveille docs', 'reveille docs first alarm'],
    tolerant: true,
    run: async (context, _flags, words) => (await import('../commands/docs.ts')).docs(context, words),
  });
}
