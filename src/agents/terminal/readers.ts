/** The readers of program output: their input and their result. */
import { isObject, parseUntrustedJson } from '../../wire/json.ts';
import { addUsage, type TurnUsage, turnUsageSchema } from '../../wire/usage.ts';
import type { OutputFormat } from '../preset.ts';

/** A stored output: all of it, or its beginning and its end with a note between them. */
export type Captured = { text: string; whole: boolean };

export type Output = { stdout: Captured; stderr: Captured };

/** How a process ended; `undefined` when no router observed it. */
export type Exit = { code: number } | { signal: string } | undefined;

/**
 * `none`: the output does not show how the turn ended. `began`: the agent certainly worked on the turn, so its errors
 * do not prove that no turn ran. `errorText`: a non-fatal error of the program itself. `usage`: of this turn;
 * `sessionUsage`: of the whole conversation so far, by programs that report only that.
 */
export type Reading = {
  session?: string | undefined;
  reply?: string | undefined;
  began: boolean;
  errorText?: string | undefined;
  usage?: TurnUsage | undefined;
  sessionUsage?: TurnUsage | undefined;
} & ({ verdict: 'done' } | { verdict: 'failed'; error: string } | { verdict: 'none' });

/** Pure. */
export type Reader = (output: Output, exit: Exit) => Reading;

/** The JSON objects on lines of their own, in order; other lines are ignored. */
function jsonLines(text: string): Record<string, unknown>[] {
  return text.split('\n').flatMap((line) => {
    const trimmed = line.trim();
    const object = trimmed.startsWith('{') ? objectOf(trimmed) : undefined;
    return object ? [object] : [];
  });
}

/** The JSON object in a text without other content. */
export function objectOf(text: string): Record<string, unknown> | undefined {
  try {
    const value = parseUntrustedJson(text);
    return isObject(value) ? value : undefined;
  } catch {
    return undefined;
  }
}

/** A member that is non-empty text. */
export function textAt(object: Record<string, unknown>, name: string): string | undefined {
  const value = object[name];
  return typeof value === 'string' && value !== '' ? value : undefined;
}

/** A count in an object; an absent one is 0, and anything else makes the sum invalid. */
const countAt = (object: Record<string, unknown>, name: string): number =>
  object[name] === undefined ? 0 : typeof object[name] === 'number' ? object[name] : Number.NaN;

/** The usage, unless a count is missing or is none: it is unknown then. */
const usageOf = (input: number, output: number, cost?: unknown): TurnUsage | undefined =>
  turnUsageSchema.safeParse({
    input_tokens: input,
    output_tokens: output,
    ...(typeof cost === 'number' && { cost_usd: cost }),
  }).data;

/** The sum; `undefined` without one, or if a part is unknown. */
const sumOf = (parts: readonly (TurnUsage | undefined)[]): TurnUsage | undefined =>
  parts.reduce((sum, part) => sum && part && addUsage(sum, part), parts.length === 0 ? undefined : usageOf(0, 0));

/** The last JSON object in text that may begin with other lines: on one line, or over the rest of the text. */
function lastObject(text: string): Record<string, unknown> | undefined {
  const whole = objectOf(text.trim());
  if (whole) return whole;
  const last = jsonLines(text).at(-1);
  if (last) return last;
  // Pretty-printed after one or two lines of warnings.
  for (
    let at = text.indexOf('\n{'), candidates = 0;
    at >= 0 && candidates < 16;
    at = text.indexOf('\n{', at + 1), candidates++
  ) {
    const rest = objectOf(text.slice(at + 1).trim());
    if (rest) return rest;
  }
  return undefined;
}

const readPlainText: Reader = ({ stdout }, exit) => {
  const reply = stdout.text.trim();
  if (exit && 'code' in exit && exit.code === 0) return { verdict: 'done', reply, began: true };
  return { verdict: 'none', began: false };
};

