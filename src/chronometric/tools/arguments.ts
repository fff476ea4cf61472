/** Checks the arguments of a call, each error with its code. Unknown fields are ignored. Pure. */
import { SESSION_TEXT_MAX_BYTES } from '../../wire/chronometric-vocabulary.ts';
import { ChronometricError } from '../chronometric-error.ts';

/** An argument that the published schema rejects. The set of error codes is closed, so the result is the protocol's own error. */
export class InvalidArgument extends Error {
  override readonly name = 'InvalidArgument';
}

export type Arguments = Readonly<Record<string, unknown>>;

/** The kind of a received value without its text: an argument may be private. */
function kindOf(value: unknown): string {
  if (value === undefined) return 'nothing';
  if (value === null) return 'null';
  if (Array.isArray(value)) return 'a list';
  return typeof value === 'object' ? 'an object' : `a ${typeof value}`;
}

function refuseLong(code: 'INTENT_TOO_LONG' | 'SUMMARY_TOO_LONG', name: string, text: string): void {
  const bytes = Buffer.byteLength(text);
  if (bytes <= SESSION_TEXT_MAX_BYTES) return;
  const message = `${name} must have at most ${SESSION_TEXT_MAX_BYTES} bytes of UTF-8 (it has ${bytes}); shorten it`;
  throw new ChronometricError(code, message);
}

/**
 * @returns the intent unchanged, spaces included
 * @throws ChronometricError `INTENT_REQUIRED` or `INTENT_TOO_LONG`
 */
export function readIntent({ intent }: Arguments): string {
  if (typeof intent !== 'string')
    throw new ChronometricError(
      'INTENT_REQUIRED',
      `intent must be a text with the purpose of the session (got ${kindOf(intent)})`,
    );
  if (intent.trim() === '')
    throw new ChronometricError('INTENT_REQUIRED', 'intent must have text; it is empty or only white space');
  if (!intent.isWellFormed())
    throw new ChronometricError(
      'INTENT_REQUIRED',
      'intent must be well-formed Unicode; it contains half of a surrogate pair',
    );
  refuseLong('INTENT_TOO_LONG', 'intent', intent);
  return intent;
}

/**
 * @returns the summary unchanged; `undefined` without one, `null` included
 * @throws ChronometricError `SUMMARY_TOO_LONG`
 * @throws InvalidArgument for another type
 */
export function readSummary({ summary }: Arguments): string | undefined {
  if (summary === undefined || summary === null) return undefined;
  if (typeof summary !== 'string')
    throw new InvalidArgument(`summary must be text or omitted (got ${kindOf(summary)})`);
  if (!summary.isWellFormed())
    throw new InvalidArgument('summary must be well-formed Unicode; it contains half of a surrogate pair');
  refuseLong('SUMMARY_TOO_LONG', 'summary', summary);
  return summary;
}

/** @throws ChronometricError `INVALID_THRESHOLD` for anything but an integer of at least 1 */
export function readThreshold({ threshold_minutes: given }: Arguments): number {
  if (typeof given === 'number' && Number.isSafeInteger(given) && given >= 1) return given;
  const got = typeof given === 'number' ? String(given) : kindOf(given);
  throw new ChronometricError('INVALID_THRESHOLD', `threshold_minutes must be a whole number, 1 or more (got ${got})`);
}
