/** The table of cron, crontab(5): of a user, or with a column for the user in `/etc/crontab` and `/etc/cron.d`. */
import { resolve } from 'node:path';
import { parseCron } from '../../chronos/alarm/cron.ts';
import { isZone } from '../../kit/clock/zone.ts';
import { ReveilleError } from '../../wire/errors.ts';
import { UsageError } from '../flags/usage-error.ts';
import { badFile, badJob, eachJob, type ImportContext, type Job, type JobList, nameFrom, shortHash } from './job.ts';

const SYSTEM_TABLE = /^\/etc\/(?:crontab$|cron\.d\/)/;
const USER_TABLE = /^\/var\/spool\/cron\//;
/** Words of the shell that are no programs. */
const SHELL_WORDS = new Set(
  '. case cd command eval exec export for if let set source trap type ulimit umask until wait while'.split(' '),
);
const LONGEST_RUN_SECONDS = 86_400;
const LONGEST_JITTER_MINUTES = 60;

const NOTES_OF_RUN = [
  "A command runs on your agent's machine, in its folder and sandbox, and ends after a day; cron ran it here, as the user of the table. With --as-messages, it wakes your agent instead.",
  'Standard output is the result of the fire; cron mails it.',
];
const NOTES_OF_MESSAGES = ['The alarm wakes your agent with the command as its message; cron ran it.'];
const NOTE_OF_USERS =
  'Each line names a user of this computer after its time, so the file is read as a system crontab. If these words are commands, import it with --user-table.';

type Settings = {
  /** `undefined` is the zone of the computer; `wrong` is why the lines below have none. */
  zone: string | { readonly wrong: string } | undefined;
  shell: string;
  delayMinutes: number;
  /** Settings that are not carried over, as sentences. */
  differs: Map<string, string>;
  variables: Map<string, string>;
};

const isBlank = (character: string | undefined) => character === ' ' || character === '\t';

/** The index of the first blank, or of the first other character, from an index on. Loops stay linear in long lines. */
function endOf(text: string, from: number, blanks: boolean): number {
  let at = from;
  while (at < text.length && isBlank(text[at]) === blanks) at++;
  return at;
}

/** Without the blanks at its ends. */
function trimmed(text: string): string {
  let end = text.length;
  while (end > 0 && isBlank(text[end - 1])) end--;
  return text.slice(endOf(text, 0, true), end);
}

/** A value without the quotes around it. */
function unquoted(value: string): string {
  const [quote = ''] = value;
  return value.length > 1 && `"'`.includes(quote) && value.endsWith(quote) ? value.slice(1, -1) : value;
}

/** `NAME = value` as cron reads it: a name is any word, or in quotes. */
function settingIn(line: string): { name: string; value: string } | undefined {
  const quote = line[0] === '"' || line[0] === "'" ? line[0] : undefined;
  let end = quote === undefined ? 0 : line.indexOf(quote, 1);
  if (end < 0) return undefined;
  if (quote === undefined) while (end < line.length && !isBlank(line[end]) && line[end] !== '=') end++;
  const name = quote === undefined ? line.slice(0, end) : line.slice(1, end);
  const equals = endOf(line, quote === undefined ? end : end + 1, true);
  return name === '' || line[equals] !== '=' ? undefined : { name, value: trimmed(line.slice(equals + 1)) };
}

/** Applies a line with a setting. */
function applySetting(settings: Settings, name: string, value: string): void {
  const { differs, variables } = settings;
  switch (name) {
    case 'CRON_TZ':
      settings.zone = value === '' ? undefined : value;
      if (value !== '' && !isZone(value))
        settings.zone = { wrong: `CRON_TZ=${value} above it is no IANA zone such as Europe/Berlin` };
      return;
    case 'SHELL':
      settings.shell = value || '/bin/sh';
      return;
    case 'RANDOM_DELAY': {
      const isMinutes = /^\d{1,4}$/.test(value);
      settings.delayMinutes = isMinutes ? Number(value) : 0;
      if (isMinutes) differs.delete(name);
      else differs.set(name, `RANDOM_DELAY=${value} is not whole minutes, and is not carried over`);
      return;
    }
    case 'MAILTO':
      if (value === '') differs.delete(name);
      else differs.set(name, `cron mailed its output to ${value}; use --deliver for a channel of yours`);
      return;
    case 'HOME':
      differs.set(name, `cron ran it in ${value}; it runs in the folder of your agent's machine`);
      variables.set(name, value);
      return;
    case 'MAILFROM':
    case 'CONTENT_TYPE':
    case 'CONTENT_TRANSFER_ENCODING':
      differs.set(name, `${name}=${value} is not carried over`);
      return;
    default:
      // It would be an option of env(1).
      if (name.startsWith('-')) differs.set(name, `${name}=${value} is not carried over`);
      else variables.set(name, value);
  }
}

