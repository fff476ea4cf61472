/**
 * The input line: edited and recalled as in a shell (node:readline). It is kept while a question uses the terminal, and
 * hidden while the agent's reply is written.
 */
import { createInterface, type Interface } from 'node:readline';
import { Writable } from 'node:stream';
import { readPrivateFile, replacePrivateFile } from '../../kit/identity/private-file.ts';
import type { CliProcess } from '../cli-process.ts';

const HISTORY_LINES = 1000;

export type LineEditorOptions = {
  process: CliProcess;
  prompt: string;
  /** File of earlier lines, newest first, readable only by its owner. */
  historyFile: string;
  onLine: (line: string) => void;
  /** Ctrl-C; `isEmpty`: the line has no text. */
  onInterrupt: (isEmpty: boolean) => void;
  /** Ctrl-D, or the end of the input. */
  onEnd: () => void;
};

/** Earlier lines; none when the file cannot be read. */
function readHistory(file: string): string[] {
  try {
    const lines: unknown = JSON.parse(readPrivateFile(file) ?? '[]');
    return Array.isArray(lines) ? lines.filter((line) => typeof line === 'string').slice(0, HISTORY_LINES) : [];
  } catch {
    return [];
  }
}

export class LineEditor {
  readonly #options: LineEditorOptions;
  #history: string[];
  #reader: Interface | undefined;
  #isHidden = true;

  constructor(options: LineEditorOptions) {
    this.#options = options;
    this.#history = readHistory(options.historyFile);
    this.#open('');
  }

  /** Shows the prompt with the text typed so far; an empty line gets the given text. */
  show(words = ''): void {
    this.#isHidden = false;
    if (words !== '' && this.#reader?.line === '') this.#reader.write(words);
    this.#reader?.prompt(true);
  }

  /** Later input is kept and not shown. */
  hide(): void {
    if (this.#isHidden) return;
    this.#isHidden = true;
    // The prompt and the text are removed from the screen, not from the line.
    if (this.#options.process.stdout.isTTY) this.#options.process.stdout.write('\r\u001b[J');
  }

  /** Removes the text of the line. */
  clear(): void {
    this.#reader?.write(null, { ctrl: true, name: 'e' });
    this.#reader?.write(null, { ctrl: true, name: 'u' });
  }

  /** Gives the terminal to `use`, and restores the line afterwards. */
  async lend<T>(use: () => Promise<T>): Promise<T> {
    const draft = this.#reader?.line ?? '';
    this.#close();
    try {
      return await use();
    } finally {
      this.#open(draft);
    }
  }

  end(): void {
    this.#close();
  }

  #close(): void {
    const reader = this.#reader;
    this.#reader = undefined;
    reader?.close();
  }

  #open(draft: string): void {
    const { process, prompt, onLine, onInterrupt, onEnd } = this.#options;
    const { stdin, stdout } = process;
    const output = Object.assign(
      new Writable({
        write: (chunk, _encoding, done) => {
          if (!this.#isHidden) stdout.write(chunk);
          done();
        },
      }),
      { columns: stdout.columns, isTTY: stdout.isTTY },
    );
    const reader = createInterface({
      input: stdin,
      output,
      prompt,
      terminal: stdin.isTTY === true && stdout.isTTY === true,
      history: [...this.#history],
      historySize: HISTORY_LINES,
      removeHistoryDuplicates: true,
    });
    const onResize = () => Object.assign(output, { columns: stdout.columns });
    stdout.on('resize', onResize);
    reader.on('line', onLine);
    reader.on('history', (history) => this.#keep(history));
    reader.on('SIGINT', () => onInterrupt(reader.line === ''));
    reader.on('close', () => {
      stdout.off('resize', onResize);
      if (this.#reader === reader) onEnd();
    });
    this.#reader = reader;
    if (draft !== '') reader.write(draft);
  }

  #keep(history: readonly string[]): void {
    this.#history = history.slice(0, HISTORY_LINES);
    try {
      replacePrivateFile(this.#options.historyFile, `${JSON.stringify(this.#history)}\n`);
    } catch {
      // A line that cannot be saved does not end the chat.
    }
  }
}
