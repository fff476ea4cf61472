/**
 * A JSON parser that is stricter than `JSON.parse`: ambiguous text is refused, and each error has line and column.
 * Pure.
 */
import { isExact, isNumberLiteral } from '../../wire/json.ts';

/** Line and column, both from 1. */
export type JsonPosition = { readonly line: number; readonly column: number };

export class JsonSyntaxError extends Error {
  readonly position: JsonPosition;
  /** Path of the value that was being parsed. */
  readonly path: readonly PropertyKey[];

  constructor(message: string, place: JsonPosition, path: readonly PropertyKey[]) {
    super(message);
    this.name = 'JsonSyntaxError';
    this.position = place;
    this.path = path;
  }
}

export type StrictOptions = {
  /** Maximum nesting depth; deeper text is refused, so that it cannot exhaust the stack. */
  readonly depth: number;
  /** Whether numbers that JavaScript would round are refused. */
  readonly exact: boolean;
  /** Whether a member may be named `__proto__`; it is then an ordinary own member. */
  readonly protoMember: boolean;
  /** Called with the offsets of each value, in UTF-16 units: of its first character, and after its last. */
  readonly onValue?: (path: readonly PropertyKey[], from: number, to: number) => void;
  /** A whole document for which this is true may be nested one level deeper. */
  readonly mayBeDeeper?: (document: unknown) => boolean;
};

const NUMBER = /-?[0-9.eE+-]+/y;
const LITERAL = /true|false|null/y;
const LITERALS: Readonly<Record<string, unknown>> = { true: true, false: false, null: null };
const CONTROL = /[\u0000-\u001f]/;
/** Maximum length of a literal in a message. */
const SHOWN = 60;

const shortened = (text: string) => (text.length > SHOWN ? `${text.slice(0, SHOWN)}…` : text);

/** Called for every token, by its code: a regular expression took a third of the parse time. */
const isBlank = (code: number) => code === 0x20 || code === 0x0a || code === 0x0d || code === 0x09;

/** Reads the values of a text one by one. No message quotes a string, which may be a secret. */
export class StrictReader {
  /** Position of the next value, in UTF-16 units. */
  at = 0;
  readonly #text: string;
  readonly #options: StrictOptions;
  /** Of the value that is being parsed. */
  readonly #path: PropertyKey[] = [];
  /** Position of the first value that is one level too deep. */
  #tooDeepAt: number | undefined;

  constructor(text: string, options: StrictOptions) {
    this.#text = text;
    this.#options = options;
  }

  skipBlank(): void {
    while (isBlank(this.#text.charCodeAt(this.at))) this.at++;
  }

  isAtEnd(): boolean {
    return this.at >= this.#text.length;
  }

  /** The next value. @throws JsonSyntaxError */
  document(): unknown {
    this.#path.length = 0;
    this.#tooDeepAt = undefined;
    const value = this.#value();
    if (this.#tooDeepAt !== undefined && !this.#options.mayBeDeeper?.(value)) this.#failDeep(this.#tooDeepAt);
    return value;
  }

  /** The text's only value. @throws JsonSyntaxError, also if text follows the value */
  onlyDocument(): unknown {
    const value = this.document();
    this.skipBlank();
    if (!this.isAtEnd()) this.#fail('unexpected text after the value');
    return value;
  }

  positionAt(at: number): JsonPosition {
    const before = this.#text.slice(0, at);
    return { line: before.split('\n').length, column: at - before.lastIndexOf('\n') };
  }

  #refuse(message: string, at: number): never {
    throw new JsonSyntaxError(message, this.positionAt(at), [...this.#path]);
  }

  #failDeep(at: number): never {
    return this.#refuse(`values may be nested at most ${this.#options.depth} deep`, at);
  }

  #fail(message: string, at = this.at): never {
    const isCut = at >= this.#text.length && this.#text !== '';
    return this.#refuse(isCut ? `${message}; the text is incomplete` : message, at);
  }

  #match(pattern: RegExp): string | undefined {
    pattern.lastIndex = this.at;
    const found = pattern.exec(this.#text)?.[0];
    if (found !== undefined) this.at += found.length;
    return found;
  }

  #passes(character: string): boolean {
    this.skipBlank();
    if (this.#text[this.at] !== character) return false;
    this.at++;
    return true;
  }

  /** The index of a string's closing quotation mark. */
  #endOfString(from: number): number {
    const text = this.#text;
    for (let at = text.indexOf('"', from + 1); at >= 0; at = text.indexOf('"', at + 1)) {
      let slashes = 0;
      while (text[at - 1 - slashes] === '\\') slashes++;
      if (slashes % 2 === 0) return at;
    }
    return this.#fail('a string must end with "', text.length);
  }

  #string(): string {
    const from = this.at;
    const end = this.#endOfString(from);
    const source = this.#text.slice(from, end + 1);
    this.at = end + 1;
    const control = source.search(CONTROL);
    if (control >= 0) this.#refuse('a string contains an unescaped control character', from + control);
    if (!source.includes('\\')) return this.#whole(source.slice(1, -1), from);
    try {
      return this.#whole(JSON.parse(source) as string, from);
    } catch (thrown) {
      if (thrown instanceof SyntaxError) return this.#refuse('the string has an invalid escape', from);
      throw thrown;
    }
  }

