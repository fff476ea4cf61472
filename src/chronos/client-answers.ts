/** Reading the `data` of chronosd's answers: checked where we build on it, source text where digits matter. */
import type { z } from 'zod';
import { type AlarmView, RAW_ALARM_FIELDS } from '../wire/alarm.ts';
import { ReveilleError } from '../wire/errors.ts';
import { ANSWER_DEPTH, elementsOf, parseJsonObject, type RawJson, sliceAt } from '../wire/json.ts';
import { parseOrThrow } from '../wire/validate.ts';
import type { Call } from './client-exchange.ts';

/** An answer that chronosd of this version does not give: something else listens there, or another version. */
export function unexpected(call: Call, detail: string, cause?: unknown): ReveilleError {
  const message = `chronosd answered ${call.method} ${call.path} with something unexpected: ${detail}`;
  return new ReveilleError('unavailable', message, { retryable: false, cause });
}

function reading<T>(call: Call, read: () => T): T {
  try {
    return read();
  } catch (cause) {
    throw unexpected(call, cause instanceof ReveilleError ? cause.message : 'it is malformed', cause);
  }
}

/** Data that a schema describes. Values are never echoed: they may be tokens. */
export function readAnswer<T extends z.ZodType>(call: Call, schema: T, data: RawJson): z.output<T> {
  return reading(call, () => parseOrThrow(schema, parseJsonObject(data.text, [], ANSWER_DEPTH), ['token', 'nonce']));
}

/** Data that is an object, whatever its members. */
export function objectOf(call: Call, text: string): Record<string, unknown> {
  return reading(call, () => parseJsonObject(text, [], ANSWER_DEPTH));
}

/** The source text of each entry of the list called `name`. */
export function listOf(call: Call, text: string, name: string): string[] {
  const elements = elementsOf(sliceAt(text, [name]) ?? 'null');
  if (!elements) throw unexpected(call, `${name} must be a list`);
  return elements;
}

/** An alarm, its payload as source text. */
export function viewOf(call: Call, text: string): AlarmView {
  const view = reading(call, () => parseJsonObject(text, RAW_ALARM_FIELDS, ANSWER_DEPTH));
  if (typeof view.id !== 'string') throw unexpected(call, 'an alarm without an id');
  return view as AlarmView;
}
