/**
 * Scheduled tasks of the desktop app of Claude: `scheduled-tasks.json`, with the prompt of each task in a file `SKILL.md`.
 */
import { basename, dirname, join } from 'node:path';
import { z } from 'zod';
import { ReveilleError } from '../../wire/errors.ts';
import { formatInstant, parseInstant } from '../../wire/rfc3339.ts';
import { parseOrThrow } from '../../wire/validate.ts';
import { badJob, type ImportContext, type Job, nameFrom, unread, withoutEmpty, zonedCron } from './job.ts';

const taskSchema = z.looseObject({
  id: z.string().min(1).max(200),
  name: z.string().optional(),
  prompt: z.string().optional(),
  cronExpression: z.string().min(1).optional(),
  fireAt: z.union([z.string(), z.number().min(0).max(8.64e15)]).optional(),
  enabled: z.boolean().optional(),
  filePath: z.string().optional(),
  model: z.string().optional(),
  cwd: z.string().optional(),
  userSelectedFolders: z.array(z.string()).optional(),
});
type Task = z.output<typeof taskSchema>;

const READ = ['id', 'name', 'prompt', 'cronExpression', 'fireAt', 'enabled', 'filePath', 'model', 'cwd'];
/** State, and members that make no difference to an alarm. */
const SETTLED = ['userSelectedFolders', 'createdAt', 'lastRunAt', 'nextRunAt', 'disableJitter'];

/** A file with a heading of YAML between `---`: the text after it. */
const bodyOf = (text: string) => text.replace(/^\ufeff?---\r?\n[\s\S]*?\r?\n---[ \t]*(?:\r?\n|$)/, '').trim();

const PROMPT_FILE = 'SKILL.md';

/** Of the file that a task names only the prompt is read: any other file is none of the app's, and may be a secret. */
function promptOf({ id, prompt, filePath }: Task, { home, readBeside }: ImportContext): string | undefined {
  if (prompt !== undefined && prompt.trim() !== '') return prompt;
  const named = filePath !== undefined && basename(filePath) === PROMPT_FILE ? filePath : undefined;
  const places = [named, join(home, '.claude', 'scheduled-tasks', id, PROMPT_FILE)];
  const [text] = places.flatMap((path) => {
    try {
      return path === undefined ? [] : readBeside(path, dirname(path));
    } catch (thrown) {
      if (thrown instanceof ReveilleError) return [];
      throw thrown;
    }
  });
  const body = text === undefined ? '' : bodyOf(text);
  return body === '' ? undefined : body;
}

/** @throws ReveilleError for a task that is wrong */
export function desktopJob(given: unknown, context: ImportContext): Job {
  const task = parseOrThrow(taskSchema, withoutEmpty(given));
  const { id, cronExpression, fireAt, model, cwd, userSelectedFolders = [], enabled } = task;
  const name = nameFrom(task.name ?? '', id);
  const described = { id, name };
  const prompt = promptOf(task, context);
  if (prompt === undefined)
    return { ...described, differs: [], omitted: 'its prompt is in no file SKILL.md that can be read here' };
  const folder = cwd ?? userSelectedFolders[0];
  const differs = [
    ...(folder === undefined ? [] : [`it ran in ${folder}; the alarm wakes your agent in its own folder`]),
    ...userSelectedFolders
      .filter((other) => other !== folder)
      .map((other) => `its folder ${other} is not carried over`),
    ...(model === undefined ? [] : [`your agent must know the model ${model}`]),
    ...unread(task, [...READ, ...SETTLED]),
  ];
  const shared = { label: name, wake_message: prompt, ...(model !== undefined && { model }) };
  const isPaused = enabled === false;
  if (cronExpression !== undefined) {
    const { cron, zone } = zonedCron(cronExpression, context.zone);
    const series = { kind: 'cron', cron_expr: cron, timezone: zone } as const;
    return { ...described, differs, isPaused, alarm: { ...shared, ...series } };
  }
  const due = typeof fireAt === 'string' ? parseInstant(fireAt) : fireAt;
  if (due === undefined) throw badJob('it must have cronExpression, or fireAt such as 2026-12-01T09:00:00Z');
  if (due <= context.now)
    return { ...described, differs: [], omitted: `it fires once, at ${formatInstant(due)}, which has passed` };
  return { ...described, differs, isPaused, alarm: { ...shared, kind: 'once', fire_at: formatInstant(due) } };
}
