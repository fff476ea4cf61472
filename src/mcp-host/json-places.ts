/** Strict JSON whose values are remembered with their place, so that an error can name line and column. */
import { isExact } from '../wire/exact-number.ts';

/** Counts from 1. */
export type Place = { line: number; column: number };

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

/** Deeper nesting is refused instead of exhausting the stack. */
const DEEPEST = 64;

const NUMBER = /-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?/y;
const STRING = /"(?:[^"\\\x00-\x1f]|\\.)*"/y;
const BLANK = /[ \t\r\n]*/y;
const WORDS: readonly (readonly [string, unknown])[] = [
  ['true', true],
  ['false', false],
  ['null', null],
];

function placeAt(text: string, offset: number): Place {
  const before = text.slice(0, offset);
  return { line: before.split('\n').length, column: offset - before.lastIndexOf('\n') };
}

const keyOf = (path: readonly PropertyKey[]) => path.map(String).join('\0');

class PlacedReader {
  readonly offsets = new Map<string, number>();
  /** Where each value ends: the offset after its last character. */
  readonly ends = new Map<string, number>();
  readonly #text: string;
  readonly #isExact: boolean;
  #at = 0;
  /** Of the value that is being read. */
  #path: readonly PropertyKey[] = [];

  constructor(text: string, isExact: boolean) {
    this.#text = text;
    this.#isExact = isExact;
  }

  document(): unknown {
    const value = this.#value([]);
    this.#skipBlank();
    if (this.#at < this.#text.length) this.#fail('nothing may follow the value');
    return value;
  }

  #fail(message: string, offset = this.#at): never {
    throw new JsonSyntaxError(message, placeAt(this.#text, offset), this.#path);
  }

  #skipBlank(): void {
    this.#take(BLANK);
  }

  #take(pattern: RegExp): string | undefined {
    pattern.lastIndex = this.#at;
    const found = pattern.exec(this.#text)?.[0];
    if (found !== undefined) this.#at += found.length;
    return found;
  }

  #passes(character: string): boolean {
    this.#skipBlank();
    if (this.#text[this.#at] !== character) return false;
    this.#at++;
    return true;
  }

  #string(what: string): string {
    const from = this.#at;
    const source = this.#take(STRING);
    if (source === undefined) return this.#fail(`${what} must be a string in double quotes`);
    try {
      return JSON.parse(source) as string;
    } catch {
      return this.#fail('this string has a wrong escape', from);
    }
  }

  #value(path: readonly PropertyKey[]): unknown {
    this.#skipBlank();
    this.#path = path;
    if (path.length > DEEPEST) this.#fail(`values may be nested ${DEEPEST} deep`);
    this.offsets.set(keyOf(path), this.#at);
    const value = this.#anyValue(path);
    this.ends.set(keyOf(path), this.#at);
    return value;
  }

  #anyValue(path: readonly PropertyKey[]): unknown {
    const first = this.#text[this.#at];
    if (first === '{') return this.#object(path);
    if (first === '[') return this.#array(path);
    if (first === '"') return this.#string('a value');
    for (const [word, value] of WORDS) {
      if (!this.#text.startsWith(word, this.#at)) continue;
      this.#at += word.length;
      return value;
    }
    return this.#number();
  }

  #number(): number {
    const from = this.#at;
    const literal = this.#take(NUMBER);
    if (literal === undefined) return this.#fail('a JSON value must stand here');
    if (this.#isExact && !isExact(literal)) {
      const shown = literal.length > 60 ? `${literal.slice(0, 60)}…` : literal;
      this.#fail(`${shown} cannot be carried exactly; write it with fewer digits, or as text`, from);
    }
    return Number(literal);
  }

  #object(path: readonly PropertyKey[]): Record<string, unknown> {
    this.#at++;
    const members: Record<string, unknown> = {};
    if (this.#passes('}')) return members;
    do {
      this.#skipBlank();
      if (this.#text[this.#at] === '}') this.#fail('no comma may stand before }');
      const at = this.#at;
      const key = this.#string('a field name');
      if (key === '__proto__') this.#fail('a field must not be named __proto__', at);
      if (Object.hasOwn(members, key)) this.#fail(`the field ${JSON.stringify(key)} is there twice`, at);
      if (!this.#passes(':')) this.#fail('a colon must follow the field name');
      members[key] = this.#value([...path, key]);
      this.#path = path;
    } while (this.#passes(','));
    if (!this.#passes('}')) this.#fail('a comma or } must follow');
    return members;
  }

  #array(path: readonly PropertyKey[]): unknown[] {
    this.#at++;
    const elements: unknown[] = [];
    if (this.#passes(']')) return elements;
    do {
      this.#skipBlank();
      if (this.#text[this.#at] === ']') this.#fail('no comma may stand before ]');
      elements.push(this.#value([...path, elements.length]));
      this.#path = path;
    } while (this.#passes(','));
    if (!this.#passes(']')) this.#fail('a comma or ] must follow');
    return elements;
  }
}

export type PlacedJson = {
  value: unknown;
  /** Where the value at a path begins, or the nearest value around it where there is none. */
  placeOf(path: readonly PropertyKey[]): Place;
  /** The offsets at which the value at a path begins and after which it ends, in UTF-16 units. */
  spanOf(path: readonly PropertyKey[]): { readonly from: number; readonly to: number } | undefined;
};

/**
 * Reads text as `JSON.parse` does, but refuses a field that is there twice.
 *
 * @param isExact refuses numbers, too, that JavaScript would round; the error quotes them
 * @throws JsonSyntaxError which does not quote anything else: it may hold secrets
 */
export function readPlacedJson(text: string, isExact = false): PlacedJson {
  const reader = new PlacedReader(text, isExact);
  const value = reader.document();
  const placeOf = (path: readonly PropertyKey[]): Place => {
    for (let length = path.length; length > 0; length--) {
      const offset = reader.offsets.get(keyOf(path.slice(0, length)));
      if (offset !== undefined) return placeAt(text, offset);
    }
    return placeAt(text, reader.offsets.get('') ?? 0);
  };
  const spanOf: PlacedJson['spanOf'] = (path) => {
    const from = reader.offsets.get(keyOf(path));
    return from === undefined ? undefined : { from, to: reader.ends.get(keyOf(path))! };
  };
  return { value, placeOf, spanOf };
}