/** The command and its standard input: an unescaped `%` ends the command, and further ones are line breaks. */
function commandOf(text: string): { command: string; input: string | undefined } {
  const parts = text.split(/(?<!\\)%/).map((part) => part.replaceAll(String.raw`\%`, '%'));
  const [command = '', ...lines] = parts;
  return { command: command.trim(), input: lines.length === 0 ? undefined : `${lines.join('\n')}\n` };
}

const LOWEST = [0, 0, 1, 1, 0];
const HIGHEST = [59, 23, 31, 12, 6];

/**
 * The fields as alarms read them. Some crons pick a value of a range, `0~59`, and cron takes a step that is larger than
 * its field, which leaves the first value.
 */
function readFields(fields: string, seed: string): { fields: string; differs: string[] } {
  if (fields.startsWith('@')) return { fields, differs: [] };
  const differs: string[] = [];
  const read = fields.split(/[ \t]+/).map((field, index) => {
    const entries = field.split(',').map((entry) => {
      const random = /^(\d{0,2})~(\d{0,2})$/.exec(entry);
      if (random) {
        const [first, last] = [Number(random[1] || LOWEST[index]), Number(random[2] || HIGHEST[index])];
        if (first > last) throw badJob(`${JSON.stringify(entry)} runs backwards; write the lower value first`);
        const value = first + (Number.parseInt(shortHash(`${seed} ${entry}`).slice(0, 8), 16) % (last - first + 1));
        differs.push(`cron picks a value of ${entry} at each start; the alarm keeps ${value}`);
        return String(value);
      }
      const [range = '', step = ''] = entry.split('/');
      const size = HIGHEST[index]! - LOWEST[index]! + 1;
      return /^\d{1,9}$/.test(step) && Number(step) > size ? `${range}/${size}` : entry;
    });
    return entries.join(',');
  });
  return { fields: read.join(' '), differs };
}

/** The words of a line: its time, and the rest. */
function timeIn(line: string): { fields: string; rest: string } | undefined {
  let end = endOf(line, 0, false);
  for (let count = line[0] === '@' ? 5 : 1; count < 5; count++) end = endOf(line, endOf(line, end, true), false);
  const rest = trimmed(line.slice(end));
  return rest === '' ? undefined : { fields: line.slice(0, end), rest };
}

/** The first word, and the rest. */
function firstWord(text: string): { word: string; rest: string } {
  const end = endOf(text, 0, false);
  return { word: text.slice(0, end), rest: trimmed(text.slice(end)) };
}

