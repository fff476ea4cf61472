/** Understanding what a program wrote: what its readers are given, and what they make of it. */
import { parseForeignJson } from '../../../wire/json.ts';

/** What is left of an output: all of it, or its beginning and its end with a note between them. */
export type Captured = { text: string; whole: boolean };

export type Output = { stdout: Captured; stderr: Captured };

/** How a process ended; `undefined` where nobody was there to see it. */
export type Exit = { code: number } | { signal: string } | undefined;

/**
 * `none`: the output does not say how the turn ended. `began`: the agent certainly worked on the turn, so what it complains about
 * is no proof that nothing ran. `complaint`: what the program itself said was wrong, as far as that ended nothing.
 */
export type Reading = {
  session?: string | undefined;
  reply?: string | undefined;
  began: boolean;
  complaint?: string | undefined;
} & ({ verdict: 'done' } | { verdict: 'failed'; error: string } | { verdict: 'none' });

/** Pure. */
export type Reader = (output: Output, exit: Exit) => Reading;

/** The JSON objects that stand on lines of their own, in order; anything else between them is passed over. */
export function jsonLines(text: string): Record<string, unknown>[] {
  return text.split('\n').flatMap((line) => {
    const trimmed = line.trim();
    const object = trimmed.startsWith('{') ? objectOf(trimmed) : undefined;
    return object ? [object] : [];
  });
}

/** The JSON object that text consists of. */
export function objectOf(text: string): Record<string, unknown> | undefined {
  try {
    const value = parseForeignJson(text);
    return isObject(value) ? value : undefined;
  } catch {
    return undefined;
  }
}

export function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

/** A member that is text with something in it. */
export function textAt(object: Record<string, unknown>, name: string): string | undefined {
  const value = object[name];
  return typeof value === 'string' && value !== '' ? value : undefined;
}

/** The last JSON object in text that may begin with other lines: on one line, or spread over the rest of the text. */
export function lastObject(text: string): Record<string, unknown> | undefined {
  const whole = objectOf(text.trim());
  if (whole) return whole;
  const last = jsonLines(text).at(-1);
  if (last) return last;
  // Pretty-printed after a line or two of warnings.
  for (let at = text.indexOf('\n{'), tries = 0; at >= 0 && tries < 16; at = text.indexOf('\n{', at + 1), tries++) {
    const rest = objectOf(text.slice(at + 1).trim());
    if (rest) return rest;
  }
  return undefined;
}
