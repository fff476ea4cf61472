/**
 * A strict YAML parser that records the position of each value. Values that YAML interprets otherwise than a reader
 * expects are problems. Pure.
 */
import {
  type Document,
  isAlias,
  isMap,
  isNode,
  isPair,
  isScalar,
  isSeq,
  LineCounter,
  type Node,
  parseDocument,
  type Scalar,
  type YAMLError,
} from 'yaml';
import { isExact, isNumberLiteral } from '../../wire/json.ts';
import { showValue } from '../../wire/validate.ts';
import { everyHiddenCharacter } from '../text/hidden-characters.ts';

/** A position in a file; line and column from 1. */
export type YamlPosition = { readonly line: number; readonly column: number };

export type PositionedProblem = YamlPosition & { readonly sentence: string };

/**
 * `broken`: the text is not valid, so its meaning is unknown. Otherwise YAML interprets a value unexpectedly, and
 * `path` names the value. A field without a readable name has the path of its parent, and a character outside all
 * values has none.
 */
export type YamlProblem = PositionedProblem & { readonly broken: boolean; readonly path?: readonly PropertyKey[] };

export type PositionedYaml = {
  /**
   * Objects, lists, texts, exact numbers, booleans and `null`. For a value with a problem: YAML's interpretation, or
   * `null`.
   */
  readonly value: unknown;
  readonly problems: readonly YamlProblem[];
  /** Position of a value, or of the nearest enclosing one; with `key`, position of its name. */
  position(path: readonly PropertyKey[], key?: boolean): YamlPosition;
  /** The source text of a plain or quoted value; `undefined` if there is none. */
  source(path: readonly PropertyKey[]): string | undefined;
};

/** Some YAML parsers read these words as true and false. */
const DOUBTFUL_WORD = /^(?:yes|no|on|off)$/i;
const DEEPEST = 20;
const TOO_DEEP = `is nested more than ${DEEPEST} deep`;

type Path = readonly PropertyKey[];

class Reader {
  readonly problems: YamlProblem[] = [];
  readonly #lines: LineCounter;

  constructor(lines: LineCounter) {
    this.#lines = lines;
  }

  placeAt(offset: number): YamlPosition {
    const { line, col } = this.#lines.linePos(offset);
    return { line: Math.max(line, 1), column: Math.max(col, 1) };
  }

  breaks(offset: number, sentence: string): void {
    this.problems.push({ ...this.placeAt(offset), sentence, broken: true });
  }

  complain(offset: number, sentence: string, path?: Path): void {
    this.problems.push({ ...this.placeAt(offset), sentence, broken: false, ...(path && { path }) });
  }

  value(node: unknown, path: Path = []): unknown {
    if (!isNode(node)) return null;
    const at = node.range?.[0] ?? 0;
    if (path.length > DEEPEST) {
      this.complain(at, TOO_DEEP, path);
      return null;
    }
    if (isAlias(node)) {
      this.complain(at, 'aliases (*name) are not supported; write the value out', path);
      return null;
    }
    if (node.anchor !== undefined) this.complain(at, 'anchors (&name) are not supported; write values out', path);
    if (node.tag !== undefined) this.complain(at, `the tag ${showValue(node.tag)} is not supported; remove it`, path);
    if (isScalar(node)) return this.#scalar(node, at, path);
    if (isSeq(node)) return node.items.map((item, index) => this.value(item, [...path, index]));
    if (!isMap(node)) return null;
    const members: [string, unknown][] = [];
    const names = new Set<string>();
    for (const pair of node.items) {
      const name = this.#name(pair.key, at, path);
      // The parser's own check compares every name with every other one, which takes quadratic time.
      if (name !== undefined && names.has(name))
        this.breaks(
          isNode(pair.key) ? (pair.key.range?.[0] ?? at) : at,
          `Map keys must be unique; ${showValue(name)} is not`,
        );
      if (name !== undefined) names.add(name);
      const value = this.value(pair.value, [...path, name ?? '']);
      if (name !== undefined) members.push([name, value]);
    }
    return Object.fromEntries(members);
  }

