/**
 * The arguments of a call, checked so that each fault has its code. Members that no tool knows are not looked at. Pure.
 */
import { INTENT_MAX_CHARACTERS, SUMMARY_MAX_CHARACTERS } from '../../wire/chronometric-words.ts';
import { ChronometricError } from '../chronometric-error.ts';
import { UnfitArgument } from './unfit-argument.ts';

export type Arguments = Readonly<Record<string, unknown>>;

/** In code points, as JSON Schema counts. */
function lengthOf(text: string): number {
  let length = 0;
  for (const _ of text) length++;
  return length;
}

/** What arrived, without a word of it: an argument may be private. */
function kindOf(value: unknown): string {
  if (value === undefined) return 'nothing';
  if (value === null) return 'null';
  if (Array.isArray(value)) return 'a list';
  return typeof value === 'object' ? 'an object' : `a ${typeof value}`;
}

/**
 * @returns the intent as it is, spaces included
 * @throws ChronometricError `INTENT_REQUIRED` or `INTENT_TOO_LONG`
 */
export function readIntent({ intent }: Arguments): string {
  if (typeof intent !== 'string')
    throw new ChronometricError(
      'INTENT_REQUIRED',
      `intent must be text that says what is to be done (got ${kindOf(intent)})`,
    );
  if (intent.trim() === '')
    throw new ChronometricError(
      'INTENT_REQUIRED',
      'intent must say what is to be done; it is empty or only white space',
    );
  if (!intent.isWellFormed())
    throw new ChronometricError(
      'INTENT_REQUIRED',
      'intent must be well-formed Unicode; it holds half of a surrogate pair',
    );
  const length = lengthOf(intent);
  if (length > INTENT_MAX_CHARACTERS)
    throw new ChronometricError(
      'INTENT_TOO_LONG',
      `intent must have at most ${INTENT_MAX_CHARACTERS} characters (it has ${length}); say it more briefly`,
    );
  return intent;
}

/**
 * @returns the summary as it is; `undefined` where there is none, `null` included
 * @throws ChronometricError `SUMMARY_TOO_LONG`
 * @throws UnfitArgument for what is no text
 */
export function readSummary({ summary }: Arguments): string | undefined {
  if (summary === undefined || summary === null) return undefined;
  if (typeof summary !== 'string')
    throw new UnfitArgument(`summary must be text, or be left out (got ${kindOf(summary)})`);
  if (!summary.isWellFormed())
    throw new UnfitArgument('summary must be well-formed Unicode; it holds half of a surrogate pair');
  const length = lengthOf(summary);
  if (length > SUMMARY_MAX_CHARACTERS)
    throw new ChronometricError(
      'SUMMARY_TOO_LONG',
      `summary must have at most ${SUMMARY_MAX_CHARACTERS} characters (it has ${length}); say it more briefly`,
    );
  return summary;
}

/** @throws ChronometricError `INVALID_THRESHOLD` for anything but an integer of at least 1 */
export function readThreshold({ threshold_minutes: given }: Arguments): number {
  if (typeof given === 'number' && Number.isSafeInteger(given) && given >= 1) return given;
  const got = typeof given === 'number' ? String(given) : kindOf(given);
  throw new ChronometricError('INVALID_THRESHOLD', `threshold_minutes must be a whole number, 1 or more (got ${got})`);
}
