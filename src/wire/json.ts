/**
 * JSON that keeps its digits. `JSON.parse` changes `12345678901234567890` and re-orders integer-like keys. Values that
 * must arrive unchanged, such as an alarm's `payload`, are therefore never parsed into an object. They are carried as
 * the sender's source text.
 */
import { ReveilleError } from './errors.ts';

/**
 * Maximum nesting depth of text from outside. `JSON.parse` has no limit, but most later consumers recurse per level:
 * schemas, `JSON.stringify`, canonical JSON.
 */
export const JSON_DEPTH = 128;
/** Answers of Reveille's daemons wrap the accepted text. */
export const ANSWER_DEPTH = JSON_DEPTH + 16;

/**
 * Refuses text that is nested too deep. The text need not be well-formed.
 *
 * @param what the text's name in the message
 * @throws ReveilleError `invalid_request` with the member of the outermost object, and the limit
 */
export function refuseDeepNesting(text: string, what = 'the body', most = JSON_DEPTH): void {
  let depth = 0;
  let member: string | undefined;
  let last = '';
  for (let at = 0; at < text.length; at++) {
    const char = text.charCodeAt(at);
    if (char === 0x22) {
      const from = at;
      for (at++; at < text.length && text.charCodeAt(at) !== 0x22; at++) if (text.charCodeAt(at) === 0x5c) at++;
      if (depth === 1) last = text.slice(from + 1, Math.min(at, from + 61));
    } else if (char === 0x3a && depth === 1) {
      member = last;
    } else if (char === 0x5b || char === 0x7b) {
      if (++depth <= most) continue;
      const where = member === undefined ? what : /^[\w.-]+$/.test(member) ? member : JSON.stringify(member);
      throw new ReveilleError(
        'invalid_request',
        `${where} must not nest lists and objects more than ${most} deep${member === undefined ? '' : `, counted from the outside of ${what}`}`,
      );
    } else if (char === 0x5d || char === 0x7d) {
      depth--;
    }
  }
}

/**
 * `JSON.parse` for untrusted text.
 *
 * @throws SyntaxError if it is not JSON, ReveilleError `invalid_request` if it is nested too deep
 */
export function parseUntrustedJson(text: string, what = 'the text'): unknown {
  refuseDeepNesting(text, what);
  return JSON.parse(text);
}

/** Whether a value is a JSON object: neither a list nor `null`. */
export const isObject = (value: unknown): value is Record<string, unknown> =>
  typeof value === 'object' && value !== null && !Array.isArray(value);

/** A JSON value kept as its source text; written out verbatim by {@link encodeJson}. */
export class RawJson {
  readonly text: string;

  /** @param text well-formed JSON, as the caller guarantees; use {@link RawJson.parse} for text from outside */
  constructor(text: string) {
    this.text = text;
  }

  /** Checks that `text` is one JSON value and keeps it without surrounding white space. */
  static parse(text: string): RawJson {
    parseUntrustedJson(text, 'the JSON');
    return new RawJson(text.trim());
  }

  /** The value as JavaScript sees it: numbers may have lost digits. For display and inspection only. */
  value(): unknown {
    return JSON.parse(this.text);
  }
}

const WHITESPACE = new Set([0x20, 0x09, 0x0a, 0x0d]);

function skipWhitespace(text: string, from: number): number {
  let at = from;
  while (WHITESPACE.has(text.charCodeAt(at))) at++;
  return at;
}

/** The index just past the string literal that starts at `from`. */
function endOfString(text: string, from: number): number {
  let at = from + 1;
  while (text[at] !== '"') at += text[at] === '\\' ? 2 : 1;
  return at + 1;
}

/** The index just past the value that starts at `from`, in well-formed text. */
function endOfValue(text: string, from: number): number {
  const first = text[from];
  if (first === '"') return endOfString(text, from);
  if (first === '{' || first === '[') {
    let depth = 0;
    let at = from;
    do {
      const char = text[at];
      if (char === '"') {
        at = endOfString(text, at);
        continue;
      }
      if (char === '{' || char === '[') depth++;
      if (char === '}' || char === ']') depth--;
      at++;
    } while (depth > 0);
    return at;
  }
  let at = from;
  while (at < text.length && !',]}'.includes(text[at]!) && !WHITESPACE.has(text.charCodeAt(at))) at++;
  return at;
}

/**
 * The source text of each member of the object that starts at `from`. As with `JSON.parse`, the last of several equal
 * keys wins. `text` must be well-formed JSON and have an object there.
 */
function memberSlices(text: string, from: number): Map<string, { start: number; end: number }> {
  const members = new Map<string, { start: number; end: number }>();
  let at = skipWhitespace(text, from + 1);
  while (text[at] !== '}') {
    const keyEnd = endOfString(text, at);
    const key = JSON.parse(text.slice(at, keyEnd)) as string;
    const start = skipWhitespace(text, skipWhitespace(text, keyEnd) + 1);
    const end = endOfValue(text, start);
    members.set(key, { start, end });
    at = skipWhitespace(text, end);
    if (text[at] === ',') at = skipWhitespace(text, at + 1);
  }
  return members;
}

