/** The output of a command: aligned lines on a terminal, JSON lines for programs. Results go to stdout, the rest to stderr. */
import { inspect, styleText } from 'node:util';
import { jsonForTerminal, printable } from '../../kit/text/hidden-characters.ts';
import { type ReveilleError, wireErrorOf } from '../../wire/errors.ts';
import { encodeJson } from '../../wire/json.ts';
import type { CliProcess } from '../cli-process.ts';

const STYLES = ['bold', 'dim', 'green', 'yellow', 'red', 'cyan'] as const;
type Style = (typeof STYLES)[number];

export type Output = {
  readonly json: boolean;
  /** Whether stdout is a terminal: lines may be redrawn. */
  readonly live: boolean;
  /** Cells in a line; 80 without a terminal. */
  readonly columns: number;
  /** Lines of the screen; 24 without a terminal. */
  readonly rows: number;
  /**
   * A result: `human`, or `data` as one JSON line. Without `human` the JSON is printed. On a terminal JSON is escaped, so
   * that it contains no control or hidden characters; piped JSON is unchanged.
   */
  result(data: unknown, human?: string | readonly string[]): void;
  /** A list: each of `items` as one JSON line, or the lines of `human`. */
  list(items: Iterable<unknown>, human: () => readonly string[]): void;
  /** A line of text on stdout; nothing with `--json`. */
  line(text?: string): void;
  /** A line that the next one replaces; only on a terminal. */
  progress(text: string): void;
  /** A remark on stderr. */
  remark(text: string): void;
  /** A failure on stderr: a sentence, or the error object as JSON. */
  failure(error: ReveilleError): void;
  /** Colours text where the terminal shows colours. */
  paint(style: Style, text: string): string;
};

const CLEAR_LINE = '\r\u001b[2K';

/** The escapes of {@link Output.paint}, and no others. */
const OWN_STYLES = new RegExp(
  `(\\u001b\\[(?:${[...new Set(STYLES.flatMap((style) => inspect.colors[style]!))].join('|')})m)`,
);

/** The last check before the terminal: escapes control characters, except our own colours. */
function onScreen(text: string, colours: boolean): string {
  if (!colours) return printable(text);
  return text
    .split(OWN_STYLES)
    .map((part, at) => (at % 2 === 1 ? part : printable(part)))
    .join('');
}

/** @param json whether results are JSON lines */
export function createOutput({ stdout, stderr }: CliProcess, json: boolean): Output {
  const live = stdout.isTTY === true && !json;
  const colours = live && stdout.hasColors();
  let pending = false;
  const clear = () => {
    if (pending) stdout.write(CLEAR_LINE);
    pending = false;
  };
  const paint = (style: Style, text: string) => (colours ? styleText(style, text) : text);
  return {
    json,
    live,
    get columns() {
      // A pseudo-terminal without a size reports 0.
      return stdout.columns || 80;
    },
    get rows() {
      return stdout.rows || 24;
    },
    paint,
    result(data, human) {
      clear();
      if (json || human === undefined) {
        const text = encodeJson(data);
        stdout.write(`${stdout.isTTY === true ? jsonForTerminal(text) : text}\n`);
        return;
      }
      for (const line of typeof human === 'string' ? [human] : human) stdout.write(`${onScreen(line, colours)}\n`);
    },
    list(items, human) {
      if (json) for (const item of items) this.result(item);
      else for (const line of human()) this.line(line);
    },
    line(text = '') {
      if (json) return;
      clear();
      stdout.write(`${onScreen(text, colours)}\n`);
    },
    progress(text) {
      if (!live) return;
      stdout.write(`${CLEAR_LINE}${printable(text).slice(0, this.columns - 1)}`);
      pending = true;
    },
    remark(text) {
      clear();
      stderr.write(`${onScreen(text, colours)}\n`);
    },
    failure(error) {
      clear();
      if (json) {
        const text = JSON.stringify({ error: wireErrorOf(error) });
        stderr.write(`${stderr.isTTY === true ? jsonForTerminal(text) : text}\n`);
      } else
        stderr.write(
          `${stderr.isTTY && stderr.hasColors() ? styleText('red', 'error') : 'error'}: ${printable(error.message)}\n`,
        );
    },
  };
}
