/** Cron jobs of OpenClaw's gateway: `~/.openclaw/cron/jobs.json`, or the state database of later versions. */
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { z } from 'zod';
import type { AlarmCreateBody } from '../../chronos/client.ts';
import { isZone } from '../../kit/clock/zone.ts';
import { ReveilleError } from '../../wire/errors.ts';
import { isObject } from '../../wire/json.ts';
import { formatInstant, parseInstant } from '../../wire/rfc3339.ts';
import { parseOrThrow } from '../../wire/validate.ts';
import {
  badFile,
  badJob,
  eachJob,
  type ImportableJob,
  type ImportContext,
  type Job,
  type JobList,
  type JobTime,
  nameFrom,
  readJsonText,
  unread,
  withoutEmpty,
} from './job.ts';
import { openclawTime } from './openclaw-cron.ts';
import { everyFrom } from './times.ts';

const milliseconds = z.number().min(0).max(8.64e15);
const scheduleSchema = z.discriminatedUnion('kind', [
  z.looseObject({ kind: z.literal('at'), at: z.string().optional(), atMs: milliseconds.optional() }),
  z.looseObject({ kind: z.literal('every'), everyMs: z.number().min(1), anchorMs: milliseconds.optional() }),
  z.looseObject({
    kind: z.literal('cron'),
    expr: z.string().min(1),
    tz: z.string().optional(),
    staggerMs: z.number().min(0).optional(),
  }),
]);
/** Anything else would be an option of env(1). */
const variableSchema = z.string().regex(/^[^-=][^=]*$/, 'must be the name of a variable');
const payloadSchema = z.discriminatedUnion('kind', [
  z.looseObject({ kind: z.literal('systemEvent'), text: z.string().min(1) }),
  z.looseObject({ kind: z.literal('agentTurn'), message: z.string().min(1), model: z.string().optional() }),
  z.looseObject({
    kind: z.literal('command'),
    argv: z.array(z.string()).min(1),
    cwd: z.string().optional(),
    env: z.record(variableSchema, z.string()).optional(),
    timeoutSeconds: z.number().min(1).optional(),
  }),
]);
const deliverySchema = z.looseObject({
  mode: z.string().optional(),
  channel: z.string().optional(),
  to: z.string().optional(),
});
const jobSchema = z.looseObject({
  id: z.string().min(1).max(200),
  name: z.string().optional(),
  enabled: z.boolean().optional(),
  createdAtMs: milliseconds.optional(),
  schedule: scheduleSchema,
  sessionTarget: z.string().optional(),
  payload: payloadSchema,
  delivery: deliverySchema.optional(),
});
type OpenclawJob = z.output<typeof jobSchema>;
const fileSchema = z.looseObject({ version: z.literal(1).optional(), jobs: z.array(z.unknown()) });

/** Members of a turn that earlier versions wrote beside it. */
const TURN_OF_OLD = ['model', 'thinking', 'timeoutSeconds', 'deliver', 'channel', 'to', 'bestEffortDeliver'];
const CONTENT_OF_OLD = ['message', 'text', 'command'];

/** A job as present versions write it; those read what earlier versions wrote, and so does this reader. */
function modernized(given: unknown): unknown {
  const job = withoutEmpty(given);
  if (!isObject(job)) return given;
  const { jobId, id = jobId, schedule, payload, delivery, enabled, ...rest } = job;
  const isTurn = (content: Readonly<Record<string, unknown>>) => content.kind === 'agentTurn';
  const when = withoutEmpty(typeof schedule === 'string' ? { kind: 'cron', expr: schedule } : schedule);
  let content = withoutEmpty(payload);
  const { message, text, command } = rest;
  if (content === undefined) content = message === undefined ? { text: text ?? command } : { message };
  if (isObject(content)) {
    const { kind = content.message === undefined ? 'systemEvent' : 'agentTurn', ...members } = content;
    const named = ['agentTurn', 'systemEvent', 'command'].find(
      (one) => one.toLowerCase() === String(kind).toLowerCase(),
    );
    content = { ...members, kind: named ?? kind };
  }
  const moved = isObject(content) && isTurn(content) ? TURN_OF_OLD.filter((name) => name in rest) : [];
  const used = [...moved, ...(payload === undefined ? CONTENT_OF_OLD : [])];
  return {
    ...Object.fromEntries(Object.entries(rest).filter(([name]) => !used.includes(name))),
    ...(id !== undefined && { id }),
    ...(typeof enabled === 'boolean' && { enabled }),
    ...(delivery !== undefined && { delivery: withoutEmpty(delivery) }),
    schedule: isObject(when) ? modernSchedule(when) : when,
    payload: isObject(content)
      ? { ...Object.fromEntries(moved.map((name) => [name, rest[name]])), ...content }
      : content,
  };
}