/**
 * The source text of the value at `path` (object members only) in well-formed JSON, or `undefined` if there is none.
 *
 * @param text well-formed JSON
 * @param path member names from the outermost object inwards
 */
export function sliceAt(text: string, path: readonly string[]): string | undefined {
  let start = skipWhitespace(text, 0);
  let end = endOfValue(text, start);
  for (const key of path) {
    if (text[start] !== '{') return undefined;
    const member = memberSlices(text, start).get(key);
    if (!member) return undefined;
    ({ start, end } = member);
  }
  return text.slice(start, end);
}

/** The source text of each member of an object in well-formed JSON, read once. */
export function membersOf(text: string): Map<string, string> {
  const members = memberSlices(text, skipWhitespace(text, 0));
  return new Map([...members].map(([name, { start, end }]) => [name, text.slice(start, end)]));
}

/**
 * The source text of each element of a JSON array.
 *
 * @param text well-formed JSON
 * @returns `undefined` if it is not an array
 */
export function elementsOf(text: string): string[] | undefined {
  let at = skipWhitespace(text, 0);
  if (text[at] !== '[') return undefined;
  const elements: string[] = [];
  at = skipWhitespace(text, at + 1);
  while (text[at] !== ']') {
    const end = endOfValue(text, at);
    elements.push(text.slice(at, end));
    at = skipWhitespace(text, end);
    if (text[at] === ',') at = skipWhitespace(text, at + 1);
  }
  return elements;
}

/**
 * Parses a request body that must be a JSON object. Members named in `raw` are returned as {@link RawJson}.
 *
 * @param most maximum nesting depth
 * @throws ReveilleError `invalid_request` if the text is not JSON, not an object, or nested too deep
 */
export function parseJsonObject(text: string, raw: readonly string[] = [], most = JSON_DEPTH): Record<string, unknown> {
  refuseDeepNesting(text, 'the body', most);
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch (cause) {
    const why = cause instanceof Error ? cause.message : 'not JSON';
    throw new ReveilleError('invalid_request', `the body must be a JSON object (${why})`, { cause });
  }
  if (!isObject(value)) {
    const got = value === null ? 'null' : Array.isArray(value) ? 'an array' : typeof value;
    throw new ReveilleError('invalid_request', `the body must be a JSON object (got ${got})`);
  }
  if (raw.some((key) => Object.hasOwn(value, key))) {
    const slices = memberSlices(text, skipWhitespace(text, 0));
    for (const key of raw) {
      const slice = slices.get(key);
      if (slice) value[key] = new RawJson(text.slice(slice.start, slice.end));
    }
  }
  return value;
}

type ReviverContext = { readonly source?: string };
const { rawJSON } = JSON as unknown as { rawJSON(text: string): unknown };

/**
 * Parses JSON for a program that writes it again with `JSON.stringify`: each number keeps its source text.
 *
 * @param text well-formed JSON
 */
export function exactJson(text: string): unknown {
  const keep = (_key: string, value: unknown, { source }: ReviverContext) =>
    typeof value === 'number' && source !== undefined && String(value) !== source ? rawJSON(source) : value;
  return JSON.parse(text, keep as (key: string, value: unknown) => unknown);
}

/**
 * `JSON.stringify` for the wire: {@link RawJson} is written verbatim, other values as usual (`undefined` members are
 * omitted).
 */
export function encodeJson(value: unknown): string {
  if (value instanceof RawJson) return value.text;
  if (Array.isArray(value)) return `[${value.map((item) => encodeJson(item ?? null)).join(',')}]`;
  if (typeof value === 'object' && value !== null && !('toJSON' in value)) {
    const members: string[] = [];
    for (const [key, member] of Object.entries(value)) {
      if (member !== undefined) members.push(`${JSON.stringify(key)}:${encodeJson(member)}`);
    }
    return `{${members.join(',')}}`;
  }
  return JSON.stringify(value) ?? 'null';
}

const NUMBER = /^(-?)(\d+)(?:\.(\d+))?(?:[eE]([+-]?\d+))?$/;
const LITERAL = /^-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?$/;

/** Whether a text is exactly one JSON number. */
export function isNumberLiteral(text: string): boolean {
  return LITERAL.test(text);
}

/**
 * Normal form of a number: its significant digits and the exponent of the last one, so `1.50`, `15e-1` and `1.5` are
 * equal.
 *
 * @param text a number as JSON or JavaScript writes it
 */
export function decimalForm(text: string): string {
  const [, sign, whole, fraction = '', exponent = '0'] = NUMBER.exec(text)!;
  const digits = `${whole}${fraction}`;
  let first = 0;
  while (digits[first] === '0') first++;
  let last = digits.length;
  while (last > first && digits[last - 1] === '0') last--;
  if (first === last) return '0';
  const power = Number(exponent) - fraction.length + (digits.length - last);
  return `${sign}${digits.slice(first, last)}e${power}`;
}

/**
 * Whether JavaScript represents a JSON number exactly: it prints the same decimal number. `0.1` is exact;
 * `12345678901234567890`, `1.00000000000000000001` and `1e400` are not.
 *
 * @param literal the number's source text
 */
export function isExact(literal: string): boolean {
  const value = Number(literal);
  return Number.isFinite(value) && decimalForm(literal) === decimalForm(String(value));
}
