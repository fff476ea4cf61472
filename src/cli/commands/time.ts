/**
 * `reveille time`: the user's day and week; and `time hook`, a line about the time for every prompt. A failure there
 * does not affect the prompt.
 */
import { existsSync } from 'node:fs';
import type { CallContext } from '../../chronometric/tools/call-context.ts';
import { dayRuleOf, instantOf, viewDay, viewWeek } from '../../chronometric/view/day-view.ts';
import { type Known, promptContext } from '../../chronometric/view/prompt-context.ts';
import { recordSession } from '../../chronos-mcp/sessions.ts';
import { type Clock, wait } from '../../kit/clock/clock.ts';
import { clientProcess } from '../../kit/process/process-info.ts';
import { jsonForTerminal, printable } from '../../kit/text/hidden-characters.ts';
import type { DayView } from '../../wire/chronometric-view.ts';
import { toReveilleError } from '../../wire/errors.ts';
import { showValue } from '../../wire/validate.ts';
import { type ChronometricAccess, chronometricAccess } from '../access/chronometric.ts';
import type { CliContext } from '../context.ts';
import { UsageError } from '../flags/usage-error.ts';
import { wrap } from '../screens/columns.ts';
import type { Reader } from '../screens/render.ts';
import { renderDay, renderWeek } from '../screens/time-screen.ts';
import { dateWords, HOOK_FORMATS, inForm, promptLine } from '../screens/time-text.ts';

export type TimeFlags = { week?: boolean; date?: string };

const FIRST_STEPS = [
  'Chronometric records time while a client runs it. Add it to your client once:',
  '',
  '  claude mcp add --scope user chronometric -- reveille chronometric',
  '  codex mcp add chronometric -- reveille chronometric',
  '',
  'Then state what you are about to do; the agent marks start and end. More: reveille docs time awareness',
];

/** An instant of a day, or now. @throws UsageError for an invalid date */
export function instantAt(date: string | undefined, callContext: CallContext): number {
  if (date === undefined) return callContext.now;
  if (!/^\d{4}-\d{2}-\d{2}$/.test(date))
    throw new UsageError(`--date must be a date such as 2026-06-15 (got ${showValue(date)})`);
  const instant = instantOf(dayRuleOf(callContext), date);
  if (instant === undefined) throw new UsageError(`--date ${date} does not exist in ${callContext.timezone}`);
  return instant;
}

const isEmpty = ({ sessions, stretches, forgotten_session: forgotten }: DayView) =>
  sessions.length === 0 && stretches.length === 0 && forgotten === undefined;

function nothing(when: string, hasState: boolean, look: Reader): string[] {
  const steps = FIRST_STEPS.flatMap((line) => (line.startsWith(' ') ? [line] : wrap(line, look.width)));
  return [...wrap(`Nothing is recorded for ${when}.`, look.width), ...(hasState ? [] : ['', ...steps])];
}

function show(
  { callContext, hasState, state }: ChronometricAccess,
  { out }: CliContext,
  { week, date }: TimeFlags,
): void {
  const look: Reader = { now: callContext.now, zone: callContext.timezone, width: out.columns, paint: out.paint };
  const at = instantAt(date, callContext);
  if (week) {
    const view = viewWeek(state, callContext, at);
    const last = view.days.at(-1)!;
    const empty = view.days.every(isEmpty);
    out.result(
      view,
      empty ? nothing(`the seven days to ${dateWords(last.date)}`, hasState, look) : renderWeek(view, look),
    );
  } else {
    const view = viewDay(state, callContext, at);
    out.result(
      view,
      isEmpty(view)
        ? nothing(date === undefined ? 'today yet' : dateWords(view.date), hasState, look)
        : renderDay(view, look),
    );
  }
  if (callContext.unreadable !== undefined && !out.json)
    out.remark(`Shown without your profile: ${printable(callContext.unreadable)}`);
}