function modernSchedule({ cron, expr = cron, kind, everyMs, ...rest }: Readonly<Record<string, unknown>>) {
  const inferred = expr !== undefined ? 'cron' : everyMs !== undefined ? 'every' : 'at';
  const every = typeof everyMs === 'string' ? Number(everyMs) : everyMs;
  return {
    ...rest,
    kind: typeof kind === 'string' ? kind.toLowerCase() : inferred,
    ...(expr !== undefined && { expr }),
    ...(every !== undefined && { everyMs: every }),
  };
}

/** Jobs that OpenClaw makes and removes itself; their texts have a meaning there alone. */
function isManaged({ payload, ...job }: OpenclawJob): boolean {
  const { description } = job as { description?: unknown };
  const text = payload.kind === 'systemEvent' ? payload.text : payload.kind === 'agentTurn' ? payload.message : '';
  return (
    (typeof description === 'string' && description.includes('[managed-by=')) || /^\s*__openclaw_\w+__\s*$/.test(text)
  );
}

/** State, and members that make no difference to an alarm. */
const SETTLED = ['id', 'name', 'description', 'enabled', 'createdAtMs', 'updatedAtMs', 'state', 'deleteAfterRun'];
const READ = [...SETTLED, 'schedule', 'sessionTarget', 'payload', 'delivery'];
const SCHEDULE_READ = { at: ['at', 'atMs'], every: ['everyMs', 'anchorMs'], cron: ['expr', 'tz', 'staggerMs'] };
const PAYLOAD_READ = {
  systemEvent: ['text'],
  agentTurn: ['message', 'model'],
  command: ['argv', 'cwd', 'env', 'timeoutSeconds'],
};
const DELIVERY_READ = ['mode', 'channel', 'to'];
/** Earlier versions have the delivery here. */
const DELIVERY_IN_PAYLOAD = ['deliver', 'channel', 'to', 'bestEffortDeliver'];

/** A command ends after a day at the latest. */
const LONGEST_RUN_SECONDS = 86_400;
const LONGEST_JITTER_SECONDS = 3600;

/** The spread of hourly expressions by default. */
const IS_AT_FULL_HOURS = /^0\s+\*(?:\/\d+)?\s/;

const NOTES = [
  'OpenClaw sends results to its channels; an alarm sends them to the channels of "reveille notify" and of --deliver.',
];

/** The default file of the command: the state database, unless a file with jobs exists. */
export function openclawFile({ home, environment }: ImportContext): string {
  const folder = environment.OPENCLAW_STATE_DIR ?? join(home, '.openclaw');
  const [file, database] = [join(folder, 'cron', 'jobs.json'), join(folder, 'state', 'openclaw.sqlite')];
  return !existsSync(file) && existsSync(database) ? database : file;
}

type Timed = { time: JobTime; differs: string[] };

