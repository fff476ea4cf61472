/** Timers of systemd: `.timer` files with the services that they start. */
import { existsSync, readdirSync, statSync } from 'node:fs';
import { userInfo } from 'node:os';
import { basename, dirname, join } from 'node:path';
import { CommandLineError, splitCommand } from '../../kit/phrase/command-line.ts';
import { ReveilleError } from '../../wire/errors.ts';
import {
  badJob,
  eachJob,
  type ImportableJob,
  type ImportContext,
  type Job,
  type JobList,
  type JobTime,
} from './job.ts';
import { calendarTime, spanSeconds } from './systemd-time.ts';

const TIMER = '.timer';
const LONGEST_RUN_SECONDS = 86_400;
const LONGEST_JITTER_SECONDS = 3600;
const LONGEST_TIME = 1000;
/** Of a unit, in systemd.unit(5). */
const LONGEST_NAME = 255;

const NOTES_OF_RUN = [
  "A command runs on your agent's machine, in its sandbox, and ends after a day; systemd ran it here. With --as-messages, it wakes your agent instead.",
];
const NOTES_OF_MESSAGES = ["The alarm wakes your agent with the unit's name and command; systemd started the unit."];

/** The folder of the user's units. */
export const systemdFolder = ({ home, environment }: ImportContext): string =>
  join(environment.XDG_CONFIG_HOME ?? join(home, '.config'), 'systemd', 'user');

/** The settings of a unit by section and name: all values in order, since an empty one forgets those before. */
type Unit = ReadonlyMap<string, readonly string[]>;

