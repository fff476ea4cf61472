/**
 * Regular expressions that cannot run away: a small language, matched by a machine that is in all its possible states at once
 * (K. Thompson, "Regular Expression Search Algorithm", CACM 11/6, 1968). Time is bounded by the expression's size times the text's
 * length; there is no backtracking. Pure.
 *
 * The language: characters, `.` for any one (line ends too), `[a-z]`, `[^a-z]`, `\d` (0-9), `\w` (A-Z a-z 0-9 _), a backslash before punctuation,
 * `( )`, `|`, `? * + {n} {n,} {n,m}`. Everything else that other dialects know is refused.
 */

/** Code points from the first to the second, both included. */
type Range = readonly [number, number];

type Node =
  | { readonly kind: 'one'; readonly ranges: readonly Range[]; readonly negated: boolean }
  | { readonly kind: 'all'; readonly nodes: readonly Node[] }
  | { readonly kind: 'any'; readonly nodes: readonly Node[] }
  | { readonly kind: 'repeat'; readonly node: Node; readonly least: number; readonly most: number };

/** `one` reads a code point and goes to the next step; `fork` goes to all of its targets without reading. */
type Step =
  | { readonly kind: 'one'; readonly ranges: readonly Range[]; readonly negated: boolean }
  | { readonly kind: 'fork'; readonly targets: number[] }
  | { readonly kind: 'end' };

/** What is wrong with an expression; `message` completes "the expression …". */
export class ExpressionError extends Error {}