/** @throws ReveilleError with the reason why the job has no time here */
function timeOf(job: OpenclawJob, { now, zone }: ImportContext): Timed {
  const { schedule } = job;
  switch (schedule.kind) {
    case 'at': {
      const { at, atMs } = schedule;
      // A time without an offset is UTC there.
      const due = atMs ?? (at === undefined ? undefined : (parseInstant(at) ?? parseInstant(`${at}Z`)));
      if (due === undefined)
        throw badJob(`schedule.at must be an instant such as 2026-02-01T16:00:00Z (got ${JSON.stringify(at ?? null)})`);
      if (due <= now) throw badJob(`it fires once, at ${formatInstant(due)}, which has passed`);
      return { time: { kind: 'once', fire_at: formatInstant(due) }, differs: [] };
    }
    case 'every': {
      const { everyMs, anchorMs = job.createdAtMs } = schedule;
      const seconds = Math.round(everyMs / 1000);
      const rounded = seconds * 1000 === everyMs ? [] : [`its ${everyMs} ms are rounded to ${seconds} s`];
      if (anchorMs === undefined)
        return {
          time: { kind: 'cron', cron_expr: `@every ${seconds}s` },
          differs: [...rounded, 'it counts from when the alarm is set'],
        };
      return { time: everyFrom(anchorMs, seconds), differs: rounded };
    }
    case 'cron': {
      const { expr, tz, staggerMs } = schedule;
      if (tz !== undefined && !isZone(tz))
        throw badJob(`schedule.tz must be an IANA zone such as Europe/Berlin (got ${JSON.stringify(tz)})`);
      const differs = tz === undefined ? [`it names no zone; ${zone} is taken, as that of its computer`] : [];
      if (staggerMs === undefined && IS_AT_FULL_HOURS.test(expr))
        differs.push('OpenClaw spreads it by up to 5 minutes; the alarm fires exactly');
      try {
        return { time: openclawTime(expr, tz ?? zone), differs };
      } catch (thrown) {
        if (!(thrown instanceof ReveilleError)) throw thrown;
        throw badJob(`schedule.expr: ${thrown.message.replace(/^cron_expr: /, '')}`);
      }
    }
  }
}

function jitterOf({ schedule }: OpenclawJob): { jitter_seconds?: number; differs: string[] } {
  const staggerMs = schedule.kind === 'cron' ? (schedule.staggerMs ?? 0) : 0;
  if (staggerMs === 0) return { differs: [] };
  const seconds = Math.min(LONGEST_JITTER_SECONDS, Math.ceil(staggerMs / 1000));
  const cut = seconds * 1000 < staggerMs ? [`its spread of ${staggerMs / 1000} s is cut to ${seconds} s`] : [];
  return { jitter_seconds: seconds, differs: cut };
}

/** Sentences about the delivery of a job's results. */
function deliveryOf({ delivery, payload }: OpenclawJob): string[] {
  const old = payload as Readonly<Record<string, unknown>>;
  const mode = delivery?.mode ?? (old.deliver === true ? 'announce' : undefined);
  const [channel, to] = [delivery?.channel ?? old.channel, delivery?.to ?? old.to];
  if (mode === 'webhook')
    return [`its result was posted to ${String(to ?? 'an address')}; use "reveille notify add webhook"`];
  if (mode !== 'announce' || (channel === undefined && to === undefined)) return [];
  const where = [channel, to].filter((part) => part !== undefined).join(' ');
  return [`its result went to ${where}; name a channel of yours: reveille alarm edit … --deliver`];
}

type Content = { body: Partial<AlarmCreateBody> & { wake_message: string }; differs: string[] } & Pick<
  ImportableJob,
  'needs'
>;