  #name(key: unknown, around: number, path: Path): string | undefined {
    const at = isNode(key) ? (key.range?.[0] ?? around) : around;
    if (isScalar(key) && key.anchor === undefined && key.tag === undefined) {
      // Object.fromEntries keeps it as a member, but some later readers of the object do not.
      if (key.value === '__proto__') this.complain(at, 'unknown field "__proto__"', path);
      else if (typeof key.value === 'string') return key.value;
      else this.complain(at, `the field name ${key.source ?? ''} is not a text in YAML; put it in quotes`, path);
      return undefined;
    }
    this.complain(at, 'a field name must be plain text', path);
    return undefined;
  }

  #scalar({ value, type, source = '' }: Scalar, at: number, path: Path): unknown {
    if (type === 'PLAIN' && typeof value === 'string' && DOUBTFUL_WORD.test(value)) {
      const remedy = 'write true or false, or put it in quotes';
      this.complain(at, `${value} has different meanings in different YAML parsers; ${remedy}`, path);
    }
    if (typeof value !== 'number') return value;
    if (isNumberLiteral(source) && isExact(source)) return value;
    const why = isNumberLiteral(source)
      ? 'it has more digits than a number can represent'
      : `YAML reads it as ${value}`;
    const sentence = `the number ${source} is not supported, because ${why}; put it in quotes to keep it as written`;
    this.complain(at, sentence, path);
    return value;
  }
}

function sentenceOf({ code, message }: YAMLError): string {
  if (code === 'MULTIPLE_DOCS') return 'must be one document; remove the second ---';
  return code === 'RESOURCE_EXHAUSTION' ? TOO_DEEP : message.split('\n')[0]!;
}

/** The name and the value at a path; both `undefined` if the path does not exist. */
function find(contents: unknown, path: Path): { key?: unknown; at?: unknown } {
  let found: { key?: unknown; at?: unknown } = { at: contents };
  for (const part of path) {
    const around = found.at;
    if (isMap(around)) {
      const pair = around.items.find((item) => isPair(item) && isScalar(item.key) && item.key.value === part);
      found = { key: pair?.key, at: pair?.value };
    } else found = { at: isSeq(around) ? around.items[Number(part)] : undefined };
  }
  return found;
}

const offsetOf = (node: unknown) => (isNode(node) ? (node as Node).range?.[0] : undefined);

/** Offset of a value or a name, or of the nearest enclosing value. */
function offsetAt(contents: unknown, path: Path, wantsKey: boolean): number {
  for (let length = path.length; length >= 0; length--) {
    const { key, at } = find(contents, path.slice(0, length));
    const offset =
      wantsKey && length === path.length ? (offsetOf(key) ?? offsetOf(at)) : (offsetOf(at) ?? offsetOf(key));
    if (offset !== undefined) return offset;
  }
  return 0;
}

function checkCharacters(text: string, reader: Reader): void {
  for (const { codePoint, index } of everyHiddenCharacter(text)) {
    if (index === 0 && codePoint === 'U+FEFF') continue;
    const digits = codePoint.slice(2).toLowerCase();
    const escaped = digits.length > 4 ? `\\U${digits.padStart(8, '0')}` : `\\u${digits}`;
    reader.complain(index, `contains the invisible character ${codePoint}; write "${escaped}" if it is intended`);
  }
}

/** Parses a text with one YAML 1.2 document. */
export function readYaml(text: string): PositionedYaml {
  const lines = new LineCounter();
  const document: Document.Parsed = parseDocument(text, {
    lineCounter: lines,
    version: '1.2',
    prettyErrors: false,
    uniqueKeys: false,
  });
  const reader = new Reader(lines);
  checkCharacters(text, reader);
  const errors: readonly YAMLError[] = [...document.errors, ...document.warnings];
  // After this error, the parser's other errors are meaningless.
  const exhausted = errors.find(({ code }) => code === 'RESOURCE_EXHAUSTION');
  for (const error of exhausted ? [exhausted] : errors) reader.breaks(error.pos[0], sentenceOf(error));
  if (document.directives.yaml.version !== '1.2') reader.breaks(0, 'must be YAML 1.2; remove the %YAML line');
  const value = exhausted ? null : reader.value(document.contents);
  return {
    value,
    problems: reader.problems,
    position: (path, key = false) => reader.placeAt(offsetAt(document.contents, path, key)),
    source(path) {
      const { at } = find(document.contents, path);
      return isScalar(at) ? at.source : undefined;
    },
  };
}
