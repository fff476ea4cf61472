/** `doctor`, `init`, `open`, `service`, `status`, `memory`, `backup`, `migrate` and others: an installation and its data. */
import type { Command } from 'commander';
import type { BackupFlags, RestoreFlags } from '../commands/backup.ts';
import type { ConfigFlags } from '../commands/config.ts';
import type { InitFlags } from '../commands/init.ts';
import type { ForgetFlags, MemoryListFlags } from '../commands/memory.ts';
import type { MigrateFlags, ReshardFlags } from '../commands/migrate.ts';
import type { OpenFlags } from '../commands/open.ts';
import { EXPERIMENTAL_HELP } from '../service/experimental.ts';
import { addCommand, addGroup } from './command.ts';

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

const settings = { dataDir: 'NEO_DATA_DIR' };

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
        .option('--check <file>', 'verify a backup file; --json lists its content')
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
        .option('--check', 'verify the file and write nothing; --json lists its content')
        .option('--with-approver-key', "restore the approver's key if the backup has one and this computer has none")
        .option(
          '--skip-outside-links',
          'skip symbolic links that point outside the home, instead of rejecting the file',
        ),
    settings: { home: 'REVEILLE_HOME' },
    tolerant: true,
    run: async (context, flags, [file]) => (await import('../commands/backup.ts')).restore(context, flags, file!),
  });
}

const TO = [
  '--to <uri>',
  'the database (default: CHRONOS_POSTGRES_URI, which keeps a password out of the process list)',
] as const;

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
        .option(...TO)
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
        .option(...TO),
    run: async (context, flags) => (await import('../commands/migrate.ts')).reshardAlarms(context, flags),
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

const service = () => import('../commands/service.ts');

export function addService(program: Command): void {
  const group = addGroup(program, 'service', 'run "reveille up" in the background', [
    'reveille service install',
    'reveille service status',
  ]);
  addCommand<{ print?: boolean; boot?: boolean }>(group, {
    usage: 'install',
    summary: `install and start a service of systemd, launchd or the Task Scheduler (${EXPERIMENTAL_HELP})`,
    examples: ['reveille service install', 'reveille service install --boot'],
    options: (command) =>
      command
        .option('--boot', 'start with the computer, before a user logs in (systemd: lingering)')
        .option('--print', 'print the service file; change nothing'),
    run: async (context, flags) => (await service()).serviceInstall(context, flags),
  });
  addCommand(group, {
    usage: 'status',
    summary: 'show the state of the service, its version, the next fire and the last log line',
    examples: ['reveille service status', 'reveille service status --json'],
    run: async (context) => (await service()).serviceStatus(context),
  });
  addCommand<{ follow?: boolean; lines?: string }>(group, {
    usage: 'logs',
    summary: 'print the log of the service',
    examples: ['reveille service logs --lines 20', 'reveille service logs --follow'],
    options: (command) =>
      command.option('-f, --follow', 'continue with new lines').option('--lines <n>', 'number of lines (default: 100)'),
    run: async (context, flags) => (await service()).serviceLogs(context, flags),
  });
  addCommand(group, {
    usage: 'wake [on|off]',
    summary: `turn waking of the computer on or off for alarm set --wake-computer (${EXPERIMENTAL_HELP})`,
    examples: ['reveille service wake on', 'reveille service wake off'],
    run: async (context, _, [wanted]) => (await service()).serviceWake(context, wanted),
  });
  addCommand(group, {
    usage: 'restart',
    summary: 'restart the service; running agents continue',
    examples: ['reveille service restart', 'reveille service restart --json'],
    run: async (context) => (await service()).serviceRestart(context),
  });
  addCommand(group, {
    usage: 'uninstall',
    summary: 'remove the service and its programs; data stays',
    examples: ['reveille service uninstall', 'reveille service uninstall --json'],
    run: async (context) => (await service()).serviceUninstall(context),
  });
  addCommand(group, {
    usage: 'settle',
    summary: 'undo an interrupted upgrade; the service runs this before it starts',
    examples: ['reveille service settle'],
    hidden: true,
    run: async (context) => (await service()).serviceSettle(context),
  });
  addCommand(program, {
    usage: 'upgrade [version]',
    summary: 'install another version in the service: a version, a tag (default: latest) or an npm pack file',
    examples: ['reveille upgrade', 'reveille upgrade 0.2.0'],
    run: async (context, _, [version]) => (await service()).upgrade(context, version),
  });
}

/** `status`, `stop` and `logs`: the running installation, as a service or in a terminal. */
export function addStatus(program: Command): void {
  const commands = () => import('../commands/status.ts');
  addCommand(program, {
    usage: 'status',
    summary: 'show what runs, the next fire and waiting approvals',
    examples: ['reveille status', 'reveille status --json'],
    run: async (context) => (await commands()).status(context),
  });
  addCommand(program, {
    usage: 'stop',
    summary: 'stop "reveille up" or the service; alarms are kept',
    examples: ['reveille stop', 'reveille stop --json'],
    run: async (context) => (await commands()).stop(context),
  });
  addCommand<{ follow?: boolean; lines?: string }>(program, {
    usage: 'logs',
    summary: 'print the log of the service',
    examples: ['reveille logs --lines 20', 'reveille logs --follow'],
    options: (command) =>
      command.option('-f, --follow', 'continue with new lines').option('--lines <n>', 'number of lines (default: 100)'),
    run: async (context, flags) => (await commands()).logs(context, flags),
  });
}
