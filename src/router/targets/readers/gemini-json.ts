/** `gemini --output-format json`: one object, and an exit code that says what kind of failure it was. */
import { type Exit, isObject, lastObject, type Output, type Reader, textAt } from './reading.ts';

/** https://geminicli.com/docs/cli/headless, and the errors of the CLI's own sources. */
const FAILURES: Readonly<Record<number, string>> = {
  41: 'it is not logged in',
  42: 'it did not accept its input or its arguments',
  44: 'its sandbox failed',
  52: 'its configuration is wrong',
  53: 'it reached the limit of its turns',
  54: 'one of its tools failed',
  130: 'it was cancelled',
};

/** The answer stands on standard output; errors, by version, there or on standard error. */
function answerOf({ stdout, stderr }: Output): Record<string, unknown> | undefined {
  const known = (value: Record<string, unknown> | undefined) =>
    value && ('response' in value || 'error' in value) ? value : undefined;
  return known(lastObject(stdout.text)) ?? known(lastObject(stderr.text));
}

function complaintOf(answer: Record<string, unknown> | undefined, exit: Exit): string | undefined {
  const error = answer?.error;
  const said = isObject(error) ? textAt(error, 'message') : typeof error === 'string' ? error : undefined;
  const known = exit && 'code' in exit ? FAILURES[exit.code] : undefined;
  if (known !== undefined) return said === undefined ? known : `${known}: ${said}`;
  return error === undefined || error === null ? undefined : (said ?? 'an error without words');
}

export const readGeminiJson: Reader = (output, exit) => {
  const answer = answerOf(output);
  const reply = answer && textAt(answer, 'response');
  const session = answer && (textAt(answer, 'session_id') ?? textAt(answer, 'sessionId'));
  const read = { session, reply, began: reply !== undefined };
  const complaint = complaintOf(answer, exit);
  const code = exit && 'code' in exit ? exit.code : undefined;
  if (complaint !== undefined) {
    return { ...read, verdict: 'failed', error: `gemini reports: ${complaint}${code ? ` (exit code ${code})` : ''}` };
  }
  const ended = exit === undefined || code === 0;
  return ended && typeof answer?.response === 'string' ? { ...read, verdict: 'done' } : { ...read, verdict: 'none' };
};
