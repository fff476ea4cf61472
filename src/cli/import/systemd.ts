/** Timers of systemd: `.timer` files with the services that they start. */
import { existsSync, readdirSync, statSync } from 'node:fs';
import { userInfo } from 'node:os';
import { basename, dirname, join } from 'node:path';
import { CommandLineError, splitCommand } from '../../kit/phrase/command-line.ts';
import { ReveilleError } from '../../wire/errors.ts';
import { fileFlag } from '../flags/flags.ts';
import { badJob, type ImportContext, type Job, type JobList, type JobTime } from './job.ts';
import { calendarTime, SystemdTimeError, spanSeconds } from './systemd-time.ts';

const TIMER = '.timer';
const LONGEST_RUN_SECONDS = 86_400;
const LONGEST_JITTER_SECONDS = 3600;

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

/** The text of a unit's file with its drop-ins; of an instance, that of its template. */
function unitText(folder: string, name: string): string | undefined {
  const template = name.replace(/^([^@]*@)[^.]+(?=\.)/, '$1');
  const path = [name, template].map((file) => join(folder, file)).find((file) => existsSync(file));
  if (path === undefined) return undefined;
  const extra = `${path}.d`;
  const dropIns = existsSync(extra) ? readdirSync(extra).filter((file) => file.endsWith('.conf')) : [];
  return [path, ...dropIns.sort().map((file) => join(extra, file))]
    .map((file) => fileFlag('the unit', file))
    .join('\n');
}

const isYes = (value: string | undefined) => /^(?:1|yes|y|true|t|on)$/i.test(value ?? '');

/** The settings of a timer that are read here, or change nothing of an alarm. */
const READ = [
  ...['OnCalendar', 'OnActiveSec', 'OnBootSec', 'OnStartupSec', 'OnUnitActiveSec', 'OnUnitInactiveSec'],
  ...['RandomizedDelaySec', 'FixedRandomDelay', 'Persistent', 'WakeSystem', 'Unit', 'AccuracySec', 'RemainAfterElapse'],
];
const STARTING = ['OnActiveSec', 'OnBootSec', 'OnStartupSec'];

type Part = { suffix: string; time: JobTime; differs: string[] };

/** A setting of a timer that its reader refuses. */
function reading<T>(value: string, setting: string, wrong: (problem: string) => ReveilleError, read: () => T): T {
  try {
    return read();
  } catch (thrown) {
    if (!(thrown instanceof SystemdTimeError)) throw thrown;
    if (!thrown.isWrong) throw thrown;
    throw wrong(`${setting}=${value}: ${thrown.message}`);
  }
}

