/** The arguments of a call, as a model wrote them. Pure. */

/** Read arguments, or a sentence for the model about what is wrong with them. */
export type ReadArguments = { readonly args: Record<string, unknown> } | { readonly wrong: string };

/** The longest arguments of one call, in UTF-16 units; larger things belong into files. */
export const LONGEST_ARGUMENTS = 256 * 1024;

const significantDigits = (decimal: string) =>
  decimal
    .replace(/[eE].*$/, '')
    .replace(/[-.]/g, '')
    .replace(/^0+|0+$/g, '');

/** Whether JavaScript carries a number as it was written. */
function isExact(value: number, source: string): boolean {
  return Number.isFinite(value) && significantDigits(source) === significantDigits(String(value));
}

/** JSON as this Node has it: the types do not know yet that revivers are given source texts, and that these can be kept. */
const sourceJson = JSON as unknown as {
  parse(
    text: string,
    reviver: (key: string, value: unknown, context: { readonly source?: string }) => unknown,
  ): unknown;
  rawJSON(text: string): object;
};

/** A tool must never be handed a rounded id or amount: a number that would be is passed on as the text that it is. */
function exactly(_key: string, value: unknown, { source }: { readonly source?: string }): unknown {
  if (typeof value !== 'number' || source === undefined || isExact(value, source)) return value;
  return sourceJson.rawJSON(source);
}

function kindOf(value: unknown): string {
  if (value === null) return 'null';
  return Array.isArray(value) ? 'an array' : `a ${typeof value}`;
}

/**
 * Reads the arguments of a call. Written as JSON again they have every digit that they were given.
 *
 * @param input JSON source text; nothing counts as no arguments
 */
export function readArguments(input: string): ReadArguments {
  if (input.length > LONGEST_ARGUMENTS) {
    return { wrong: `the arguments must have at most ${LONGEST_ARGUMENTS} characters (they have ${input.length})` };
  }
  if (input.trim() === '') return { args: {} };
  let value: unknown;
  try {
    value = sourceJson.parse(input, exactly);
  } catch (error) {
    const why = error instanceof Error ? error.message : 'not JSON';
    return { wrong: `the arguments must be a JSON object (${why})` };
  }
  if (typeof value !== 'object' || value === null || Array.isArray(value)) {
    return { wrong: `the arguments must be a JSON object (got ${kindOf(value)})` };
  }
  return { args: value as Record<string, unknown> };
}
