/** The table of cron, crontab(5): of a user, or with a column for the user in `/etc/crontab` and `/etc/cron.d`. */
import { parseCron } from '../../chronos/alarm/cron.ts';
import { isZone } from '../../kit/clock/zone.ts';
import { ReveilleError } from '../../wire/errors.ts';
import { badJob, type ImportContext, type Job, type JobList, nameFrom, shortHash } from './job.ts';

const HAS_USER = /^\/etc\/(?:crontab$|cron\.d\/)/;
/** `NAME = value`; the value may be in quotes, and have blanks around it. */
const SETTING = /^([A-Za-z_][A-Za-z0-9_]*)[ \t]*=(.*)/;
const LONGEST_RUN_SECONDS = 86_400;
const LONGEST_JITTER_MINUTES = 60;

const NOTES_OF_RUN = [
  "A command runs on your agent's machine, in its folder and sandbox, and ends after a day; cron ran it here, as the user of the table. With --as-messages, it wakes your agent instead.",
  'Standard output is the result of the fire; cron mails it.',
];
const NOTES_OF_MESSAGES = ['The alarm wakes your agent with the command as its message; cron ran it.'];

type Settings = { zone: string | undefined; shell: string; delayMinutes: number; variables: Map<string, string> };

/** A value without the quotes around it. */
const unquoted = (value: string) => /^(["'])(.*)\1$/s.exec(value)?.[2] ?? value;

/** Applies a line with a setting. */
function applySetting(
  settings: Settings,
  name: string,
  value: string,
  wrong: (problem: string) => ReveilleError,
): void {
  switch (name) {
    case 'CRON_TZ':
      if (value !== '' && !isZone(value))
        throw wrong(`CRON_TZ must be an IANA zone such as Europe/Berlin (got ${JSON.stringify(value)})`);
      settings.zone = value === '' ? undefined : value;
      return;
    case 'SHELL':
      settings.shell = value || '/bin/sh';
      return;
    case 'RANDOM_DELAY':
      if (!/^\d{1,4}$/.test(value)) throw wrong(`RANDOM_DELAY must be whole minutes (got ${JSON.stringify(value)})`);
      settings.delayMinutes = Number(value);
      return;
    default:
      settings.variables.set(name, value);
  }
}

/** The command and its standard input: an unescaped `%` ends the command, and further ones are line breaks. */
function commandOf(text: string): { command: string; input: string | undefined } {
  const parts = text.split(/(?<!\\)%/).map((part) => part.replaceAll(String.raw`\%`, '%'));
  const [command = '', ...lines] = parts;
  return { command: command.trim(), input: lines.length === 0 ? undefined : `${lines.join('\n')}\n` };
}

/** Fields of a range that cron picks a value from, as some crons have it: `0~59`. */
function picked(fields: string, seed: string): { fields: string; differs: string[] } {
  const differs: string[] = [];
  const chosen = fields.replace(/(?<![\d*])(\d{1,2})~(\d{1,2})(?!\d)/g, (range, first: string, last: string) => {
    const size = Math.max(1, Number(last) - Number(first) + 1);
    const value = Number(first) + (Number.parseInt(shortHash(`${seed} ${range}`).slice(0, 8), 16) % size);
    differs.push(`cron picks a value of ${range} at each start; the alarm keeps ${value}`);
    return String(value);
  });
  return { fields: chosen, differs };
}

type Line = { fields: string; user: string | undefined; rest: string };

function split(line: string, hasUser: boolean): Line | undefined {
  const [, fields, after = ''] =
    /^(@\w+)[ \t]+(.*)/s.exec(line) ?? /^((?:[^\s]+[ \t]+){4}[^\s]+)[ \t]+(.*)/s.exec(line) ?? [];
  if (fields === undefined) return undefined;
  if (!hasUser) return { fields, user: undefined, rest: after };
  const [, user, rest = ''] = /^(\S+)[ \t]+(.*)/s.exec(after) ?? [];
  return user === undefined ? undefined : { fields, user, rest };
}

function bodyOf(command: string, input: string | undefined, { shell, variables }: Settings, asMessages: boolean) {
  const message = input === undefined ? command : `${command}\n\n${input}`;
  if (asMessages) return { wake_message: message };
  const program = input === undefined ? command : 'printf %s "$1" | "$2" -c "$0"';
  const named = [...variables].map(([name, value]) => `${name}=${value}`);
  const prefix = named.length === 0 ? [] : ['/usr/bin/env', ...named];
  const argv = [...prefix, shell, '-c', program, ...(input === undefined ? [] : [command, input, shell])];
  return { wake_message: message, run: { argv, timeout_seconds: LONGEST_RUN_SECONDS } };
}

function jobOf(
  { fields, user, rest }: Line,
  settings: Settings,
  { zone: ownZone, asMessages }: ImportContext,
  wrong: (problem: string) => ReveilleError,
): Job {
  const { command, input } = commandOf(rest);
  if (command === '') throw wrong('the command is missing; write it after the five fields of the time');
  const { zone = ownZone, delayMinutes, variables } = settings;
  const id = shortHash([fields, zone, user ?? '', command, input ?? ''].join('\n'));
  const name = nameFrom(command, id);
  const differs: string[] = [];
  if (user !== undefined) differs.push(`cron ran it as ${user}; your agent runs it`);
  if (delayMinutes > LONGEST_JITTER_MINUTES)
    differs.push(`its RANDOM_DELAY of ${delayMinutes} minutes is cut to ${LONGEST_JITTER_MINUTES}`);
  const mail = variables.get('MAILTO');
  if (mail) differs.push(`cron mailed its output to ${mail}; use --deliver for a channel of yours`);
  if (/^@reboot$/i.test(fields))
    return { id, name, differs: [], omitted: '@reboot fires when the computer starts, which is no time' };
  const time = picked(fields, id);
  try {
    parseCron(time.fields);
  } catch (thrown) {
    if (thrown instanceof ReveilleError) throw wrong(thrown.message.replace(/^cron_expr: /, ''));
    throw thrown;
  }
  const jitter = Math.min(LONGEST_JITTER_MINUTES, delayMinutes) * 60;
  const own = new Map([...variables].filter(([variable]) => !/^MAIL(?:TO|FROM)$/.test(variable)));
  return {
    ...{ id, name, differs: [...time.differs, ...differs] },
    alarm: {
      ...{ kind: 'cron', cron_expr: time.fields, timezone: zone, label: name, catch_up: 'none' },
      ...(jitter > 0 && { jitter_seconds: jitter }),
      ...bodyOf(command, input, { ...settings, variables: own }, asMessages),
    },
  };
}

/** @throws ReveilleError for a line that cron would refuse */
export function crontabJobs(text: string, from: string, context: ImportContext): JobList {
  const settings: Settings = { zone: undefined, shell: '/bin/sh', delayMinutes: 0, variables: new Map() };
  const jobs: Job[] = [];
  const seen = new Map<string, number>();
  for (const [at, given] of text.split(/\r?\n/).entries()) {
    const line = given.replace(/^[ \t]+/, '');
    if (line === '' || line.startsWith('#')) continue;
    const wrong = (problem: string) => badJob(from, `line ${at + 1}`, problem);
    const [, name, value = ''] = SETTING.exec(line) ?? [];
    if (name !== undefined) {
      applySetting(settings, name, unquoted(value.trim()), wrong);
      continue;
    }
    // A leading hyphen keeps a line out of the log of some crons.
    const read = split(line.replace(/^-(?=[\d*@])/, ''), HAS_USER.test(from));
    if (read === undefined)
      throw wrong('a job must have a time, such as "0 9 * * 1-5" or @daily, and a command; or write NAME=value');
    const job = jobOf(read, settings, context, wrong);
    const count = (seen.get(job.id) ?? 0) + 1;
    seen.set(job.id, count);
    jobs.push(count === 1 ? job : { ...job, id: `${job.id}-${count}` });
  }
  const notes = context.asMessages ? NOTES_OF_MESSAGES : NOTES_OF_RUN;
  return { from, jobs, notes: [...notes, 'After downtime, missed times do not fire, as with cron.'] };
}
