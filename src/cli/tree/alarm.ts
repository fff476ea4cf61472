/** `alarm …`: set, list, change and watch alarms. */
import type { Command } from 'commander';
import type { AlarmAction, ListFlags } from '../commands/alarm.ts';
import type { BackfillFlags } from '../commands/alarm-backfill.ts';
import type { PreviewFlags } from '../commands/alarm-preview.ts';
import type { EditFlags, SetFlags } from '../commands/alarm-set.ts';
import type { WatchFlags } from '../commands/alarm-watch.ts';
import type { FeedFlags } from '../commands/calendar-feed.ts';
import type { ImportFlags } from '../commands/import.ts';
import { FLAGGED_FIELDS, type FlaggedField, fieldOptions } from '../flags/alarm-flags.ts';
import { CONDITION_GROUPS, partOptions } from '../flags/condition-flags.ts';
import { addCommand, addGroup } from './command.ts';

function addFields(command: Command, names: readonly FlaggedField[]): Command {
  for (const option of fieldOptions(names)) command.option(...option);
  return command;
}

const FIRST_FIELDS = ['ends_at', 'max_fires', 'label', 'conversation_id'] as const satisfies FlaggedField[];
const LIMITS = ['max_failures', 'max_lateness_seconds', 'jitter_seconds'] as const satisfies FlaggedField[];
const OTHER_FIELDS = FLAGGED_FIELDS.filter((name) => !([...FIRST_FIELDS, ...LIMITS] as string[]).includes(name));

function timeOptions(command: Command): Command {
  return command
    .option('--in <duration>', 'fire after this long: 90s, 1h30m, "2 hours"')
    .option('--at <instant>', 'fire at this time: "tomorrow 9am", 2026-12-01T09:00, 2026-12-01T09:00:00Z')
    .option('--cron <expression>', 'fire on a schedule: "0 9 * * 1-5", @hourly, "@every 90s"')
    .option('--rrule <rules>', 'fire by rules of RFC 5545: "RRULE:FREQ=WEEKLY;INTERVAL=2;BYDAY=MO"')
    .option('--zone <name>', "time zone in which times are read, such as Europe/Berlin (default: this machine's)");
}

function alarmOptions(command: Command): Command {
  addFields(timeOptions(command), FIRST_FIELDS)
    .option('--payload <json>', 'JSON that is delivered unchanged')
    .option('--payload-file <file>', 'the payload from a file; - reads standard input')
    .option('--message-file <file>', 'the message from a file, unchanged; - reads standard input');
  addFields(command, LIMITS).option('--as <name>', 'name of the author of the message (default: the logged-in user)');
  return addFields(command, OTHER_FIELDS);
}

/** Fields that change when an alarm fires. */
const PREVIEWED = [
  ...(['ends_at', 'max_fires', 'holidays', 'jitter_seconds', 'catch_up', 'catch_up_window_seconds'] as const),
  ...(['overlap', 'pause_on_failure', 'max_lateness_seconds'] as const),
] satisfies FlaggedField[];

const previewOptions = (command: Command) =>
  addFields(timeOptions(command), PREVIEWED)
    .option('--count <n>', 'how many fires to show, 1 to 100 (default: 10)')
    .option('--from <instant>', 'fires from this date or time on (default: now)');

/** Checks, events, chains and commands, in groups of their own. */
function conditionOptions(command: Command): Command {
  for (const [title, fields] of CONDITION_GROUPS) {
    command.optionsGroup(title);
    for (const option of partOptions(fields)) command.option(...option);
  }
  return command;
}

const setOptions = (command: Command) =>
  conditionOptions(
    alarmOptions(command).option('--key <text>', 'idempotency key: a repeated command sets no second alarm'),
  );

const editOptions = (command: Command) =>
  conditionOptions(
    alarmOptions(command)
      .option('--message <text>', 'the message')
      .option(
        '--clear <names>',
        'remove these fields: label, conversation, zone, until, times, urgent, wake-computer, check, run, …',
      ),
  );

const ACTIONS: Readonly<Record<AlarmAction, string>> = {
  cancel: 'cancel an alarm permanently',
  pause: 'stop an alarm until it is resumed',
  resume: 'continue the schedule of a paused alarm',
  trigger: 'fire now, in addition to the schedule',
  redrive: 'deliver a failed occurrence again, with the same fire id',
};

