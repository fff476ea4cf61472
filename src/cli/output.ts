/** What a command says: aligned lines for people, JSON lines for programs. Results go to stdout, everything else to stderr. */
import { styleText } from 'node:util';
import { type ReveilleError, wireErrorOf } from '../wire/errors.ts';
import { encodeJson } from '../wire/json.ts';

type Style = 'bold' | 'dim' | 'green' | 'yellow' | 'red' | 'cyan';

export type Output = {
  readonly json: boolean;
  /** Whether a person watches: lines may be redrawn. */
  readonly live: boolean;
  /** Cells in a line; 80 where nobody watches. */
  readonly columns: number;
  /** A result: `human` as it is, or `data` as one JSON line. */
  result(data: unknown, human: string | readonly string[]): void;
  /** A line for people only, on stdout; nothing with `--json`. */
  line(text?: string): void;
  /** A passing line that the next one replaces; only where somebody watches. */
  progress(text: string): void;
  /** A remark beside the result, on stderr. */
  remark(text: string): void;
  /** A failure, on stderr: a sentence, or the error object as JSON. */
  failure(error: ReveilleError): void;
  /** Colours text where the terminal shows colours. */
  paint(style: Style, text: string): string;
};

const CLEAR_LINE = '\r\u001b[2K';

/** Text from outside, made harmless for a terminal: control characters become visible. */
export function printable(text: string): string {
  return text.replace(/[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u202a-\u202e\u2066-\u2069]/g, (char) => {
    const code = char.codePointAt(0)!;
    return `\\u${code.toString(16).padStart(4, '0')}`;
  });
}

/** @param json whether results are JSON lines */
export function createOutput(json: boolean): Output {
  const live = process.stdout.isTTY === true && !json;
  const colours = live && process.stdout.hasColors();
  let pending = false;
  const clear = () => {
    if (pending) process.stdout.write(CLEAR_LINE);
    pending = false;
  };
  const paint = (style: Style, text: string) => (colours ? styleText(style, text) : text);
  return {
    json,
    live,
    get columns() {
      // A pseudo-terminal that nobody has sized says 0.
      return process.stdout.columns || 80;
    },
    paint,
    result(data, human) {
      clear();
      const lines = json ? [encodeJson(data)] : typeof human === 'string' ? [human] : human;
      for (const line of lines) process.stdout.write(`${line}\n`);
    },
    line(text = '') {
      if (json) return;
      clear();
      process.stdout.write(`${text}\n`);
    },
    progress(text) {
      if (!live) return;
      process.stdout.write(`${CLEAR_LINE}${text.slice(0, this.columns - 1)}`);
      pending = true;
    },
    remark(text) {
      clear();
      process.stderr.write(`${text}\n`);
    },
    failure(error) {
      clear();
      if (json) process.stderr.write(`${JSON.stringify({ error: wireErrorOf(error) })}\n`);
      else
        process.stderr.write(
          `${process.stderr.isTTY && process.stderr.hasColors() ? styleText('red', 'error') : 'error'}: ${printable(error.message)}\n`,
        );
    },
  };
}