/** One calendar event is one alarm; rules of one zone are one alarm together. */
function partsOf(timer: Unit, zone: string, wrong: (problem: string) => ReveilleError): Part[] {
  const of = (name: string) => timer.get(`Timer.${name}`) ?? [];
  const calendars = of('OnCalendar').map((value) =>
    reading(value, 'OnCalendar', wrong, () => calendarTime(value, zone)),
  );
  const parts = calendars.map((time, at): Part => ({ suffix: at === 0 ? '' : `#${at + 1}`, time, differs: [] }));
  for (const name of ['OnUnitActiveSec', 'OnUnitInactiveSec'] as const)
    for (const value of of(name)) {
      const seconds = Math.round(reading(value, name, wrong, () => spanSeconds(value)) * 1000) / 1000;
      const from = name === 'OnUnitActiveSec' ? 'its last start' : 'its last end';
      parts.push({
        suffix: parts.length === 0 ? '' : `#${parts.length + 1}`,
        time: { kind: 'cron', cron_expr: `@every ${seconds}s` },
        differs: [`${name} counts from ${from}; the alarm counts from when it is set`],
      });
    }
  return parts;
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

type Command = { argv: readonly string[]; differs: string[] } | { omitted: string };

function commandOf(unit: string, service: Unit | undefined, context: ImportContext): Command {
  if (service === undefined)
    return { omitted: `its unit ${unit} is not beside it; put it there, or use --as-messages` };
  const [line, ...more] = service.get('Service.ExecStart') ?? [];
  if (line === undefined) return { omitted: `${unit} has no ExecStart` };
  if (more.length > 0) return { omitted: `${unit} has ${more.length + 1} ExecStart lines; put them into one script` };
  const [, marks = '', bare = ''] = /^([-@:+!|]*)(.*)/s.exec(line)!;
  if (marks.includes('@')) return { omitted: `${unit} names its program in ExecStart with @` };
  const text = withSpecifiers(bare, unit, context);
  if (text === undefined) return { omitted: `ExecStart of ${unit} has a specifier that only systemd knows` };
  if (!marks.includes(':') && /\$(?!\$)/.test(text.replaceAll('$$', '')))
    return { omitted: `ExecStart of ${unit} has variables, which only systemd replaces; put it into a script` };
  const differs: string[] = [];
  let argv: string[];
  const variables: string[] = [];
  try {
    argv = splitCommand(text.replaceAll('$$', '$'));
    for (const value of service.get('Service.Environment') ?? [])
      for (const part of splitCommand(withSpecifiers(value, unit, context) ?? value))
        if (/^[A-Za-z_][A-Za-z0-9_]*=/.test(part)) variables.push(part);
        // As systemd does: it could be an option of env(1).
        else differs.push(`Environment=${part} sets no variable, and is not carried over`);
  } catch (thrown) {
    if (thrown instanceof CommandLineError) return { omitted: `ExecStart or Environment of ${unit} ${thrown.message}` };
    throw thrown;
  }
  const user = service.get('Service.User')?.at(-1);
  if (user !== undefined) differs.push(`${unit} runs as ${user}; the command runs as your agent`);
  if (service.has('Service.EnvironmentFile')) differs.push('EnvironmentFile is not carried over');
  if (variables.length > 0) argv = ['/usr/bin/env', ...variables, ...argv];
  const folder = service.get('Service.WorkingDirectory')?.at(-1)?.replace(/^-/, '');
  const named = folder === undefined ? undefined : withSpecifiers(folder, unit, context)?.replace(/^~$/, context.home);
  if (named !== undefined) argv = ['/bin/sh', '-c', 'cd "$0" && exec "$@"', named, ...argv];
  return { argv, differs };
}

/** What the alarms of a timer share. */
function sharedOf(timer: Unit, wrong: (problem: string) => ReveilleError) {
  const last = (name: string) => timer.get(`Timer.${name}`)?.at(-1);
  const delay = last('RandomizedDelaySec');
  const seconds = delay === undefined ? 0 : reading(delay, 'RandomizedDelaySec', wrong, () => spanSeconds(delay));
  const differs: string[] = [];
  if (seconds > LONGEST_JITTER_SECONDS)
    differs.push(`its RandomizedDelaySec of ${seconds} s is cut to ${LONGEST_JITTER_SECONDS} s`);
  const starting = STARTING.filter((name) => last(name) !== undefined);
  if (starting.length > 0) differs.push(`${starting.join(', ')} is not carried over: alarms do not fire at a start`);
  const unknown = [...timer.keys()]
    .filter((key) => key.startsWith('Timer.') && !READ.includes(key.slice('Timer.'.length)))
    .map((key) => `${key.slice('Timer.'.length)} is not carried over`);
  const jitter = Math.min(LONGEST_JITTER_SECONDS, Math.ceil(seconds));
  return {
    differs: [...differs, ...unknown],
    fields: {
      catch_up: isYes(last('Persistent')) ? ('latest' as const) : ('none' as const),
      // A timer starts no unit that is running.
      overlap: 'skip' as const,
      ...(jitter > 0 && { jitter_seconds: jitter }),
      ...(isYes(last('WakeSystem')) && { wake_computer: true }),
    },
  };
}

function jobsOf(path: string, context: ImportContext): Job[] {
  const [folder, id] = [dirname(path), basename(path)];
  const wrong = (problem: string) => badJob(path, id, problem);
  const timer = readUnit(unitText(folder, id) ?? fileFlag('the unit', path));
  const unit = timer.get('Timer.Unit')?.at(-1) ?? id.replace(/\.timer$/, '.service');
  if (unit !== basename(unit)) throw wrong(`Unit=${unit} must be the name of a unit, without a folder`);
  const text = unitText(folder, unit);
  const service = text === undefined ? undefined : readUnit(text);
  const [description] = timer.get('Unit.Description') ?? service?.get('Unit.Description') ?? [];
  const name = description ?? id;
  if (![...timer.keys()].some((key) => key.startsWith('Timer.')))
    throw wrong('it must have a section [Timer] with OnCalendar or OnUnitActiveSec');
  let parts: Part[];
  try {
    parts = partsOf(timer, context.zone, wrong);
  } catch (thrown) {
    if (thrown instanceof SystemdTimeError) return [{ id, name, differs: [], omitted: thrown.message }];
    throw thrown;
  }
  const { fields, differs } = sharedOf(timer, wrong);
  if (parts.length === 0)
    return [{ id, name, differs: [], omitted: 'it fires only after a start of the computer or of systemd' }];
  const line = service?.get('Service.ExecStart')?.join('\n');
  const message = [`${id}: ${name}`, ...(line === undefined ? [`start ${unit}`] : [line])].join('\n');
  const command = context.asMessages ? undefined : commandOf(unit, service, context);
  if (command && 'omitted' in command) return [{ id, name, differs: [], omitted: command.omitted }];
  const run = command && { run: { argv: [...command.argv], timeout_seconds: LONGEST_RUN_SECONDS } };
  return parts.map(({ suffix, time, differs: ofTime }) => {
    const { catch_up, overlap, ...ofAll } = fields;
    const ofSeries = time.kind === 'once' ? {} : { catch_up, overlap };
    const all = [...ofTime, ...differs, ...(command?.differs ?? [])];
    if (time.kind === 'once' && Date.parse(time.fire_at ?? '') <= context.now)
      return { id: `${id}${suffix}`, name, differs: [], omitted: `it was due at ${time.fire_at}, which has passed` };
    return {
      ...{ id: `${id}${suffix}`, name: suffix === '' ? name : `${name} ${suffix}`, differs: all },
      alarm: { ...time, ...ofSeries, ...ofAll, ...run, label: name.slice(0, 200), wake_message: message },
    };
  });
}

/**
 * @param path a timer, or a folder with timers
 * @throws ReveilleError for a timer that systemd would refuse, and for a path without timers
 */
export function systemdJobs(path: string, context: ImportContext): JobList {
  const stats = statSync(path, { throwIfNoEntry: false });
  if (stats === undefined) throw new ReveilleError('not_found', `there is no ${path}; name a .timer file or a folder`);
  const files = stats.isDirectory()
    ? readdirSync(path)
        .filter((file) => file.endsWith(TIMER) && !file.endsWith(`@${TIMER}`))
        .sort()
        .map((file) => join(path, file))
    : [path];
  if (!stats.isDirectory() && !path.endsWith(TIMER))
    throw new ReveilleError('invalid_request', `${path} must be a .timer file, or a folder with such files`);
  const notes = context.asMessages ? NOTES_OF_MESSAGES : NOTES_OF_RUN;
  return { from: path, jobs: files.flatMap((file) => jobsOf(file, context)), notes };
}