export function addCalendar(program: Command): void {
  const load = () => import('../commands/calendar.ts');
  const calendar = addGroup(
    program,
    'calendar',
    'install calendars of days on which alarms do not fire, and add feeds for calendar apps',
    [
      'reveille calendar add de-berlin holidays.ics',
      'reveille alarm set "Stand-up" "every weekday at 8:55" --holidays de-berlin',
    ],
  );
  addCommand(calendar, {
    usage: 'add <name> <file>',
    summary: 'install an iCalendar file (.ics); replaces one with this name',
    examples: ['reveille calendar add de-berlin holidays.ics'],
    run: async (context, _flags, [name, file]) => (await load()).calendarAdd(context, name!, file!),
  });
  addCommand(calendar, {
    usage: 'list',
    summary: 'list the installed calendars and the days that they cover',
    examples: ['reveille calendar list', 'reveille calendar list --json'],
    run: async (context) => (await load()).calendarList(context),
  });
  addCommand(calendar, {
    usage: 'remove <name>',
    summary: 'remove a calendar; its alarms then fire on its days too',
    examples: ['reveille calendar remove de-berlin'],
    run: async (context, _flags, [name]) => (await load()).calendarRemove(context, name!),
  });
  const feeds = () => import('../commands/calendar-feed.ts');
  const feed = addGroup(calendar, 'feed', 'let calendar apps show when your alarms fire', [
    'reveille calendar feed add phone',
    'reveille calendar feed list',
  ]);
  addCommand<FeedFlags>(feed, {
    usage: 'add [name]',
    summary: 'add a feed and print its secret address, once',
    examples: ['reveille calendar feed add phone', 'reveille calendar feed add laptop --messages'],
    options: (command) => command.option('--messages', 'show the messages of alarms, not only their labels'),
    run: async (context, flags, [name]) => (await feeds()).feedAdd(context, flags, name),
  });
  addCommand(feed, {
    usage: 'list',
    summary: 'list your feeds',
    examples: ['reveille calendar feed list', 'reveille calendar feed list --json'],
    run: async (context) => (await feeds()).feedList(context),
  });
  addCommand(feed, {
    usage: 'revoke <id>',
    summary: 'revoke a feed: its address ends',
    examples: ['reveille calendar feed revoke 0123456789ab'],
    run: async (context, _flags, [id]) => (await feeds()).feedRevoke(context, id!),
  });
}

export function addImport(program: Command): void {
  addCommand<ImportFlags>(program, {
    usage: 'import <source> [file]',
    summary: 'show the jobs of openclaw, claude, crontab or systemd as alarms, and set them with --apply',
    examples: ['reveille import crontab', 'reveille import openclaw ~/.openclaw/cron/jobs.json --apply'],
    options: (command) =>
      command
        .option('--apply', 'set the alarms; an import that is repeated sets none twice')
        .option('--zone <name>', "time zone of jobs that name none (default: this machine's)")
        .option('--conversation <id>', 'conversation of the alarms (default: one of their own)')
        .option('--as-messages', 'commands wake your agent as a message, instead of being run')
        .option('--without-gates', 'import jobs without the conditions that decided whether they run')
        .option('--system', 'the lines of the crontab name a user after the time')
        .option('--user-table', 'the lines of the crontab name no user')
        .option('--as <name>', 'name of the author of the alarms (default: the logged-in user)'),
    run: async (context, flags, [source, file]) =>
      (await import('../commands/import.ts')).importJobs(context, flags, source!, file),
  });
}

