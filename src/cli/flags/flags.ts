/** Reads the values of flags. Each function names the flag, the value and the remedy in its error. */
import { readFileSync } from 'node:fs';
import { parseDuration } from '../../kit/clock/duration.ts';
import { thrownText } from '../../wire/errors.ts';
import { RawJson } from '../../wire/json.ts';
import { parseInstant } from '../../wire/rfc3339.ts';
import { showValue } from '../../wire/validate.ts';
import { UsageError } from './usage-error.ts';

/** A flag's value in the command line. */
type Given = string | undefined;

/** A whole number from `min` to `max`. */
export function wholeNumberFlag(name: string, given: Given, min: number, max: number): number | undefined {
  if (given === undefined) return undefined;
  const value = /^\d{1,15}$/.test(given) ? Number(given) : Number.NaN;
  if (value >= min && value <= max) return value;
  throw new UsageError(`${name} must be a whole number from ${min} to ${max} (got ${showValue(given)})`);
}

/** A duration, in seconds. */
export function durationFlag(name: string, given: Given, minSeconds: number): number | undefined {
  if (given === undefined) return undefined;
  const ms = parseDuration(given);
  if (ms === undefined) {
    throw new UsageError(`${name} must be a duration such as 90s, 10m, 1h30m or 2d (got ${showValue(given)})`);
  }
  if (ms < minSeconds * 1000) throw new UsageError(`${name} must be at least ${minSeconds}s (got ${showValue(given)})`);
  return ms / 1000;
}

/** An instant, as written. */
export function instantFlag(name: string, given: Given): string | undefined {
  if (given === undefined || parseInstant(given) !== undefined) return given;
  const right = 'an instant with an offset, such as 2026-06-15T08:10:00Z or 2026-06-15T10:10:00+02:00';
  throw new UsageError(`${name} must be ${right} (got ${showValue(given)})`);
}

/** One of a few words. */
export function choiceFlag<T extends string>(name: string, given: Given, choices: readonly T[]): T | undefined {
  const choice = choices.find((word) => word === given);
  if (given === undefined || choice !== undefined) return choice;
  throw new UsageError(`${name} must be one of ${choices.join(', ')} (got ${showValue(given)})`);
}

const TYPED = ', such as \'{"ticket":42}\' in single quotes';

/** JSON, kept as its source text. @param hint how to type it; empty for a file */
export function jsonFlag(name: string, text: string, hint = TYPED): RawJson {
  try {
    return RawJson.parse(text);
  } catch (cause) {
    throw new UsageError(`${name} must be JSON${hint} (${thrownText(cause)})`, cause);
  }
}

/** The text of a file, or of standard input for `-`, unchanged. */
export function fileFlag(name: string, path: string): string {
  let bytes: Buffer;
  try {
    bytes = readFileSync(path === '-' ? 0 : path);
  } catch (cause) {
    const why = thrownText(cause);
    throw new UsageError(`${name} ${path} cannot be read: ${why}`, cause);
  }
  try {
    return new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(bytes);
  } catch (cause) {
    throw new UsageError(`${name} ${path} must be UTF-8 text; it contains other bytes`, cause);
  }
}