  #whole(text: string, from: number): string {
    return text.isWellFormed() ? text : this.#refuse('a string contains a lone surrogate', from);
  }

  #number(): number {
    const from = this.at;
    const literal = this.#match(NUMBER) ?? '';
    if (!isNumberLiteral(literal)) {
      // The literal may have been the beginning of a number.
      this.#fail('expected a JSON value', this.isAtEnd() && !/\d$/.test(literal) ? this.at : from);
    }
    if (this.#options.exact && !isExact(literal))
      this.#refuse(`${shortened(literal)} cannot be represented exactly; write it with fewer digits, or as text`, from);
    return Number(literal);
  }

  #object(): Record<string, unknown> {
    const members = new Map<string, unknown>();
    this.at++;
    if (this.#passes('}')) return {};
    do {
      this.skipBlank();
      if (this.#text[this.at] === '}') this.#fail('a trailing comma before } is not allowed');
      if (this.#text[this.at] !== '"') this.#fail('a field name must be a string in double quotes');
      const at = this.at;
      const name = this.#string();
      if (name === '__proto__' && !this.#options.protoMember) this.#refuse('a field must not be named __proto__', at);
      if (members.has(name)) this.#refuse(`the field ${JSON.stringify(shortened(name))} is duplicated`, at);
      if (!this.#passes(':')) this.#fail('expected a colon after the field name');
      this.#path.push(name);
      members.set(name, this.#value());
      this.#path.pop();
    } while (this.#passes(','));
    if (!this.#passes('}')) this.#fail('expected a comma or }');
    // Also creates an own member "__proto__".
    return Object.fromEntries(members);
  }

  #array(): unknown[] {
    const elements: unknown[] = [];
    this.at++;
    if (this.#passes(']')) return elements;
    do {
      this.skipBlank();
      if (this.#text[this.at] === ']') this.#fail('a trailing comma before ] is not allowed');
      this.#path.push(elements.length);
      elements.push(this.#value());
      this.#path.pop();
    } while (this.#passes(','));
    if (!this.#passes(']')) this.#fail('expected a comma or ]');
    return elements;
  }

  #value(): unknown {
    this.skipBlank();
    const from = this.at;
    const value = this.#anyValue();
    this.#options.onValue?.(this.#path, from, this.at);
    return value;
  }

  #anyValue(): unknown {
    const first = this.#text[this.at];
    if (first === '"') return this.#string();
    if (first === '{' || first === '[') {
      const { depth, mayBeDeeper } = this.#options;
      const around = this.#path.length;
      if (around >= depth) this.#tooDeepAt ??= this.at;
      if (around > depth || (around === depth && !mayBeDeeper)) this.#failDeep(this.#tooDeepAt!);
      return first === '{' ? this.#object() : this.#array();
    }
    const literal = this.#match(LITERAL);
    return literal === undefined ? this.#number() : LITERALS[literal];
  }
}

/** Maximum nesting of files and bodies written by people and models. */
const WRITTEN_DEPTH = 64;

/** Also of a path with an empty name, which is not the document itself. */
const keyOf = (path: readonly PropertyKey[]) => path.map((name) => `\0${String(name)}`).join('');

export type PositionedJson = {
  value: unknown;
  /** Position of the value at a path, or of the nearest enclosing value if there is none. */
  positionOf(path: readonly PropertyKey[]): JsonPosition;
  /** The offsets of the value at a path, in UTF-16 units: of its beginning, and after its end. */
  spanOf(path: readonly PropertyKey[]): { readonly from: number; readonly to: number } | undefined;
};

/**
 * Parses one value and finds the position of each part of it.
 *
 * @param exact also refuses numbers that JavaScript would round; the error quotes them
 * @throws JsonSyntaxError that otherwise quotes only field names: the text may contain secrets
 */
export function readJsonWithPositions(text: string, exact = false): PositionedJson {
  const options = { depth: WRITTEN_DEPTH, exact, protoMember: false };
  const reader = new StrictReader(text, options);
  const value = reader.onlyDocument();
  let known: Map<string, { from: number; to: number }> | undefined;
  // Parsed a second time only when a position is needed: most files have no error, and recording positions takes longer
  // than parsing.
  const spansOf = () => {
    if (known !== undefined) return known;
    const spans = new Map<string, { from: number; to: number }>();
    const onValue = (path: readonly PropertyKey[], from: number, to: number) => spans.set(keyOf(path), { from, to });
    new StrictReader(text, { ...options, onValue }).onlyDocument();
    known = spans;
    return spans;
  };
  return {
    value,
    positionOf(path) {
      for (let length = path.length; length >= 0; length--) {
        const span = spansOf().get(keyOf(path.slice(0, length)));
        if (span !== undefined) return reader.positionAt(span.from);
      }
      return reader.positionAt(0);
    },
    spanOf: (path) => spansOf().get(keyOf(path)),
  };
}