export function addAlarm(program: Command): void {
  const alarm = addGroup(program, 'alarm', 'set, list and change alarms', [
    'reveille alarm set "Check the build" "in 10 minutes"',
    'reveille alarm list',
  ]);
  addCommand<SetFlags>(alarm, {
    usage: 'set [message] [when]',
    summary: 'set an alarm: "tomorrow 9am", "in 2 hours", "every weekday at 9"',
    examples: [
      'reveille alarm set "Check the build" "in 10 minutes"',
      'reveille alarm set "Stand-up in five minutes" "every weekday at 8:55" --zone Europe/Berlin',
      'reveille alarm set "Read the feed" "every 15 minutes" --check-url https://example.com/feed --check-changed',
      'reveille alarm set "Review it" --on github --filter /body/action=opened --quiet-for 30s --repeat',
      'reveille alarm set "Summarise the night" --after nightly --after-outcome any',
      'reveille alarm set "The backup is missing" --expect-every 1d --grace 1h',
      'reveille alarm set "Backup" "every day at 3:30" --run "./backup.sh --all"',
    ],
    options: setOptions,
    run: async (context, flags, [message, when]) =>
      (await import('../commands/alarm-set.ts')).alarmSet(context, flags, message, when),
  });
  addCommand<PreviewFlags>(alarm, {
    usage: 'preview [when]',
    summary: 'show when an alarm would fire, without setting it',
    examples: [
      'reveille alarm preview "every other monday at 10"',
      'reveille alarm preview "every weekday at 2:30" --zone Europe/Berlin --from 2027-03-26 --count 5',
    ],
    options: previewOptions,
    run: async (context, flags, [when]) =>
      (await import('../commands/alarm-preview.ts')).alarmPreview(context, flags, when),
  });
  addCommand<ListFlags>(alarm, {
    usage: 'list',
    summary: 'list alarms, the next one first',
    examples: ['reveille alarm list', 'reveille alarm list --status failed --json'],
    options: (command) =>
      command
        .option('--status <status>', 'only active, paused, fired, cancelled or failed ones')
        .option('--kind <kind>', 'only once, cron, rrule or event ones')
        .option('--limit <n>', 'how many to show (default: 100)')
        .option('--all', 'all alarms, finished ones included'),
    run: async (context, flags) => (await import('../commands/alarm.ts')).alarmList(context, flags),
  });
  addCommand<{ limit?: string }>(alarm, {
    usage: 'show <id>',
    summary: 'show an alarm and its fires',
    examples: ['reveille alarm show 019ed2b4-7c11', 'reveille alarm show stand-up --limit 5'],
    options: (command) => command.option('--limit <n>', 'how many attempts to show (default: 20)'),
    run: async (context, flags, [id]) => (await import('../commands/alarm.ts')).alarmShow(context, flags, id!),
  });
  addCommand<EditFlags>(alarm, {
    usage: 'edit <id> [when]',
    summary: 'change the time or other fields of an alarm',
    examples: [
      'reveille alarm edit 019ed2b4-7c11 "in 2 hours" --label "the build"',
      'reveille alarm edit stand-up --clear zone,until',
      'reveille alarm edit nightly --max-skips 7 --wake-at-least 1d',
    ],
    options: editOptions,
    run: async (context, flags, [id, when]) =>
      (await import('../commands/alarm-set.ts')).alarmEdit(context, flags, id!, when),
  });
  for (const [action, summary] of Object.entries(ACTIONS) as [AlarmAction, string][]) {
    addCommand(alarm, {
      usage: `${action} <id>`,
      summary,
      examples: [`reveille alarm ${action} 019ed2b4-7c11`, `reveille alarm ${action} stand-up`],
      run: async (context, _flags, [id]) => (await import('../commands/alarm.ts')).alarmAct(context, action, id!),
    });
  }
  addCommand<BackfillFlags>(alarm, {
    usage: 'backfill <id>',
    summary: 'fire a series for instants of the past that were not delivered',
    examples: [
      'reveille alarm backfill stand-up --from 2026-11-20 --dry-run',
      'reveille alarm backfill 019ed2b4-7c11 --from "2026-11-20 09:00" --to "2026-11-23 09:00" --yes',
    ],
    options: (command) =>
      command
        .option('--from <instant>', 'from this date or time on')
        .option('--to <instant>', 'before this date or time (default: now)')
        .option('--zone <name>', "time zone of --from and --to (default: this machine's)")
        .option('--dry-run', 'only say how many fires there are')
        .option('--yes', 'do not ask; even if there are more than 1,000 fires'),
    run: async (context, flags, [id]) =>
      (await import('../commands/alarm-backfill.ts')).alarmBackfill(context, flags, id!),
  });
  addCommand<WatchFlags>(alarm, {
    usage: 'watch',
    summary: 'print a line for each fire and failure, until Ctrl-C',
    examples: ['reveille alarm watch', 'reveille alarm watch --id stand-up --json'],
    options: (command) => command.option('--id <id>', 'only this alarm; exits after its last fire'),
    run: async (context, flags) => (await import('../commands/alarm-watch.ts')).alarmWatch(context, flags),
  });
  alarm.addHelpText(
    'after',
    '\nAn <id> is the first characters of the id, as "reveille alarm list" shows them, or a unique label.',
  );
}