function resultOf(text: string): Record<string, unknown> | undefined {
  const isResult = (value: unknown): value is Record<string, unknown> => isObject(value) && value.type === 'result';
  // With --verbose the result is the last of a list.
  if (text.trimStart().startsWith('[')) {
    try {
      const list = parseUntrustedJson(text);
      if (Array.isArray(list)) return list.findLast(isResult);
    } catch {
      // Not a list, or a truncated one.
    }
  }
  const whole = lastObject(text);
  return isResult(whole) ? whole : jsonLines(text).findLast(isResult);
}

/** The denied tools, each with its count. */
function deniedTools(denials: readonly unknown[]): string {
  const counts = new Map<string, number>();
  for (const denial of denials) {
    const name = (isObject(denial) && textAt(denial, 'tool_name')) || 'a tool';
    counts.set(name, (counts.get(name) ?? 0) + 1);
  }
  return [...counts].map(([name, count]) => (count === 1 ? name : `${name} (${count} times)`)).join(', ');
}

function errorTextOf(result: Record<string, unknown>, reply: string | undefined): string {
  const errors = Array.isArray(result.errors) ? result.errors.filter((error) => typeof error === 'string') : [];
  return errors.length > 0 ? errors.join('; ') : (reply ?? 'it gave no reason');
}

/** `modelUsage` has the models of subagents too; older versions have only `usage`, without cached input in its count. */
function claudeUsage({ modelUsage, usage, total_cost_usd: cost }: Record<string, unknown>): TurnUsage | undefined {
  const byModel = isObject(modelUsage) ? Object.values(modelUsage).filter(isObject) : [];
  const total = sumOf(
    byModel.map((one) =>
      usageOf(
        countAt(one, 'inputTokens') + countAt(one, 'cacheReadInputTokens') + countAt(one, 'cacheCreationInputTokens'),
        countAt(one, 'outputTokens'),
      ),
    ),
  );
  if (total) return usageOf(total.input_tokens, total.output_tokens, cost);
  if (!isObject(usage) || usage.input_tokens === undefined || usage.output_tokens === undefined) return undefined;
  const input = ['input_tokens', 'cache_read_input_tokens', 'cache_creation_input_tokens'];
  const inputTokens = input.reduce((sum, name) => sum + countAt(usage, name), 0);
  return usageOf(inputTokens, countAt(usage, 'output_tokens'), cost);
}

const readClaudeJson: Reader = ({ stdout }) => {
  const result = resultOf(stdout.text);
  if (!result) return { verdict: 'none', began: false };
  const reply = textAt(result, 'result');
  const turns = typeof result.num_turns === 'number' ? result.num_turns : 0;
  const read = { session: textAt(result, 'session_id'), reply, began: turns > 0, usage: claudeUsage(result) };
  const subtype = textAt(result, 'subtype') ?? 'success';
  if (result.is_error === true || subtype !== 'success') {
    const kind = subtype === 'success' ? 'an error' : subtype;
    // The error is in the member of the answer.
    const answered = result.is_error === true && subtype === 'success' ? { ...read, reply: undefined } : read;
    return { ...answered, verdict: 'failed', error: `claude reports ${kind}: ${errorTextOf(result, reply)}` };
  }
  const denials = Array.isArray(result.permission_denials) ? result.permission_denials : [];
  if (denials.length > 0) {
    const remedy = 'allow it with more arguments for the program, such as --allowedTools, or in the settings of claude';
    return { ...read, verdict: 'failed', error: `claude was not allowed to use ${deniedTools(denials)}; ${remedy}` };
  }
  return { ...read, verdict: 'done' };
};

/** The item of an event about an action of the agent; an item about an error is none. */
function itemOf(event: Record<string, unknown>): Record<string, unknown> | undefined {
  if (typeof event.type !== 'string' || !event.type.startsWith('item.') || !isObject(event.item)) return undefined;
  return kindOf(event.item) === 'error' ? undefined : event.item;
}

const kindOf = (item: Record<string, unknown>) => item.type ?? item.item_type;

const isMessage = (item: Record<string, unknown>) => /^(agent|assistant)_message$/.test(String(kindOf(item)));

const textOf = (value: unknown): string | undefined =>
  isObject(value) ? textAt(value, 'message') : typeof value === 'string' ? value : undefined;

