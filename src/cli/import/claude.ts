/**
 * Scheduled tasks of Claude Code. Tasks with `durable` are in `.claude/scheduled_tasks.json`. Tasks that only a session
 * knows are in the calls of CronCreate and CronDelete in its transcript (`.jsonl`). The desktop app has a file of its own.
 */
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { z } from 'zod';
import { compileSchedule } from '../../chronos/alarm/schedule.ts';
import { conversationIdSchema } from '../../wire/alarm.ts';
import { ReveilleError } from '../../wire/errors.ts';
import { isObject } from '../../wire/json.ts';
import { formatInstant } from '../../wire/rfc3339.ts';
import { parseOrThrow } from '../../wire/validate.ts';
import { desktopJob } from './claude-desktop.ts';
import {
  badFile,
  badJob,
  eachJob,
  type ImportContext,
  type Job,
  type JobList,
  nameFrom,
  readJsonText,
  unread,
  zonedCron,
} from './job.ts';

const DAY_MS = 86_400_000;
/** A repeating task is deleted after this time, unless it is permanent. */
const EXPIRES_MS = 7 * DAY_MS;

const idSchema = z.string().min(1).max(100);
const taskSchema = z.looseObject({
  id: idSchema,
  cron: z.string().min(1),
  prompt: z.string().min(1),
  createdAt: z.number().min(0).max(8.64e15),
  recurring: z.boolean().optional(),
  permanent: z.boolean().optional(),
});
type Task = Readonly<z.infer<typeof taskSchema>>;
/** A task that a call of a session asked for. */
type SessionTask = Pick<Task, 'id' | 'cron' | 'prompt' | 'createdAt' | 'recurring' | 'permanent'> & {
  session?: string | undefined;
};
const fileSchema = z.union([
  z.looseObject({ tasks: z.array(z.unknown()) }),
  z.looseObject({ scheduledTasks: z.array(z.unknown()) }),
]);

/** Members that an alarm does not need. */
const KNOWN = ['id', 'cron', 'prompt', 'createdAt', 'recurring', 'permanent', 'durable', 'lastFiredAt', 'session'];

const NOTES = [
  'Claude Code fires a task only while a session is open and idle, and up to 15 minutes late to spread load; an alarm fires on time, and wakes the agent of this installation.',
];

const DESKTOP_NOTES = [
  'The desktop app runs a task only while it is open; an alarm fires whenever chronosd runs, and wakes the agent of this installation.',
];

/** The default file of the command. */
export function claudeFile({ folder, home }: ImportContext): string {
  const [own = '', ofUser = ''] = [folder, home].map((base) => join(base, '.claude', 'scheduled_tasks.json'));
  return existsSync(own) ? own : ofUser;
}

function jobOf(task: SessionTask, { now, zone: ownZone }: ImportContext): Job {
  const { id, prompt, createdAt, recurring = false, permanent = false, session } = task;
  const { cron, zone } = zonedCron(task.cron, ownZone);
  const schedule = readCron(cron, zone, createdAt);
  const name = nameFrom(prompt, id);
  const resumes = session !== undefined && conversationIdSchema.safeParse(session).success;
  const shared = {
    label: name,
    wake_message: prompt,
    ...(resumes && { conversation_id: session }),
  };
  const differs = [
    ...unread(task, KNOWN),
    ...(resumes ? ['it resumes the session that set it, where the agent of this installation is Claude Code'] : []),
  ];
  if (recurring) {
    const ends = formatInstant(createdAt + EXPIRES_MS).slice(0, 10);
    if (!permanent) differs.push(`Claude Code deletes it on ${ends}, after 7 days; the alarm has no end`);
    return { id, name, differs, alarm: { ...shared, kind: 'cron', cron_expr: cron, timezone: zone } };
  }
  const due = schedule.next(createdAt);
  if (due === undefined || due <= now) {
    const when = due === undefined ? 'it never fires' : `it was due at ${formatInstant(due)}, which has passed`;
    return { id, name, differs, omitted: `it fires once, and ${when}` };
  }
  return { id, name, differs, alarm: { ...shared, kind: 'once', fire_at: formatInstant(due) } };
}

function readCron(cron: string, zone: string, createdAt: number) {
  try {
    return compileSchedule(cron, zone, createdAt);
  } catch (thrown) {
    if (!(thrown instanceof ReveilleError)) throw thrown;
    throw badJob(thrown.message.replace(/^cron_expr: /, 'cron: '));
  }
}