export async function time(context: CliContext, flags: TimeFlags): Promise<void> {
  const access = await chronometricAccess(context);
  try {
    show(access, context, flags);
  } finally {
    access.state.close();
  }
}

export type HookFlags = { format?: string; intent?: boolean };

/** The prompt waits: a line without the session is better than a late one. */
const BUSY_MS = 250;
const INPUT_MS = 100;

/** The state, as far as it can be read; this prompt is recorded first. */
function readKnown({ callContext, state }: ChronometricAccess, problems: string[]): Known {
  const attempt = <T>(what: () => T): T | undefined => {
    try {
      return what();
    } catch (thrown) {
      const { message } = toReveilleError(thrown);
      if (!problems.includes(message)) problems.push(message);
      return undefined;
    }
  };
  // A file that cannot be written can often be read.
  const lastPromptAt =
    attempt(() => state.prompted(callContext.now) ?? 'never') ?? attempt(() => state.lastPromptAt() ?? 'never');
  const session = attempt(() => state.open() ?? 'none');
  state.close();
  return { ...(lastPromptAt !== undefined && { lastPromptAt }), ...(session !== undefined && { session }) };
}

async function showPromptContext(context: CliContext, { format = 'text', intent = false }: HookFlags): Promise<void> {
  const { out } = context;
  const problems: string[] = [];
  const access = await chronometricAccess(context, BUSY_MS);
  if (access.callContext.unreadable !== undefined) problems.push(access.callContext.unreadable);
  const prompt = promptContext(access.callContext, readKnown(access, problems), intent, problems);
  const line = promptLine(prompt);
  const formed = inForm(format, line);
  if (out.json) out.result({ ...prompt, line }, []);
  // Programs read it, also from a terminal.
  else if (formed !== undefined) out.result({}, jsonForTerminal(formed));
  else problems.push(`--format must be one of ${HOOK_FORMATS.join(', ')} (got ${JSON.stringify(format)})`);
  for (const problem of problems) out.remark(printable(`reveille time hook: ${problem}`));
}

export async function timeHook(context: CliContext, flags: HookFlags): Promise<void> {
  const input = collectInput(context.process.stdin, context.clock);
  try {
    await showPromptContext(context, flags);
  } finally {
    noteSession(context, await input(INPUT_MS));
  }
}

/** More than any prompt; a longer input has no session. */
const MOST_INPUT = 16 * 1024 * 1024;

/**
 * Writes down which session the client has open, so that an alarm which it sets can wake that session. Of what the
 * client wrote, the id and the folder are kept. Without a home of Reveille nothing is.
 */
function noteSession({ home, out }: CliContext, input: string): void {
  if (input === '' || !existsSync(home.path)) return;
  try {
    const client = clientProcess();
    if (client) recordSession(home.sessionsFolder, client, input);
  } catch (thrown) {
    out.remark(printable(`reveille time hook: ${toReveilleError(thrown).message}`));
  }
}

/**
 * Reads standard input to its end, so that its writer does not fail on a pipe that is full or gone.
 *
 * @returns waits until the writer has hung up, but no longer than `limitMs`, lets go of the input, and gives what came
 */
function collectInput(stdin: NodeJS.ReadStream, clock: Clock): (limitMs: number) => Promise<string> {
  if (stdin.isTTY) return async () => '';
  const hungUp = new AbortController();
  const chunks: Buffer[] = [];
  let bytes = 0;
  stdin.on('data', (chunk: Buffer | string) => {
    bytes += chunk.length;
    if (bytes <= MOST_INPUT) chunks.push(Buffer.from(chunk));
  });
  for (const event of ['end', 'close', 'error']) stdin.once(event, () => hungUp.abort());
  return async (limitMs) => {
    await wait(clock, limitMs, hungUp.signal);
    stdin.destroy();
    return Buffer.concat(chunks).toString('utf8');
  };
}