/** Cached input is a part of the input, and reasoning one of the output. */
function codexUsage(usage: unknown): TurnUsage | undefined {
  if (!isObject(usage) || usage.input_tokens === undefined || usage.output_tokens === undefined) return undefined;
  return usageOf(countAt(usage, 'input_tokens'), countAt(usage, 'output_tokens'));
}

function next(reading: Reading, event: Record<string, unknown>): Reading {
  switch (event.type) {
    case 'thread.started':
      return { ...reading, session: textAt(event, 'thread_id') ?? reading.session };
    case 'turn.completed':
      return { ...reading, verdict: 'done', began: true, sessionUsage: codexUsage(event.usage) };
    case 'turn.failed':
      return { ...reading, verdict: 'failed', error: textOf(event.error) ?? reading.errorText ?? 'no reason' };
    case 'error':
      return { ...reading, errorText: textOf(event) ?? reading.errorText };
  }
  const item = itemOf(event);
  if (!item) return reading;
  return { ...reading, began: true, reply: (isMessage(item) && textAt(item, 'text')) || reading.reply };
}

const readCodexJsonl: Reader = ({ stdout }) => {
  const reading = jsonLines(stdout.text).reduce<Reading>(next, { verdict: 'none', began: false });
  const { errorText } = reading;
  // An error that a turn recovers from precedes the turn's end; after one before the beginning no event follows.
  if (reading.verdict === 'none' && !reading.began && errorText !== undefined)
    return { ...reading, verdict: 'failed', error: `codex reports: ${errorText}` };
  return reading.verdict === 'failed' ? { ...reading, error: `codex reports: ${reading.error}` } : reading;
};

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

/** The answer is on standard output; errors are there or on standard error, depending on the version. */
function answerOf({ stdout, stderr }: Output): Record<string, unknown> | undefined {
  const known = (value: Record<string, unknown> | undefined) =>
    value && ('response' in value || 'error' in value) ? value : undefined;
  return known(lastObject(stdout.text)) ?? known(lastObject(stderr.text));
}

function geminiErrorOf(answer: Record<string, unknown> | undefined, exit: Exit): string | undefined {
  const error = answer?.error;
  const answered = isObject(error) ? textAt(error, 'message') : typeof error === 'string' ? error : undefined;
  const known = exit && 'code' in exit ? FAILURES[exit.code] : undefined;
  if (known !== undefined) return answered === undefined ? known : `${known}: ${answered}`;
  return error === undefined || error === null ? undefined : (answered ?? 'an error without a message');
}

/** Everything of a model's total that the model did not write or think was its input. */
function geminiUsage(stats: unknown): TurnUsage | undefined {
  const models = isObject(stats) && isObject(stats.models) ? Object.values(stats.models) : [];
  return sumOf(
    models.map((model) => {
      const tokens = isObject(model) ? model.tokens : undefined;
      if (!isObject(tokens) || tokens.total === undefined) return undefined;
      const output = countAt(tokens, 'candidates') + countAt(tokens, 'thoughts');
      return usageOf(countAt(tokens, 'total') - output, output);
    }),
  );
}

const readGeminiJson: Reader = (output, exit) => {
  const answer = answerOf(output);
  const reply = answer && textAt(answer, 'response');
  const session = answer && (textAt(answer, 'session_id') ?? textAt(answer, 'sessionId'));
  const read = { session, reply, began: reply !== undefined, usage: geminiUsage(answer?.stats) };
  const errorText = geminiErrorOf(answer, exit);
  const code = exit && 'code' in exit ? exit.code : undefined;
  if (errorText !== undefined) {
    return { ...read, verdict: 'failed', error: `gemini reports: ${errorText}${code ? ` (exit code ${code})` : ''}` };
  }
  const ended = exit === undefined || code === 0;
  return ended && typeof answer?.response === 'string' ? { ...read, verdict: 'done' } : { ...read, verdict: 'none' };
};

export const READERS: Readonly<Record<OutputFormat, Reader>> = {
  'claude-json': readClaudeJson,
  'codex-jsonl': readCodexJsonl,
  'gemini-json': readGeminiJson,
  'plain-text': readPlainText,
};