const MOST_STEPS = 500;
const DEEPEST = 32;
const DIGITS: readonly Range[] = [[0x30, 0x39]];
const WORD: readonly Range[] = [...DIGITS, [0x41, 0x5a], [0x5f, 0x5f], [0x61, 0x7a]];
const PUNCTUATION = /^[!-/:-@[-`{-~]$/;
/** They have a meaning outside of a class, so they have to be written with a backslash. */
const SPECIAL = new Set('\\^$.|?*+()[]{}');

class Parser {
  readonly #points: readonly string[];
  #at = 0;
  #depth = 0;

  constructor(text: string) {
    this.#points = [...text];
  }

  parse(): Node {
    const node = this.#alternatives();
    if (this.#peek === ')') throw new ExpressionError('has a ) without its (');
    return node;
  }

  get #peek(): string | undefined {
    return this.#points[this.#at];
  }

  #take(point: string): boolean {
    if (this.#peek !== point) return false;
    this.#at++;
    return true;
  }

  #alternatives(): Node {
    const nodes = [this.#sequence()];
    while (this.#take('|')) nodes.push(this.#sequence());
    return nodes.length === 1 ? nodes[0]! : { kind: 'any', nodes };
  }

  #sequence(): Node {
    const nodes: Node[] = [];
    while (this.#peek !== undefined && this.#peek !== '|' && this.#peek !== ')') nodes.push(this.#repeated());
    return { kind: 'all', nodes };
  }

  #repeated(): Node {
    const node = this.#atom();
    const [least, most] = this.#quantifier() ?? [1, 1];
    if (least === 1 && most === 1) return node;
    if (this.#peek !== undefined && '?*+{'.includes(this.#peek))
      throw new ExpressionError(`repeats a repetition at ${this.#peek}; put it into ( )`);
    return { kind: 'repeat', node, least, most };
  }

  #quantifier(): [number, number] | undefined {
    if (this.#take('?')) return [0, 1];
    if (this.#take('*')) return [0, Number.POSITIVE_INFINITY];
    if (this.#take('+')) return [1, Number.POSITIVE_INFINITY];
    if (!this.#take('{')) return undefined;
    const close = this.#points.indexOf('}', this.#at);
    const inner = close === -1 ? '' : this.#points.slice(this.#at, close).join('');
    const match = /^(\d{1,4})(,?)(\d{0,4})$/.exec(inner);
    if (!match || (match[2] === '' && match[3] !== ''))
      throw new ExpressionError('has a { that is not {n}, {n,} or {n,m}; write \\{ for the character');
    this.#at = close + 1;
    const least = Number(match[1]);
    const most = match[2] === '' ? least : match[3] === '' ? Number.POSITIVE_INFINITY : Number(match[3]);
    if (most < least) throw new ExpressionError(`has {${inner}}, whose first number is the greater one`);
    return [least, most];
  }

  #atom(): Node {
    if (this.#take('(')) {
      if (this.#peek === '?') throw new ExpressionError('has a (? group; only plain ( ) are known');
      if (++this.#depth > DEEPEST) throw new ExpressionError(`has more than ${DEEPEST} groups in one another`);
      const node = this.#alternatives();
      this.#depth--;
      if (!this.#take(')')) throw new ExpressionError('has a ( without its )');
      return node;
    }
    if (this.#take('[')) return this.#class();
    if (this.#take('.')) return { kind: 'one', ranges: [], negated: true };
    if (this.#take('\\')) return { kind: 'one', ranges: this.#escape(), negated: false };
    const point = this.#points[this.#at++]!;
    if (point === '^' || point === '$')
      throw new ExpressionError(
        `has a ${point}; it always stands for the whole text, write \\${point} for the character`,
      );
    if (SPECIAL.has(point))
      throw new ExpressionError(`has a ${point} with nothing before it; write \\${point} for the character`);
    return { kind: 'one', ranges: [single(point)], negated: false };
  }

  #escape(): readonly Range[] {
    const point = this.#points[this.#at++];
    if (point === 'd') return DIGITS;
    if (point === 'w') return WORD;
    if (point !== undefined && PUNCTUATION.test(point)) return [single(point)];
    throw new ExpressionError(
      `has \\${point ?? ''} at a place where only \\d, \\w and punctuation may follow the backslash`,
    );
  }

  #class(): Node {
    const negated = this.#take('^');
    const ranges: Range[] = [];
    while (!this.#take(']')) {
      const from = this.#member();
      if (from.length === 1 && this.#peek === '-' && this.#points[this.#at + 1] !== ']') {
        this.#at++;
        const to = this.#member();
        const [[first], last] = [from[0]!, to[0]![1]];
        if (to.length !== 1 || last < first) throw new ExpressionError('has a range in [ ] that runs backwards');
        ranges.push([first, last]);
      } else ranges.push(...from);
    }
    if (ranges.length === 0) throw new ExpressionError('has an empty [ ]');
    return { kind: 'one', ranges, negated };
  }

  #member(): readonly Range[] {
    const point = this.#points[this.#at++];
    if (point === undefined) throw new ExpressionError('has a [ without its ]');
    if (point === '\\') return this.#escape();
    if (point === '[') throw new ExpressionError('has a [ within [ ]; write \\[ for the character');
    return [single(point)];
  }
}

function single(point: string): Range {
  const code = point.codePointAt(0)!;
  return [code, code];
}

/** Every node makes at least one step, so that their number bounds the work. */
function pass(steps: Step[]): void {
  steps.push({ kind: 'fork', targets: [steps.length + 1] });
}

/** Steps for a node, so that what follows it is the step after the last one. */
function emit(node: Node, steps: Step[]): void {
  if (steps.length > MOST_STEPS) throw new ExpressionError(`is too large: it takes more than ${MOST_STEPS} steps`);
  switch (node.kind) {
    case 'one':
      steps.push(node);
      return;
    case 'all':
      if (node.nodes.length === 0) pass(steps);
      for (const part of node.nodes) emit(part, steps);
      return;
    case 'any': {
      const fork = { kind: 'fork' as const, targets: [] as number[] };
      steps.push(fork);
      const exits = node.nodes.map((branch) => {
        fork.targets.push(steps.length);
        emit(branch, steps);
        const exit = { kind: 'fork' as const, targets: [] as number[] };
        steps.push(exit);
        return exit;
      });
      for (const exit of exits) exit.targets.push(steps.length);
      return;
    }
    case 'repeat': {
      if (node.most === 0) pass(steps);
      for (let time = 0; time < node.least; time++) emit(node.node, steps);
      if (node.most === Number.POSITIVE_INFINITY) {
        const fork = { kind: 'fork' as const, targets: [steps.length + 1] };
        const start = steps.push(fork) - 1;
        emit(node.node, steps);
        steps.push({ kind: 'fork', targets: [start] });
        fork.targets.push(steps.length);
        return;
      }
      const forks = Array.from({ length: node.most - node.least }, () => {
        const fork = { kind: 'fork' as const, targets: [steps.length + 1] };
        steps.push(fork);
        emit(node.node, steps);
        return fork;
      });
      for (const fork of forks) fork.targets.push(steps.length);
    }
  }
}

/** Which steps a text has led to so far; each one once. */
class States {
  readonly #steps: readonly Step[];
  /** By step, the last round in which it was reached. */
  readonly #reached: Int32Array;
  #round = 0;
  #readers: number[] = [];

  constructor(steps: readonly Step[]) {
    this.#steps = steps;
    this.#reached = new Int32Array(steps.length);
  }

  /** Those that read or end, from the round before; a new round begins. */
  turn(): readonly number[] {
    const readers = this.#readers;
    this.#round++;
    this.#readers = [];
    return readers;
  }

  /** Adds a step and what can be reached from it without reading. */
  add(from: number): void {
    const open = [from];
    for (let at = open.pop(); at !== undefined; at = open.pop()) {
      if (this.#reached[at] === this.#round) continue;
      this.#reached[at] = this.#round;
      const step = this.#steps[at]!;
      if (step.kind === 'fork') open.push(...step.targets);
      else this.#readers.push(at);
    }
  }
}

const reads = ({ ranges, negated }: Extract<Step, { kind: 'one' }>, code: number) =>
  ranges.some(([first, last]) => code >= first && code <= last) !== negated;

/**
 * Makes a matcher for whole texts.
 *
 * @throws ExpressionError for what is not of the language, or too large
 */
export function compileExpression(source: string): (text: string) => boolean {
  const steps: Step[] = [];
  emit(new Parser(source).parse(), steps);
  const end = steps.push({ kind: 'end' }) - 1;
  if (steps.length > MOST_STEPS) throw new ExpressionError(`is too large: it takes more than ${MOST_STEPS} steps`);
  return (text) => {
    const states = new States(steps);
    states.turn();
    states.add(0);
    for (const point of text) {
      const code = point.codePointAt(0)!;
      const readers = states.turn();
      if (readers.length === 0) return false;
      for (const at of readers) {
        const step = steps[at]!;
        if (step.kind === 'one' && reads(step, code)) states.add(at + 1);
      }
    }
    return states.turn().includes(end);
  };
}
