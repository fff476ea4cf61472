/**
 * Reading receipts from text, more strictly than `JSON.parse`: what two readers could take for two different values has
 * no place in something that is to be proof. Pure.
 */
import { isExact, isNumberLiteral } from '../../wire/exact-number.ts';
import { RECEIPT_DEPTH_MAX } from './envelope.ts';

/** Where reading ended, and why. */
export type Unreadable = { readonly line: number; readonly column: number; readonly message: string };

/** One value of a text; what could not be read is the last. */
export type ReadValue = { readonly value: unknown; readonly line: number } | { readonly unreadable: Unreadable };

/** Thrown inside this file and nowhere else. */
class NotStrict extends Error {
  readonly at: number;

  constructor(message: string, at: number) {
    super(message);
    this.at = at;
  }
}

const LITERAL = /true|false|null/y;
const NUMBER = /-?[0-9.eE+-]+/y;
const CONTROL = /[\u0000-\u001f]/;

/** Asked of every token, by its code: a regular expression took a third of the reading. */
const isBlank = (code: number) => code === 0x20 || code === 0x0a || code === 0x0d || code === 0x09;

const LITERALS: Readonly<Record<string, unknown>> = { true: true, false: false, null: null };

/**
 * Whether a value is the answer of an executor around a receipt, whatever else it has. What has a `format` is to be a
 * receipt itself.
 */
export function isAnswer(value: unknown): value is { readonly ok: true; readonly data: unknown } {
  if (typeof value !== 'object' || value === null || Array.isArray(value)) return false;
  return 'ok' in value && value.ok === true && Object.hasOwn(value, 'data') && !Object.hasOwn(value, 'format');
}

class Reader {
  readonly #text: string;
  at = 0;
  /** Where something stands one level deeper than may be, but inside of an answer. */
  #tooDeepAt: number | undefined;

  constructor(text: string) {
    this.#text = text;
  }

  #match(pattern: RegExp): string | undefined {
    pattern.lastIndex = this.at;
    const found = pattern.exec(this.#text)?.[0];
    if (found !== undefined) this.at += found.length;
    return found;
  }

  skipBlank(): void {
    while (isBlank(this.#text.charCodeAt(this.at))) this.at++;
  }

  isAtEnd(): boolean {
    return this.at >= this.#text.length;
  }

  /** A whole value. */
  document(): unknown {
    this.#tooDeepAt = undefined;
    const value = this.#value(0);
    if (this.#tooDeepAt !== undefined && !isAnswer(value)) this.#failDeep(this.#tooDeepAt);
    return value;
  }

  #failDeep(at: number): never {
    throw new NotStrict(`values stand in one another more than ${RECEIPT_DEPTH_MAX} deep`, at);
  }

  #fail(message: string, at = this.at): never {
    if (at < this.#text.length) throw new NotStrict(message, at);
    throw new NotStrict('the text ends in the middle of a value: it was cut off', at);
  }

  #expect(char: string, what: string): void {
    this.skipBlank();
    if (this.#text[this.at] !== char) this.#fail(what);
    this.at++;
  }

  /** The index of a string's closing quotation mark. */
  #endOfString(from: number): number {
    const text = this.#text;
    for (let at = text.indexOf('"', from + 1); at >= 0; at = text.indexOf('"', at + 1)) {
      let slashes = 0;
      while (text[at - 1 - slashes] === '\\') slashes++;
      if (slashes % 2 === 0) return at;
    }
    return this.#fail('', text.length);
  }

  #string(): string {
    const from = this.at;
    const end = this.#endOfString(from);
    const source = this.#text.slice(from, end + 1);
    this.at = end + 1;
    const control = source.search(CONTROL);
    if (control >= 0) throw new NotStrict('a string holds a control character that is not escaped', from + control);
    if (!source.includes('\\')) return this.#whole(source.slice(1, -1), from);
    try {
      return this.#whole(JSON.parse(source) as string, from);
    } catch (thrown) {
      if (thrown instanceof SyntaxError) throw new NotStrict('a string holds an escape that JSON does not have', from);
      throw thrown;
    }
  }

