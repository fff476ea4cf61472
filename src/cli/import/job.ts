/** A job of another scheduler that becomes an alarm. */
import { createHash } from 'node:crypto';
import type { z } from 'zod';
import type { AlarmCreateBody } from '../../chronos/client.ts';
import { ReveilleError } from '../../wire/errors.ts';
import { parseOrThrow, showValue } from '../../wire/validate.ts';

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

/** A job as an alarm. */
export type ImportableJob = Described & {
  readonly alarm: AlarmCreateBody;
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
  readonly environment: Readonly<Record<string, string | undefined>>;
  /** The text of a file that a job names; `undefined` if it cannot be read. */
  readonly read: (path: string) => string | undefined;
};

/** The key by which a second import finds the alarm of a job. */
export function importKey(source: ImportSource, id: string): string {
  const key = `import:${source}:${id}`;
  return key.length <= 200 && /^[\x20-\x7e]+$/.test(key) ? key : `import:${source}:${shortHash(id)}`;
}

export const shortHash = (text: string): string => createHash('sha256').update(text).digest('hex').slice(0, 16);

/** The error for an invalid job. Nothing of its file is imported. */
export function badJob(from: string, job: string, problem: string): ReveilleError {
  return new ReveilleError('invalid_request', `${from}, ${job}: ${problem}; correct it there, nothing was imported`);
}

/** Reads a part of a file by its schema. @throws ReveilleError that names file, job, field and remedy */
export function readPart<S extends z.ZodType>(schema: S, value: unknown, from: string, job: string): z.output<S> {
  try {
    return parseOrThrow(schema, value);
  } catch (thrown) {
    if (thrown instanceof ReveilleError) throw badJob(from, job, thrown.message);
    throw thrown;
  }
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