function readUnit(text: string): Unit {
  const unit = new Map<string, string[]>();
  let section = '';
  for (const line of text.replace(/\\\r?\n/g, ' ').split(/\r?\n/)) {
    const trimmed = line.trim();
    if (trimmed === '' || /^[#;]/.test(trimmed)) continue;
    const [, named] = /^\[(.+)\]$/.exec(trimmed) ?? [];
    if (named !== undefined) {
      section = named;
      continue;
    }
    const equals = trimmed.indexOf('=');
    if (equals < 1) continue;
    const name = `${section}.${trimmed.slice(0, equals).trim()}`;
    const value = trimmed.slice(equals + 1).trim();
    if (value === '') unit.delete(name);
    else unit.set(name, [...(unit.get(name) ?? []), value]);
  }
  return unit;
}

/** The file of a unit; of an instance, that of its template. */
function unitPath(folder: string, name: string): string {
  const own = join(folder, name);
  const [at, end] = [name.indexOf('@'), name.lastIndexOf('.')];
  return existsSync(own) || at < 0 || end < at ? own : join(folder, name.slice(0, at + 1) + name.slice(end));
}

/**
 * The text of a unit's file with its drop-ins.
 *
 * @param named the file that the caller named, which may be a link; links of other files may not leave their folder
 */
function unitText(folder: string, name: string, { read, readBeside }: ImportContext, named?: string): string {
  const path = unitPath(folder, name);
  const extra = `${path}.d`;
  const dropIns = existsSync(extra) ? readdirSync(extra).filter((file) => file.endsWith('.conf')) : [];
  const own = named === path ? read(path) : readBeside(path, folder);
  return [own, ...dropIns.sort().map((file) => readBeside(join(extra, file), folder))].join('\n');
}

const isYes = (value: string | undefined) => /^(?:1|yes|y|true|t|on)$/i.test(value ?? '');

/** The settings of timers and services that are read here, or change nothing of an alarm. */
const READ = [
  ...['OnCalendar', 'OnActiveSec', 'OnBootSec', 'OnStartupSec', 'OnUnitActiveSec', 'OnUnitInactiveSec', 'Unit']
    .concat('RandomizedDelaySec', 'FixedRandomDelay', 'Persistent', 'WakeSystem', 'AccuracySec', 'RemainAfterElapse')
    .map((name) => `Timer.${name}`),
  ...['ExecStart', 'Environment', 'EnvironmentFile', 'User', 'WorkingDirectory', 'Type', 'RemainAfterExit'].map(
    (name) => `Service.${name}`,
  ),
  ...['Unit.Description', 'Unit.Documentation'],
];
const STARTING = ['OnActiveSec', 'OnBootSec', 'OnStartupSec'];

type Part = { suffix: string; read: () => { time: JobTime; differs: string[] } };

/** Names the setting of a timer that its reader refuses. */
function reading<T>(value: string, setting: string, read: () => T): T {
  if (value.length > LONGEST_TIME) throw badJob(`${setting} has more than ${LONGEST_TIME} characters`);
  try {
    return read();
  } catch (thrown) {
    if (!(thrown instanceof ReveilleError)) throw thrown;
    throw badJob(`${setting}=${value}: ${thrown.message}`);
  }
}

/** One calendar event or span is one alarm. As in systemd, a wrong one leaves the others. */
function partsOf(timer: Unit, zone: string): Part[] {
  const of = (name: string) => timer.get(`Timer.${name}`) ?? [];
  const calendars = of('OnCalendar').map((value) => () => ({
    time: reading(value, 'OnCalendar', () => calendarTime(value, zone)),
    differs: [],
  }));
  const spans = (['OnUnitActiveSec', 'OnUnitInactiveSec'] as const).flatMap((name) =>
    of(name).map((value) => (): { time: JobTime; differs: string[] } => {
      const seconds = Math.round(reading(value, name, () => spanSeconds(value)) * 1000) / 1000;
      const from = name === 'OnUnitActiveSec' ? 'its last start' : 'its last end';
      return {
        time: { kind: 'cron', cron_expr: `@every ${seconds}s` },
        differs: [`${name} counts from ${from}; the alarm counts from when it is set`],
      };
    }),
  );
  return [...calendars, ...spans].map((read, at) => ({ suffix: at === 0 ? '' : `#${at + 1}`, read }));
}

/** Replaces the specifiers of a unit; `undefined` for one that is not known here. */
function withSpecifiers(text: string, unit: string, { home }: ImportContext): string | undefined {
  const prefix = unit.replace(/\.[a-z]+$/, '');
  const [, template = prefix, instance = ''] = /^([^@]*)@(.*)$/.exec(prefix) ?? [];
  const values: Readonly<Record<string, string>> = {
    ...{ '%': '%', h: home, n: unit, N: prefix, p: template, i: instance, I: instance },
    u: userInfo().username,
  };
  let isKnown = true;
  const replaced = text.replace(/%(.)/g, (_, letter: string) => {
    isKnown &&= letter in values;
    return values[letter] ?? '';
  });
  return isKnown ? replaced : undefined;
}

const GATES =
  /^(?:Unit\.(?:Condition|Assert)\w+|Unit\.(?:Requires|Requisite|BindsTo|RequiresMountsFor)|Service\.(?:ExecCondition|ExecStartPre))$/;

/** Whether a setting of a unit decides whether it runs: a condition, a command before it, another unit that it needs. */
function isGate(unit: string, key: string, value: string): boolean {
  if (!GATES.test(key)) return false;
  // A command with "-" may fail.
  if (key.startsWith('Service.')) return !value.startsWith('-');
  // A target orders the start of the computer, and a timer may name its service.
  const isOwn = (other: string) => other.endsWith('.target') || other.split('.')[0] === unit.split('.')[0];
  return !(/^Unit\.(?:Requires|Requisite|BindsTo)$/.test(key) && value.split(/\s+/).every(isOwn));
}

/** The settings of a unit that match, as in its file. */
function settingsOf(name: string, unit: Unit | undefined, isWanted: (key: string, value: string) => boolean): string[] {
  return [...(unit ?? [])].flatMap(([key, values]) =>
    values
      .filter((value) => isWanted(key, value))
      .map((value) => `${key.slice(key.indexOf('.') + 1)}=${value.slice(0, 200)} of ${name}`),
  );
}

const gatesOf = (name: string, unit: Unit | undefined): string[] =>
  settingsOf(name, unit, (key, value) => isGate(name, key, value));

/** Sentences for the settings that are neither read nor gates. */
function unreadSettings(name: string, unit: Unit): string[] {
  const isUnread = (key: string, value: string) =>
    !READ.includes(key) && !/^(?:Install\.|X-)/.test(key) && !isGate(name, key, value);
  return settingsOf(name, unit, isUnread).map((setting) => `${setting} is not carried over`);
}

type Command = { argv: readonly string[]; differs: string[] } & Required<Pick<ImportableJob, 'needs'>>;

/** @throws ReveilleError for a command that only systemd can run */
function commandOf(unit: string, service: Unit | undefined, context: ImportContext): Command {
  if (service === undefined) throw badJob(`its unit ${unit} is not beside it; put it there, or use --as-messages`);
  const [line, ...more] = service.get('Service.ExecStart') ?? [];
  if (line === undefined) throw badJob(`${unit} has no ExecStart`);
  if (more.length > 0) throw badJob(`${unit} has ${more.length + 1} ExecStart lines; put them into one script`);
  const [marks] = /^[-@:+!|]*/.exec(line)!;
  const bare = line.slice(marks.length);
  if (marks.includes('@')) throw badJob(`${unit} names its program in ExecStart with @`);
  const text = withSpecifiers(bare, unit, context);
  if (text === undefined) throw badJob(`ExecStart of ${unit} has a specifier that only systemd knows`);
  if (!marks.includes(':') && /\$(?!\$)/.test(text.replaceAll('$$', '')))
    throw badJob(`ExecStart of ${unit} has variables, which only systemd replaces; put it into a script`);
  const differs: string[] = [];
  let argv: string[];
  const variables: string[] = [];
  try {
    argv = splitCommand(text.replaceAll('$$', '$'));
    for (const value of service.get('Service.Environment') ?? []) {
      const known = withSpecifiers(value, unit, context);
      if (known === undefined) differs.push(`Environment=${value} has a specifier that only systemd knows`);
      for (const part of splitCommand(known ?? ''))
        if (/^[A-Za-z_][A-Za-z0-9_]*=/.test(part)) variables.push(part);
        // As systemd does: it could be an option of env(1).
        else differs.push(`Environment=${part} sets no variable, and is not carried over`);
    }
  } catch (thrown) {
    if (thrown instanceof CommandLineError) throw badJob(`ExecStart or Environment of ${unit} ${thrown.message}`);
    throw thrown;
  }
  const user = service.get('Service.User')?.at(-1);
  if (user !== undefined) differs.push(`${unit} runs as ${user}; the command runs as your agent`);
  if (/[+!]/.test(marks)) differs.push('ExecStart has all rights of systemd; the command has those of your agent');
  if (service.has('Service.EnvironmentFile')) differs.push('EnvironmentFile is not carried over');
  const needs: { program?: string; searchPath?: string; folder?: string } = {};
  const searched = variables.findLast((variable) => variable.startsWith('PATH='));
  if (searched !== undefined) needs.searchPath = searched.slice('PATH='.length);
  if (argv[0] !== undefined) needs.program = argv[0];
  if (variables.length > 0) argv = ['/usr/bin/env', ...variables, ...argv];
  const given = service.get('Service.WorkingDirectory')?.at(-1) ?? '';
  const folder = withSpecifiers(given.replace(/^-/, ''), unit, context)?.replace(/^~$/, context.home);
  if (folder === undefined) throw badJob(`WorkingDirectory of ${unit} has a specifier that only systemd knows`);
  if (folder !== '') {
    needs.folder = folder;
    // With "-", systemd starts it elsewhere if the folder is missing.
    const script = given.startsWith('-') ? 'cd "$0" 2>/dev/null; exec "$@"' : 'cd "$0" && exec "$@"';
    argv = ['/bin/sh', '-c', script, folder, ...argv];
  }
  return { argv, differs: [...differs, ...unreadSettings(unit, service)], needs };
}

/** What the alarms of a timer share. */
function sharedOf(id: string, timer: Unit) {
  const last = (name: string) => timer.get(`Timer.${name}`)?.at(-1);
  const delay = last('RandomizedDelaySec');
  const seconds = delay === undefined ? 0 : reading(delay, 'RandomizedDelaySec', () => spanSeconds(delay));
  const differs: string[] = [];
  if (seconds > LONGEST_JITTER_SECONDS)
    differs.push(`its RandomizedDelaySec of ${seconds} s is cut to ${LONGEST_JITTER_SECONDS} s`);
  const starting = STARTING.filter((name) => last(name) !== undefined);
  if (starting.length > 0) differs.push(`${starting.join(', ')} is not carried over: alarms do not fire at a start`);
  const jitter = Math.min(LONGEST_JITTER_SECONDS, Math.ceil(seconds));
  return {
    differs: [...differs, ...unreadSettings(id, timer)],
    fields: {
      catch_up: isYes(last('Persistent')) ? ('latest' as const) : ('none' as const),
      // A timer starts no unit that is running.
      overlap: 'skip' as const,
      ...(jitter > 0 && { jitter_seconds: jitter }),
      ...(isYes(last('WakeSystem')) && { wake_computer: true }),
    },
  };
}

const isTimer = (timer: Unit) => [...timer.keys()].some((key) => key.startsWith('Timer.'));

function jobsOf(path: string, context: ImportContext): readonly Job[] {
  const [folder, id] = [dirname(path), basename(path)];
  const timer = readUnit(unitText(folder, id, context, path));
  if (!isTimer(timer)) throw badJob('it must have a section [Timer] with OnCalendar or OnUnitActiveSec');
  const unit = timer.get('Timer.Unit')?.at(-1) ?? id.replace(/\.timer$/, '.service');
  if (unit !== basename(unit) || unit.length > LONGEST_NAME)
    throw badJob(`Unit=${unit.slice(0, LONGEST_NAME)} must be the name of a unit, without a folder`);
  const service = existsSync(unitPath(folder, unit)) ? readUnit(unitText(folder, unit, context)) : undefined;
  const [description] = timer.get('Unit.Description') ?? service?.get('Unit.Description') ?? [];
  const name = description ?? id;
  return [eachJob({ id, name }, () => timerJobs({ id, name, timer, unit, service }, context))].flat();
}

type TimerUnits = { id: string; name: string; timer: Unit; unit: string; service: Unit | undefined };

function timerJobs({ id, name, timer, unit, service }: TimerUnits, context: ImportContext): readonly Job[] {
  const parts = partsOf(timer, context.zone);
  const { fields, differs } = sharedOf(id, timer);
  if (parts.length === 0) throw badJob('it fires only after a start of the computer or of systemd');
  const line = service?.get('Service.ExecStart')?.join('\n');
  const message = [`${id}: ${name}`, ...(line === undefined ? [`start ${unit}`] : [line])].join('\n');
  const gates = [...gatesOf(id, timer), ...gatesOf(unit, service)];
  if (gates.length > 0 && !context.withoutGates)
    throw badJob(`${gates.join(', ')} decides whether it runs, and is not carried over; --without-gates imports it`);
  const command = context.asMessages ? undefined : commandOf(unit, service, context);
  const run = command && { run: { argv: [...command.argv], timeout_seconds: LONGEST_RUN_SECONDS } };
  const ungated = gates.map((gate) => `${gate} decided whether it runs, and is not carried over`);
  return parts.map(({ suffix, read }) => {
    const described = { id: `${id}${suffix}`, name: suffix === '' ? name : `${name} ${suffix}` };
    return eachJob(described, () => {
      const { time, differs: ofTime } = read();
      if (time.kind === 'once' && Date.parse(time.fire_at ?? '') <= context.now)
        throw badJob(`it was due at ${time.fire_at}, which has passed`);
      const { catch_up, overlap, ...ofAll } = fields;
      const ofSeries = time.kind === 'once' ? {} : { catch_up, overlap };
      return {
        ...{ ...described, differs: [...ofTime, ...differs, ...ungated, ...(command?.differs ?? [])] },
        ...(command && { needs: command.needs }),
        alarm: { ...time, ...ofSeries, ...ofAll, ...run, label: name.slice(0, 200), wake_message: message },
      };
    });
  });
}

/**
 * @param path a timer, or a folder with timers
 * @throws ReveilleError for a path without timers
 */
export function systemdJobs(path: string, context: ImportContext): JobList {
  const stats = statSync(path, { throwIfNoEntry: false });
  if (stats === undefined) throw new ReveilleError('not_found', `there is no ${path}; name a .timer file or a folder`);
  if (!stats.isDirectory() && !path.endsWith(TIMER))
    throw new ReveilleError('invalid_request', `${path} must be a .timer file, or a folder with such files`);
  const notes = context.asMessages ? NOTES_OF_MESSAGES : NOTES_OF_RUN;
  if (!stats.isDirectory()) return { from: path, jobs: jobsOf(path, context), notes };
  const beside = { ...context, read: (file: string) => context.readBeside(file, path) };
  const files = readdirSync(path).filter((file) => file.endsWith(TIMER) && !file.endsWith(`@${TIMER}`));
  const jobs = files.sort().flatMap((id) => eachJob({ id, name: id }, () => jobsOf(join(path, id), beside)));
  return { from: path, jobs, notes };
}
