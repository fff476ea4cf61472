/** `reveille time hook`: a line about the time for every prompt. Whatever goes wrong here, the prompt goes on its way. */

import { type Known, promptContext } from '../../chronometric/view/prompt-context.ts';
import { jsonForTerminal, printable } from '../../kit/text/hidden-characters.ts';
import { toReveilleError } from '../../wire/errors.ts';
import { type ChronometricAccess, chronometricAccess } from '../access/chronometric.ts';
import type { CliContext } from '../context.ts';
import { discardInput } from '../flags/unread-input.ts';
import { HOOK_FORMATS, inForm, promptLine } from '../screens/prompt-line.ts';

export type HookFlags = { format?: string; intent?: boolean };

/** A person waits: rather a line without the session than a late one. */
const BUSY_MS = 250;
const INPUT_MS = 100;

/** What the state says, as far as it does. Looking at it moves the marker of the last prompt. */
function ask({ occasion, state }: ChronometricAccess, problems: string[]): Known {
  try {
    const lastPromptAt = state.prompted(occasion.now) ?? 'never';
    return { lastPromptAt, session: state.open() ?? 'none' };
  } catch (thrown) {
    problems.push(toReveilleError(thrown).message);
    return {};
  } finally {
    state.close();
  }
}

async function tell(context: CliContext, { format = 'text', intent = false }: HookFlags): Promise<void> {
  const { out } = context;
  const problems: string[] = [];
  const access = await chronometricAccess(context, BUSY_MS);
  if (access.occasion.unreadable !== undefined) problems.push(access.occasion.unreadable);
  const told = promptContext(access.occasion, ask(access, problems), intent, problems);
  const line = promptLine(told);
  const formed = inForm(format, line);
  if (out.json) out.result({ ...told, line }, []);
  // Programs read it, also from a terminal that somebody watches.
  else if (formed !== undefined) out.result({}, jsonForTerminal(formed));
  else problems.push(`--format must be one of ${HOOK_FORMATS.join(', ')} (got ${JSON.stringify(format)})`);
  for (const problem of problems) out.remark(printable(`reveille time hook: ${problem}`));
}

export async function timeHook(context: CliContext, flags: HookFlags): Promise<void> {
  const untilHungUp = discardInput(context.process.stdin, context.clock);
  try {
    await tell(context, flags);
  } finally {
    await untilHungUp(INPUT_MS);
  }
}
