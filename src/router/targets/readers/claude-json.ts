/**
 * `claude -p --output-format json`: one result object. The exit code says less than it: a turn that ended in an error of the API,
 * or without the tools it asked for, may exit with 0.
 */

import { parseForeignJson } from '../../../wire/json.ts';
import { isObject, jsonLines, lastObject, type Reader, textAt } from './reading.ts';

function resultOf(text: string): Record<string, unknown> | undefined {
  const isResult = (value: unknown): value is Record<string, unknown> => isObject(value) && value.type === 'result';
  // With --verbose the result is the last of a list.
  if (text.trimStart().startsWith('[')) {
    try {
      const list = parseForeignJson(text);
      if (Array.isArray(list)) return list.findLast(isResult);
    } catch {
      // Not a list after all, or one that was cut.
    }
  }
  const whole = lastObject(text);
  return isResult(whole) ? whole : jsonLines(text).findLast(isResult);
}

/** Which tools were refused, each with how often. */
function deniedTools(denials: readonly unknown[]): string {
  const counts = new Map<string, number>();
  for (const denial of denials) {
    const name = (isObject(denial) && textAt(denial, 'tool_name')) || 'a tool';
    counts.set(name, (counts.get(name) ?? 0) + 1);
  }
  return [...counts].map(([name, count]) => (count === 1 ? name : `${name} (${count} times)`)).join(', ');
}

function complaintOf(result: Record<string, unknown>, reply: string | undefined): string {
  const errors = Array.isArray(result.errors) ? result.errors.filter((error) => typeof error === 'string') : [];
  return errors.length > 0 ? errors.join('; ') : (reply ?? 'it gave no reason');
}

export const readClaudeJson: Reader = ({ stdout }) => {
  const result = resultOf(stdout.text);
  if (!result) return { verdict: 'none', began: false };
  const reply = textAt(result, 'result');
  const turns = typeof result.num_turns === 'number' ? result.num_turns : 0;
  const read = { session: textAt(result, 'session_id'), reply, began: turns > 0 };
  const subtype = textAt(result, 'subtype') ?? 'success';
  if (result.is_error === true || subtype !== 'success') {
    const kind = subtype === 'success' ? 'an error' : subtype;
    // What went wrong stands where the answer would.
    const said = result.is_error === true && subtype === 'success' ? { ...read, reply: undefined } : read;
    return { ...said, verdict: 'failed', error: `claude reports ${kind}: ${complaintOf(result, reply)}` };
  }
  const denials = Array.isArray(result.permission_denials) ? result.permission_denials : [];
  if (denials.length > 0) {
    const remedy = 'allow it with more arguments for the program, such as --allowedTools, or in the settings of claude';
    return { ...read, verdict: 'failed', error: `claude was not allowed to use ${deniedTools(denials)}; ${remedy}` };
  }
  return { ...read, verdict: 'done' };
};
