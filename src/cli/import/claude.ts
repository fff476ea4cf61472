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
import { formatInstant } from '../../wire/rfc3339.ts';
import { desktopJob } from './claude-desktop.ts';
import { badJob, type ImportContext, type Job, type JobList, nameFrom, readJsonText, readPart, unread } from './job.ts';

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

function jobOf(task: SessionTask, { now, zone }: ImportContext, from: string): Job {
  const { id, cron, prompt, createdAt, recurring = false, permanent = false, session } = task;
  const schedule = readCron(cron, zone, createdAt, from, id);
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

function readCron(cron: string, zone: string, createdAt: number, from: string, id: string) {
  try {
    return compileSchedule(cron, zone, createdAt);
  } catch (thrown) {
    if (!(thrown instanceof ReveilleError)) throw thrown;
    throw badJob(from, `task ${id}`, thrown.message.replace(/^cron_expr: /, 'cron: '));
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

/** The tasks that the calls in a transcript leave behind. */
function tasksInTranscript(text: string, from: string): SessionTask[] {
  const asked = new Map<string, Omit<SessionTask, 'id'>>();
  const tasks = new Map<string, SessionTask>();
  for (const [at, line] of text.split('\n').entries()) {
    if (line.trim() === '') continue;
    // A transcript has many kinds of entries; only messages have calls.
    const entry = entrySchema.safeParse(readJsonText(line, `${from}, line ${at + 1},`)).data;
    const content = entry?.message?.content;
    if (entry === undefined || !Array.isArray(content)) continue;
    for (const given of content) {
      const block = blockSchema.safeParse(given).data;
      if (block?.type === 'tool_use' && block.name === 'CronCreate') {
        const { cron, prompt, recurring } = readPart(createSchema, block.input, from, `line ${at + 1}, CronCreate`);
        const createdAt = Date.parse(entry.timestamp ?? '') || 0;
        asked.set(block.id ?? '', { cron, prompt, createdAt, recurring: recurring ?? true, session: entry.sessionId });
      } else if (block?.type === 'tool_use' && block.name === 'CronDelete') {
        tasks.delete(readPart(deleteSchema, block.input, from, `line ${at + 1}, CronDelete`).id);
      } else if (block?.type === 'tool_result' && block.is_error !== true) {
        const task = asked.get(block.tool_use_id ?? '');
        const id = ANSWERED_ID.exec(JSON.stringify(block.content ?? ''))?.[1];
        if (task !== undefined && id !== undefined) tasks.set(id, { ...task, id });
      }
    }
  }
  return [...tasks.values()];
}

/** @throws ReveilleError for a file that is none of Claude's, and for a task that is wrong */
export function claudeJobs(text: string, from: string, context: ImportContext): JobList {
  if (from.endsWith('.jsonl')) {
    const tasks = tasksInTranscript(text, from);
    return { from, jobs: tasks.map((task) => jobOf(task, context, from)), notes: NOTES };
  }
  const file = fileSchema.safeParse(readJsonText(text, from)).data;
  if (file === undefined) throw badFile(from);
  if ('scheduledTasks' in file) {
    const given = file.scheduledTasks as readonly unknown[];
    return { from, jobs: given.map((task, at) => desktopJob(task, at, from, context)), notes: DESKTOP_NOTES };
  }
  const tasks = (file.tasks as readonly unknown[]).map((task, at) =>
    readPart(taskSchema, task, from, nameOfTask(task, at)),
  );
  return { from, jobs: tasks.map((task) => jobOf(task, context, from)), notes: NOTES };
}

const badFile = (from: string) =>
  badJob(from, 'the file', 'it must have a list "tasks" (Claude Code) or "scheduledTasks" (the desktop app)');

function nameOfTask(task: unknown, at: number): string {
  const id = z.looseObject({ id: idSchema }).safeParse(task).data?.id;
  return id === undefined ? `task ${at + 1}` : `task ${id}`;
}
