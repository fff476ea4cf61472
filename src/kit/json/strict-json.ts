/**
 * JSON read more strictly than `JSON.parse` reads it: what two readers could take for two different values is refused,
 * and each refusal names line and column. Pure.
 */
import { isExact, isNumberLiteral } from '../../wire/exact-number.ts';

/** Counts from 1. */
export type Place = { readonly line: number; readonly column: number };

export class JsonSyntaxError extends Error {
  readonly place: Place;
  /** Which value was being read. */
  readonly path: readonly PropertyKey[];

  constructor(message: string, place: Place, path: readonly PropertyKey[]) {
    super(message);
    this.name = 'JsonSyntaxError';
    this.place = place;
    this.path = path;
  }
}

/** What a reader accepts and remembers. */
export type StrictOptions = {
  /** Objects and arrays inside one another; deeper text is refused instead of exhausting the stack. */
  readonly depth: number;
  /** Whether numbers that JavaScript would round are refused. */
  readonly exact: boolean;
  /** Whether a member may be called `__proto__`; it is then an own member like any other. */
  readonly protoMember: boolean;
  /** Called with the offsets of each value, in UTF-16 units: of its first character, and after its last. */
  readonly onValue?: (path: readonly PropertyKey[], from: number, to: number) => void;
  /** A whole document of which this is true may be nested one level deeper. */
  readonly mayBeDeeper?: (document: unknown) => boolean;
};

const NUMBER = /-?[0-9.eE+-]+/y;
const LITERAL = /true|false|null/y;
const LITERALS: Readonly<Record<string, unknown>> = { true: true, false: false, null: null };
const CONTROL = /[\u0000-\u001f]/;
/** Characters of a literal that a message repeats. */
const SHOWN = 60;

const shortened = (text: string) => (text.length > SHOWN ? `${text.slice(0, SHOWN)}…` : text);

/** Asked of every token, by its code: a regular expression took a third of the reading. */
const isBlank = (code: number) => code === 0x20 || code === 0x0a || code === 0x0d || code === 0x09;

/** Reads the values of a text one after the other. No message quotes a string: it may hold a secret. */
export class StrictReader {
  /** Where the next value is looked for, in UTF-16 units. */
  at = 0;
  readonly #text: string;
  readonly #options: StrictOptions;
  /** Of the value that is being read. */
  readonly #path: PropertyKey[] = [];
  /** Where something first stands one level deeper than may be. */
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

  /** The text's only value. @throws JsonSyntaxError, also when something follows the value */
  onlyDocument(): unknown {
    const value = this.document();
    this.skipBlank();
    if (!this.isAtEnd()) this.#fail('nothing may follow the value');
    return value;
  }

  placeOf(at: number): Place {
    const before = this.#text.slice(0, at);
    return { line: before.split('\n').length, column: at - before.lastIndexOf('\n') };
  }

  #refuse(message: string, at: number): never {
    throw new JsonSyntaxError(message, this.placeOf(at), [...this.#path]);
  }

  #failDeep(at: number): never {
    return this.#refuse(`values may be nested ${this.#options.depth} deep`, at);
  }

  #fail(message: string, at = this.at): never {
    const isCut = at >= this.#text.length && this.#text !== '';
    return this.#refuse(isCut ? `${message}; the text was cut off` : message, at);
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
    if (control >= 0) this.#refuse('a string holds a control character that is not escaped', from + control);
    if (!source.includes('\\')) return this.#whole(source.slice(1, -1), from);
    try {
      return this.#whole(JSON.parse(source) as string, from);
    } catch (thrown) {
      if (thrown instanceof SyntaxError) return this.#refuse('this string has a wrong escape', from);
      throw thrown;
    }
  }

  #whole(text: string, from: number): string {
    return text.isWellFormed() ? text : this.#refuse('a string holds half of a surrogate pair', from);
  }

  #number(): number {
    const from = this.at;
    const literal = this.#match(NUMBER) ?? '';
    if (!isNumberLiteral(literal)) {
      // What could still have become a number was cut off.
      this.#fail('a JSON value must stand here', this.isAtEnd() && !/\d$/.test(literal) ? this.at : from);
    }
    if (this.#options.exact && !isExact(literal))
      this.#refuse(`${shortened(literal)} cannot be carried exactly; write it with fewer digits, or as text`, from);
    return Number(literal);
  }

  #object(): Record<string, unknown> {
    const members = new Map<string, unknown>();
    this.at++;
    if (this.#passes('}')) return {};
    do {
      this.skipBlank();
      if (this.#text[this.at] === '}') this.#fail('no comma may stand before }');
      if (this.#text[this.at] !== '"') this.#fail('a field name must be a string in double quotes');
      const at = this.at;
      const name = this.#string();
      if (name === '__proto__' && !this.#options.protoMember) this.#refuse('a field must not be named __proto__', at);
      if (members.has(name)) this.#refuse(`the field ${JSON.stringify(shortened(name))} is there twice`, at);
      if (!this.#passes(':')) this.#fail('a colon must follow the field name');
      this.#path.push(name);
      members.set(name, this.#value());
      this.#path.pop();
    } while (this.#passes(','));
    if (!this.#passes('}')) this.#fail('a comma or } must follow');
    // Makes an own member of "__proto__", too.
    return Object.fromEntries(members);
  }

  #array(): unknown[] {
    const elements: unknown[] = [];
    this.at++;
    if (this.#passes(']')) return elements;
    do {
      this.skipBlank();
      if (this.#text[this.at] === ']') this.#fail('no comma may stand before ]');
      this.#path.push(elements.length);
      elements.push(this.#value());
      this.#path.pop();
    } while (this.#passes(','));
    if (!this.#passes(']')) this.#fail('a comma or ] must follow');
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

/** Deepest nesting of files and bodies that people and models write. */
const WRITTEN_DEPTH = 64;

const keyOf = (path: readonly PropertyKey[]) => path.map(String).join('\0');

export type PlacedJson = {
  value: unknown;
  /** Where the value at a path begins, or the nearest value around it where there is none. */
  placeOf(path: readonly PropertyKey[]): Place;
  /** The offsets at which the value at a path begins and after which it ends, in UTF-16 units. */
  spanOf(path: readonly PropertyKey[]): { readonly from: number; readonly to: number } | undefined;
};

/**
 * Reads one value and remembers where each part of it stands.
 *
 * @param exact refuses numbers, too, that JavaScript would round; the error quotes them
 * @throws JsonSyntaxError which quotes nothing else but field names: the text may hold secrets
 */
export function readPlacedJson(text: string, exact = false): PlacedJson {
  const options = { depth: WRITTEN_DEPTH, exact, protoMember: false };
  const reader = new StrictReader(text, options);
  const value = reader.onlyDocument();
  let known: Map<string, { from: number; to: number }> | undefined;
  // Read once more by whoever has a mistake to place: most files have none, and to note each place takes longer than to
  // read.
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
    placeOf(path) {
      for (let length = path.length; length >= 0; length--) {
        const span = spansOf().get(keyOf(path.slice(0, length)));
        if (span !== undefined) return reader.placeOf(span.from);
      }
      return reader.placeOf(0);
    },
    spanOf: (path) => spansOf().get(keyOf(path)),
  };
}
