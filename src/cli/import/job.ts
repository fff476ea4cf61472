/** A job of another scheduler that becomes an alarm. */
import { createHash } from 'node:crypto';
import type { AlarmCreateBody } from '../../chronos/client.ts';
import { isZone } from '../../kit/clock/zone.ts';
import { ReveilleError } from '../../wire/errors.ts';
import { isObject } from '../../wire/json.ts';
import { showValue } from '../../wire/validate.ts';

export const IMPORT_SOURCES = ['openclaw', 'claude', 'crontab', 'systemd'] as const;
export type ImportSource = (typeof IMPORT_SOURCES)[number];

/** When an alarm fires. */
export type JobTime = Pick<AlarmCreateBody, 'kind' | 'cron_expr' | 'rrule' | 'timezone' | 'fire_at'>;

type Described = {
  /** Stable within its source: the second import of a job finds its alarm by it. */
  readonly id: string;
  readonly name: string;
  /** Differences of the alarm from the job, one sentence each. */
  readonly differs: readonly string[];
};

type Needs = {
  readonly program?: string | undefined;
  /** Where its program is searched for; by default on the PATH of the machine. */
  readonly searchPath?: string | undefined;
  /** Its working folder. */
  readonly folder?: string | undefined;
};

/** A job as an alarm. */
export type ImportableJob = Described & {
  readonly alarm: AlarmCreateBody;
  /** What its command needs where it runs, so far as the job names it. */
  readonly needs?: Needs | undefined;
  /** It was switched off: its alarm is paused. */
  readonly isPaused?: boolean;
};

/** A job that cannot become an alarm, and the reason. */
export type OmittedJob = Described & { readonly omitted: string };

export type Job = ImportableJob | OmittedJob;

export type JobList = {
  /** The source of the jobs, for messages. */
  readonly from: string;
  readonly jobs: readonly Job[];
  /** Differences that apply to every job of this source. */
  readonly notes: readonly string[];
};

/** The input of the readers. */
export type ImportContext = {
  readonly now: number;
  /** The zone of jobs that name none. */
  readonly zone: string;
  /** The home folder of the user. */
  readonly home: string;
  /** The working folder. */
  readonly folder: string;
  /** Commands become messages that wake the agent. */
  readonly asMessages: boolean;
  /** Jobs are imported without the conditions that decided at their source whether they run. */
  readonly withoutGates: boolean;
  /** Whether the lines of a crontab name a user; `undefined` reads it from the file. */
  readonly hasUserColumn?: boolean | undefined;
  readonly environment: Readonly<Record<string, string | undefined>>;
  /** The text of a file that the user named. @throws ReveilleError */
  readonly read: (path: string) => string;
  /** The same for a file that the import found, or a job names: its links may not leave the folder. */
  readonly readBeside: (path: string, folder: string) => string;
  /** Whether this computer has a user of this name. */
  readonly isUser: (name: string) => boolean;
  /** Sentences about what a command needs and the agent's machine lacks; absent if they are not asked for. */
  readonly lacks?: ((needs: Needs) => readonly string[]) | undefined;
  /** Whether this computer has a program of this name or path. */
  readonly isProgram: (name: string) => boolean;
};

/** The key by which a second import finds the alarm of a job. */
export function importKey(source: ImportSource, id: string): string {
  const key = `import:${source}:${id}`;
  return key.length <= 200 && /^[\x20-\x7e]+$/.test(key) ? key : `import:${source}:${shortHash(id)}`;
}

export const shortHash = (text: string): string => createHash('sha256').update(text).digest('hex').slice(0, 16);

/** The error for a file that is none of its source. Nothing of it is imported. */
export function badFile(from: string, problem: string): ReveilleError {
  return new ReveilleError('invalid_request', `${from}: ${problem}; nothing was imported`);
}

/** The error for a job that cannot be read. It omits this job alone: see {@link eachJob}. */
export const badJob = (problem: string) => new ReveilleError('invalid_request', problem);

/** Reads one job. A problem omits this job and is its reason, so that one entry never refuses a file. */
export function eachJob<R extends Job | readonly Job[]>(
  described: Pick<Described, 'id' | 'name'>,
  read: () => R,
): R | OmittedJob {
  try {
    return read();
  } catch (thrown) {
    if (!(thrown instanceof ReveilleError)) throw thrown;
    return { ...described, differs: [], omitted: thrown.message };
  }
}

/** The jobs with ids of their own: an alarm is found by the id of its job, and a second one would not be set. */
export function withOwnIds(jobs: readonly Job[]): Job[] {
  const taken = new Set<string>();
  return jobs.map((job) => {
    let id = job.id;
    for (let count = 2; taken.has(id); count++) id = `${job.id}-${count}`;
    taken.add(id);
    return id === job.id ? job : { ...job, id };
  });
}

/** An object without the members that are `null` or an empty text: some versions write them for absent ones. */
export function withoutEmpty(value: unknown): unknown {
  if (!isObject(value)) return value;
  return Object.fromEntries(Object.entries(value).filter(([, member]) => member !== null && member !== ''));
}

/** A cron expression that may begin with its zone: `CRON_TZ=Asia/Tokyo 0 9 * * *`. @throws ReveilleError */
export function zonedCron(text: string, ownZone: string): { cron: string; zone: string } {
  const [first = '', ...fields] = text.trim().split(/\s+/);
  const [variable = '', zone = ''] = first.split('=');
  if (!['CRON_TZ', 'TZ'].includes(variable.toUpperCase())) return { cron: text, zone: ownZone };
  if (!isZone(zone)) throw badJob(`${first} must name an IANA zone such as Europe/Berlin`);
  return { cron: fields.join(' '), zone };
}

/** JSON from a file. @throws ReveilleError that names the file */
export function readJsonText(text: string, from: string): unknown {
  try {
    return JSON.parse(text);
  } catch (cause) {
    const problem = cause instanceof Error ? cause.message : String(cause);
    throw new ReveilleError('invalid_request', `${from} must be JSON (${problem}); nothing was imported`, { cause });
  }
}

/** The first line of a text, for a name. */
export function nameFrom(text: string, fallback: string): string {
  const [line = ''] = text.trim().split('\n', 1);
  const name = [...line.trim()].slice(0, 80).join('').trim();
  return name === '' ? fallback : name;
}

/** Members of an object that nothing here reads, as a sentence; none without them. */
export function unread(value: Readonly<Record<string, unknown>>, known: readonly string[]): string[] {
  const names = Object.keys(value).filter((name) => value[name] !== undefined && !known.includes(name));
  return names.map((name) => `${name} is not carried over (${showValue(value[name])})`);
}