function contentOf({ payload, sessionTarget }: OpenclawJob, name: string, { asMessages }: ImportContext): Content {
  switch (payload.kind) {
    case 'systemEvent':
      return { body: { wake_message: payload.text }, differs: [] };
    case 'agentTurn': {
      const { message, model } = payload;
      const named = sessionTarget?.startsWith('session:') ? sessionTarget.slice('session:'.length) : undefined;
      return {
        body: { wake_message: message, ...(model !== undefined && { model }) },
        differs: [
          ...(model === undefined ? [] : [`your agent must know the model ${model}`]),
          ...(named === undefined
            ? []
            : [`it ran in the session ${named}; the alarm begins a conversation of its own`]),
        ],
      };
    }
    case 'command': {
      const { argv, cwd, env = {}, timeoutSeconds } = payload;
      const message = `${name}: ${argv.join(' ')}`;
      const unused = unread({ cwd, env: payload.env, timeoutSeconds }, []).map((sentence) => `payload.${sentence}`);
      if (asMessages)
        return { body: { wake_message: message }, differs: ['it wakes your agent; OpenClaw ran it', ...unused] };
      const variables = Object.entries(env).map(([variable, value]) => `${variable}=${value}`);
      const withEnvironment = variables.length === 0 ? argv : ['/usr/bin/env', ...variables, ...argv];
      const inFolder =
        cwd === undefined ? withEnvironment : ['/bin/sh', '-c', 'cd "$0" && exec "$@"', cwd, ...withEnvironment];
      const seconds = Math.min(LONGEST_RUN_SECONDS, Math.ceil(timeoutSeconds ?? LONGEST_RUN_SECONDS));
      return {
        body: { wake_message: message, run: { argv: inFolder, timeout_seconds: seconds } },
        differs: [
          "it runs on your agent's machine, in its sandbox",
          ...(timeoutSeconds !== undefined && timeoutSeconds > seconds
            ? [`its timeoutSeconds of ${timeoutSeconds} is cut to ${seconds}`]
            : []),
        ],
        needs: { program: argv[0], searchPath: env.PATH, folder: cwd },
      };
    }
  }
}

function jobOf(job: OpenclawJob, context: ImportContext): Job {
  const name = nameFrom(job.name ?? '', job.id);
  const described = { id: job.id, name };
  if (isManaged(job)) return { ...described, differs: [], omitted: 'it belongs to OpenClaw, which manages it itself' };
  return eachJob(described, () => {
    const { schedule, payload, delivery = {} } = job;
    const timed = timeOf(job, context);
    const { body, differs, needs } = contentOf(job, name, context);
    const { differs: ofJitter, ...jitter } = jitterOf(job);
    const inMain = job.sessionTarget === 'main' && payload.kind === 'systemEvent';
    const { wakeMode, ...rest } = job as OpenclawJob & { wakeMode?: unknown };
    const below = (part: string, value: object, read: readonly string[]) =>
      unread(value as Readonly<Record<string, unknown>>, ['kind', ...read]).map((sentence) => `${part}.${sentence}`);
    return {
      ...described,
      isPaused: job.enabled === false,
      differs: [
        ...timed.differs,
        ...ofJitter,
        ...differs,
        ...(inMain
          ? ['it ran in the main session; the alarm begins a conversation unless --conversation names one']
          : []),
        ...deliveryOf(job),
        ...unread(rest, READ),
        ...(wakeMode === undefined || wakeMode === 'now' ? [] : unread({ wakeMode }, [])),
        ...below('schedule', schedule, SCHEDULE_READ[schedule.kind]),
        ...below('payload', payload, [...PAYLOAD_READ[payload.kind], ...DELIVERY_IN_PAYLOAD]),
        ...below('delivery', delivery, DELIVERY_READ),
      ],
      ...(needs && { needs }),
      alarm: { ...timed.time, ...jitter, ...body, label: name },
    };
  });
}

/** @throws ReveilleError for a file that is not OpenClaw's */
export function openclawJobs(text: string, from: string, context: ImportContext): JobList {
  const given = readJsonText(text, from);
  const file = fileSchema.safeParse(Array.isArray(given) ? { jobs: given } : given).data;
  if (file === undefined) throw badFile(from, 'it must have a list "jobs", and version 1 if it names one');
  const jobs = file.jobs.map((one, at) => {
    const modern = modernized(one);
    const { id, name } = z.looseObject({ id: z.string(), name: z.string().optional() }).safeParse(modern).data ?? {};
    const described = { id: id ?? `job ${at + 1}`, name: nameFrom(name ?? '', id ?? `job ${at + 1}`) };
    return eachJob(described, () => jobOf(parseOrThrow(jobSchema, modern), context));
  });
  const ids = jobs.map(({ id }) => id);
  const isRepeated = (id: string, at: number) => ids.indexOf(id) < at;
  return {
    from,
    jobs: jobs.map((job, at) =>
      isRepeated(job.id, at) && 'alarm' in job
        ? { ...job, differs: [...job.differs, `another job of the file has its id ${job.id}; each becomes an alarm`] }
        : job,
    ),
    notes: NOTES,
  };
}