const blockSchema = z.looseObject({
  type: z.string(),
  id: z.string().optional(),
  name: z.string().optional(),
  input: z.unknown().optional(),
  tool_use_id: z.string().optional(),
  is_error: z.boolean().optional(),
  content: z.unknown().optional(),
});
const entrySchema = z.looseObject({
  timestamp: z.iso.datetime({ offset: true }).optional(),
  sessionId: z.string().optional(),
  message: z.looseObject({ content: z.union([z.string(), z.array(z.unknown())]).optional() }).optional(),
});
const createSchema = z.looseObject({ cron: z.string(), prompt: z.string(), recurring: z.boolean().optional() });
const deleteSchema = z.looseObject({ id: idSchema });

/** The id in the answer to CronCreate. */
const ANSWERED_ID = /\b(?:job|task) ([0-9a-z]{6,40})\b/i;

/** The tasks that the calls in a transcript leave behind, and how many lines are unreadable: the last is often unfinished. */
function tasksInTranscript(text: string, from: string): { tasks: SessionTask[]; unreadable: number } {
  const asked = new Map<string, Omit<SessionTask, 'id'>>();
  const tasks = new Map<string, SessionTask>();
  const lines = text.split('\n').filter((line) => line.trim() !== '');
  let unreadable = 0;
  for (const line of lines) {
    let given: unknown;
    try {
      given = JSON.parse(line);
    } catch {
      unreadable++;
      continue;
    }
    // A transcript has many kinds of entries; only messages have calls.
    const entry = entrySchema.safeParse(given).data;
    const content = entry?.message?.content;
    if (entry === undefined || !Array.isArray(content)) continue;
    for (const part of content) {
      const block = blockSchema.safeParse(part).data;
      if (block?.type === 'tool_use' && block.name === 'CronCreate') {
        const call = createSchema.safeParse(block.input).data;
        // A call that Claude Code refuses has set nothing.
        if (call === undefined) continue;
        const createdAt = Date.parse(entry.timestamp ?? '') || 0;
        const { cron, prompt, recurring = true } = call;
        asked.set(block.id ?? '', { cron, prompt, createdAt, recurring, session: entry.sessionId });
      } else if (block?.type === 'tool_use' && block.name === 'CronDelete') {
        tasks.delete(deleteSchema.safeParse(block.input).data?.id ?? '');
      } else if (block?.type === 'tool_result' && block.is_error !== true) {
        const task = asked.get(block.tool_use_id ?? '');
        const id = ANSWERED_ID.exec(JSON.stringify(block.content ?? ''))?.[1];
        if (task !== undefined && id !== undefined) tasks.set(id, { ...task, id });
      }
    }
  }
  if (unreadable > 0 && unreadable === lines.length) throw badFile(from, 'no line of it is JSON');
  return { tasks: [...tasks.values()], unreadable };
}

/** @throws ReveilleError for a file that is none of Claude's */
export function claudeJobs(text: string, from: string, context: ImportContext): JobList {
  if (from.endsWith('.jsonl')) {
    const { tasks, unreadable } = tasksInTranscript(text, from);
    const jobs = tasks.map((task) => eachJob(describedBy(task, 0), () => jobOf(task, context)));
    return { from, jobs, notes: unreadable === 0 ? NOTES : [...NOTES, `${unreadable} of its lines are no JSON.`] };
  }
  const file = fileSchema.safeParse(readJsonText(text, from)).data;
  if (file === undefined)
    throw badFile(from, 'it must have a list "tasks" (Claude Code) or "scheduledTasks" (the desktop app)');
  const isDesktop = 'scheduledTasks' in file;
  const given = (isDesktop ? file.scheduledTasks : file.tasks) as readonly unknown[];
  const jobs = given.map((task, at) =>
    eachJob(describedBy(task, at), () =>
      isDesktop ? desktopJob(task, context) : jobOf(parseOrThrow(taskSchema, task), context),
    ),
  );
  return { from, jobs, notes: isDesktop ? DESKTOP_NOTES : NOTES };
}

/** The id and name of a task, also of one that cannot be read. */
function describedBy(task: unknown, at: number): { id: string; name: string } {
  const { id, prompt, name } = isObject(task) ? task : {};
  const own = typeof id === 'string' && id !== '' ? id : `task ${at + 1}`;
  return { id: own, name: nameFrom(String(name ?? prompt ?? ''), own) };
}