  #whole(text: string, from: number): string {
    if (!text.isWellFormed()) throw new NotStrict('a string holds half of a surrogate pair', from);
    return text;
  }

  #number(): number {
    const from = this.at;
    const literal = this.#match(NUMBER) ?? '';
    if (!isNumberLiteral(literal)) {
      // What could still have become a number was cut off.
      this.#fail('not a JSON value', this.isAtEnd() && !/\d$/.test(literal) ? this.at : from);
    }
    if (!isExact(literal)) {
      const shown = literal.length > 40 ? `${literal.slice(0, 40)}…` : literal;
      throw new NotStrict(`the number ${shown} has more digits than a double keeps`, from);
    }
    return Number(literal);
  }

  #object(depth: number): Record<string, unknown> {
    const members = new Map<string, unknown>();
    this.at++;
    this.skipBlank();
    if (this.#text[this.at] === '}') this.at++;
    else {
      for (;;) {
        this.skipBlank();
        if (this.#text[this.at] !== '"') this.#fail("a member's name must stand here");
        const from = this.at;
        const name = this.#string();
        if (members.has(name)) {
          const shown = JSON.stringify(name.length > 40 ? `${name.slice(0, 40)}…` : name);
          throw new NotStrict(`the member ${shown} stands in one object twice`, from);
        }
        this.#expect(':', 'a colon must stand here');
        members.set(name, this.#value(depth));
        this.skipBlank();
        if (this.#text[this.at] === '}') break;
        this.#expect(',', 'a comma or a closing brace must stand here');
      }
      this.at++;
    }
    // Makes an own member of "__proto__", too.
    return Object.fromEntries(members);
  }

  #array(depth: number): unknown[] {
    const elements: unknown[] = [];
    this.at++;
    this.skipBlank();
    if (this.#text[this.at] === ']') this.at++;
    else {
      for (;;) {
        elements.push(this.#value(depth));
        this.skipBlank();
        if (this.#text[this.at] === ']') break;
        this.#expect(',', 'a comma or a closing bracket must stand here');
      }
      this.at++;
    }
    return elements;
  }

  /** @param depth how many objects and arrays stand around it */
  #value(depth: number): unknown {
    this.skipBlank();
    const first = this.#text[this.at];
    if (first === '"') return this.#string();
    if (first === '{' || first === '[') {
      if (depth >= RECEIPT_DEPTH_MAX) this.#tooDeepAt ??= this.at;
      if (depth > RECEIPT_DEPTH_MAX) this.#failDeep(this.#tooDeepAt!);
      return first === '{' ? this.#object(depth + 1) : this.#array(depth + 1);
    }
    const literal = this.#match(LITERAL);
    return literal === undefined ? this.#number() : LITERALS[literal];
  }
}

function placeOf(text: string, at: number): { line: number; column: number } {
  const before = text.slice(0, at);
  const line = before.split('\n').length;
  return { line, column: at - before.lastIndexOf('\n') };
}

/** How many lines begin between two places. */
function linesBetween(text: string, from: number, to: number): number {
  let lines = 0;
  for (let at = text.indexOf('\n', from); at >= 0 && at < to; at = text.indexOf('\n', at + 1)) lines++;
  return lines;
}

/**
 * The JSON values of a text, with white space or nothing between them: a receipt, or several as JSON lines. Refused are
 * members that stand in one object twice, numbers that JavaScript rounds, halves of surrogate pairs, and what is nested
 * too deep; the answer of an executor around a receipt does not count there.
 */
export function* readValues(text: string): Generator<ReadValue, void, void> {
  const reader = new Reader(text);
  let line = 1;
  let counted = 0;
  for (;;) {
    reader.skipBlank();
    if (reader.isAtEnd()) return;
    line += linesBetween(text, counted, reader.at);
    counted = reader.at;
    try {
      yield { value: reader.document(), line };
    } catch (thrown) {
      if (!(thrown instanceof NotStrict)) throw thrown;
      yield { unreadable: { ...placeOf(text, thrown.at), message: thrown.message } };
      return;
    }
  }
}
