/** `alarm …`: setting alarms and looking after them. */

import type { Command } from 'commander';
import type { AlarmAction, ListFlags } from '../commands/alarm.ts';
import type { EditFlags, SetFlags } from '../commands/alarm-set.ts';
import type { WatchFlags } from '../commands/alarm-watch.ts';
import { addCommand, addGroup } from './command.ts';

const alarmOptions = (command: Command) =>
  command
    .option('--in <duration>', 'ring after this long: 90s, 1h30m, "2 hours"')
    .option('--at <instant>', 'ring at this time: "tomorrow 9am", 2026-12-01T09:00, 2026-12-01T09:00:00Z')
    .option('--cron <expression>', 'ring again and again: "0 9 * * 1-5", @hourly, "@every 90s"')
    .option('--zone <name>', "time zone in which times are read, such as Europe/Berlin (default: this machine's)")
    .option('--until <instant>', 'last instant at which a series may ring')
    .option('--times <n>', 'ring a series this often at most')
    .option('--label <text>', 'a short name for people')
    .option('--conversation <id>', 'the conversation that the message goes into')
    .option('--payload <json>', 'data that reaches the agent digit for digit')
    .option('--payload-file <file>', 'the same from a file; - is standard input')
    .option('--message-file <file>', 'the message from a file, byte for byte; - is standard input')
    .option('--max-failures <n>', 'give an occurrence up after this many failed attempts')
    .option('--max-lateness <duration>', 'rather miss an occurrence than ring later than this')
    .option('--jitter <duration>', 'ring up to this much later, to spread load')
    .option('--as <name>', 'whose words they are (default: who is logged in)')
    .option('--urgent', 'ring in quiet hours too')
    .option('--wake-computer', 'wake the computer from its sleep for it, where "service wake" is on');

const setOptions = (command: Command) =>
  alarmOptions(command).option('--key <text>', 'idempotency key: repeating the command sets no second alarm');

const editOptions = (command: Command) =>
  alarmOptions(command)
    .option('--message <text>', 'the message')
    .option(
      '--clear <names>',
      'take away what was set: label, conversation, zone, until, times, max-lateness, urgent, wake-computer, …',
    );

const ACTIONS: Readonly<Record<AlarmAction, string>> = {
  cancel: 'cancel an alarm for good',
  pause: 'hold an alarm back until it is resumed',
  resume: 'take the schedule of a paused alarm up again',
  trigger: 'ring now, beside the schedule',
  redrive: 'try a failed alarm again, under the same fire id',
};

export function addAlarm(program: Command): void {
  const alarm = addGroup(program, 'alarm', 'set alarms and look after them');
  addCommand<SetFlags>(alarm, {
    usage: 'set [message] [when]',
    summary:
      'set an alarm that wakes the agent with a message, once or again and again: "tomorrow 9am", "in 2 hours", "every weekday at 9"',
    example: 'reveille alarm set "Look at the build" "every weekday at 9"',
    options: setOptions,
    run: async (context, flags, [message, when]) =>
      (await import('../commands/alarm-set.ts')).alarmSet(context, flags, message, when),
  });
  addCommand<ListFlags>(alarm, {
    usage: 'list',
    summary: 'list alarms: what is ahead first, by time',
    example: 'reveille alarm list --all',
    options: (command) =>
      command
        .option('--status <status>', 'only active, paused, fired, cancelled or failed ones')
        .option('--kind <kind>', 'only once or cron ones')
        .option('--limit <n>', 'how many to show (default: 100)')
        .option('--all', 'all of them, those that are over included'),
    run: async (context, flags) => (await import('../commands/alarm.ts')).alarmList(context, flags),
  });
  addCommand<{ limit?: string }>(alarm, {
    usage: 'show <id>',
    summary: 'show an alarm and how it has rung',
    example: 'reveille alarm show 019ed2b4-7c11',
    options: (command) => command.option('--limit <n>', 'how many attempts to show (default: 20)'),
    run: async (context, flags, [id]) => (await import('../commands/alarm.ts')).alarmShow(context, flags, id!),
  });
  addCommand<EditFlags>(alarm, {
    usage: 'edit <id>',
    summary: 'change an alarm; what is not named stays as it is',
    example: 'reveille alarm edit 019ed2b4-7c11 --in 2h --label "the build"',
    options: editOptions,
    run: async (context, flags, [id]) => (await import('../commands/alarm-set.ts')).alarmEdit(context, flags, id!),
  });
  for (const [action, summary] of Object.entries(ACTIONS) as [AlarmAction, string][]) {
    addCommand(alarm, {
      usage: `${action} <id>`,
      summary,
      example: `reveille alarm ${action} 019ed2b4-7c11`,
      run: async (context, _flags, [id]) => (await import('../commands/alarm.ts')).alarmAct(context, action, id!),
    });
  }
  addCommand<WatchFlags>(alarm, {
    usage: 'watch',
    summary: 'print a line whenever an alarm rings or fails, until Ctrl-C',
    example: 'reveille alarm watch',
    options: (command) => command.option('--id <id>', 'only this alarm; ends when it has come to its end'),
    run: async (context, flags) => (await import('../commands/alarm-watch.ts')).alarmWatch(context, flags),
  });
  alarm.addHelpText(
    'after',
    '\nAn <id> may be shortened to its first characters, as "reveille alarm list" does, or be a label that only one alarm has.',
  );
  alarm.addHelpText(
    'after',
    '\nExample:\n  $ reveille alarm set "Stand-up in five minutes" --cron "55 8 * * 1-5" --zone Europe/Berlin',
  );
}
