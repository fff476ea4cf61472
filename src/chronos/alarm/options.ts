/** The rare fields of an alarm, which share one column. Pure. */
import { fieldOf, OPTION_FIELDS, type OptionField, type SetValue } from '../../wire/alarm-fields.ts';

/** The fields that are set; an absent one has the value of its absence. */
export type AlarmOptions = { readonly [N in OptionField]?: SetValue<N> };

const NO_OPTIONS: AlarmOptions = Object.freeze({});

const CACHE_SIZE = 2_000;

/** Of a `traceparent` of version 00 (W3C Trace Context §3.2.2). */
const TRACEPARENT_LENGTH = 55;

/** Parsed texts, the least recently used first: a claim reads the same text at every fire. */
const parsed = new Map<string, AlarmOptions>();

/** The text of an alarm that is plain but for the trace of its request: each is different, so that no cache helps. */
const TRACED = { start: '{"traceparent":"00-', end: '"}', length: '{"traceparent":""}'.length + TRACEPARENT_LENGTH };

function tracedOptions(options: string): AlarmOptions | undefined {
  if (options.length !== TRACED.length || !options.startsWith(TRACED.start)) return undefined;
  return { traceparent: options.slice(-TRACEPARENT_LENGTH - TRACED.end.length, -TRACED.end.length) };
}

/** The options of an alarm. The last 2,000 texts are cached, so it is cheap enough for the hot path. */
export function optionsOf({ options }: { readonly options: string | null }): AlarmOptions {
  if (options === null) return NO_OPTIONS;
  const traced = tracedOptions(options);
  if (traced) return traced;
  let found = parsed.get(options);
  if (found) parsed.delete(options);
  else found = Object.freeze(JSON.parse(options) as AlarmOptions);
  parsed.set(options, found);
  if (parsed.size > CACHE_SIZE) parsed.delete(parsed.keys().next().value!);
  return found;
}

/**
 * The stored text of some options, in the order of the table; `null` when all are absent.
 *
 * @param given a missing, `null` or default value is absent
 */
export function encodeOptions(given: { readonly [N in OptionField]?: SetValue<N> | null | undefined }): string | null {
  const set = OPTION_FIELDS.filter(
    (name) => given[name] !== undefined && given[name] !== null && given[name] !== fieldOf(name).absent,
  );
  if (set.length === 0) return null;
  return JSON.stringify(Object.fromEntries(set.map((name) => [name, given[name]])));
}

/** Whether two values of a field are equal. */
export function isSameOption(one: unknown, other: unknown): boolean {
  return JSON.stringify(one) === JSON.stringify(other);
}