/** The program of a simple command; `undefined` where only the shell knows it. */
function programOf(command: string): string | undefined {
  const { word } = firstWord(command);
  return /^[\w./+-]+$/.test(word) && !SHELL_WORDS.has(word) ? word : undefined;
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

function jobOf(line: string, hasUser: boolean, settings: Settings, { zone: ownZone, asMessages }: ImportContext): Job {
  const read = timeIn(line);
  if (read === undefined)
    throw badJob('a job must have a time, such as "0 9 * * 1-5" or @daily, and a command; or write NAME=value');
  const { fields } = read;
  const { word: user, rest } = hasUser ? firstWord(read.rest) : { word: undefined, rest: read.rest };
  const { command, input } = commandOf(rest);
  if (command === '')
    throw badJob(`the command is missing; write it after ${hasUser ? 'the user' : 'the five fields of the time'}`);
  const { zone: given, delayMinutes } = settings;
  const zone = given ?? ownZone;
  const id = shortHash([fields, typeof zone === 'string' ? zone : '', user ?? '', command, input ?? ''].join('\n'));
  const name = nameFrom(command, id);
  if (/^@reboot$/i.test(fields))
    return { id, name, differs: [], omitted: '@reboot fires when the computer starts, which is no time' };
  if (typeof zone !== 'string') throw badJob(zone.wrong);
  const time = readFields(fields, id);
  try {
    parseCron(time.fields);
  } catch (thrown) {
    if (thrown instanceof ReveilleError) throw badJob(thrown.message.replace(/^cron_expr: /, ''));
    throw thrown;
  }
  const differs = [
    ...time.differs,
    ...(user === undefined ? [] : [`cron ran it as ${user}; your agent runs it`]),
    ...(delayMinutes > LONGEST_JITTER_MINUTES
      ? [`its RANDOM_DELAY of ${delayMinutes} minutes is cut to ${LONGEST_JITTER_MINUTES}`]
      : []),
    ...settings.differs.values(),
  ];
  const jitter = Math.min(LONGEST_JITTER_MINUTES, delayMinutes) * 60;
  return {
    ...{ id, name, differs, needs: { program: programOf(command), searchPath: settings.variables.get('PATH') } },
    alarm: {
      ...{ kind: 'cron', cron_expr: time.fields, timezone: zone, label: name, catch_up: 'none' },
      ...(jitter > 0 && { jitter_seconds: jitter }),
      ...bodyOf(command, input, settings, asMessages),
    },
  };
}

type Line = { readonly text: string; readonly number: number };

/**
 * Whether the lines have a column for the user. A user that is also a program, such as `mail`, may be either.
 *
 * @throws UsageError when only some lines look so
 */
function userColumn(lines: readonly Line[], from: string, { isUser, isProgram }: ImportContext): boolean {
  const words = lines.flatMap(({ text, number }) => {
    const read = timeIn(text);
    if (read === undefined) return [];
    const { word, rest } = firstWord(read.rest);
    const mayBeUser = rest !== '' && isUser(word);
    const { word: next } = firstWord(rest);
    // No program here, before another program: it may be the user of another computer.
    const isForeign =
      /^[a-z_][\w-]*$/.test(word) && !SHELL_WORDS.has(word) && !isProgram(word) && (next[0] === '/' || isProgram(next));
    return [{ number, word, mayBeUser, isOnlyUser: (mayBeUser && !isProgram(word)) || (!mayBeUser && isForeign) }];
  });
  const [first] = words.filter(({ isOnlyUser }) => isOnlyUser);
  if (first === undefined) return false;
  if (words.every(({ mayBeUser }) => mayBeUser)) return true;
  throw new UsageError(
    `${from}, line ${first.number}: "${first.word}" may be the user of a system crontab, or a command; import it with --system or --user-table`,
  );
}

/** @throws ReveilleError for a file that is no table of cron; UsageError when it must be asked whether it names users */
export function crontabJobs(text: string, from: string, context: ImportContext): JobList {
  const lines = text
    .split('\n')
    .map((line, at): Line => ({ text: trimmed(line.endsWith('\r') ? line.slice(0, -1) : line), number: at + 1 }))
    .filter(({ text: line }) => line !== '' && !line.startsWith('#'));
  const entries = lines.map((line) => ({ ...line, setting: settingIn(line.text) }));
  const jobLines = entries
    .filter(({ setting }) => setting === undefined)
    // A leading hyphen keeps a line out of the log of some crons.
    .map(({ text: line, number }) => ({ text: line.replace(/^-(?=[\d*@])/, ''), number }));
  if (lines.length > 0 && !entries.some(({ text: line, setting }) => setting ?? /^[-\d*@]/.test(line)))
    throw badFile(from, 'no line has a time such as "0 9 * * 1-5" or @daily, so it is no crontab');
  const path = resolve(context.folder, from);
  const given = context.hasUserColumn ?? (SYSTEM_TABLE.test(path) ? true : USER_TABLE.test(path) ? false : undefined);
  const hasUser = given ?? userColumn(jobLines, from, context);
  const settings: Settings = {
    ...{ zone: undefined, shell: '/bin/sh', delayMinutes: 0, differs: new Map(), variables: new Map() },
  };
  const jobs = entries.flatMap(({ text: line, number, setting }) => {
    if (setting !== undefined) {
      applySetting(settings, setting.name, unquoted(setting.value));
      return [];
    }
    const described = { id: `line ${number}`, name: `line ${number}: ${nameFrom(line, '')}` };
    return [eachJob(described, () => jobOf(line.replace(/^-(?=[\d*@])/, ''), hasUser, settings, context))];
  });
  const notes = context.asMessages ? NOTES_OF_MESSAGES : NOTES_OF_RUN;
  const all = [...notes, 'After downtime, missed times do not fire, as with cron.'];
  return { from, jobs, notes: hasUser && given === undefined ? [...all, NOTE_OF_USERS] : all };
}
