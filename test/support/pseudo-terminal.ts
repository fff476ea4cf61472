/**
 * A command in a real pseudo-terminal of a given size, which the `script` of util-linux makes (`needs('script')`), and
 * the screen of a terminal emulator on its output.
 */
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import xterm from '@xterm/headless';

export type Size = { readonly columns: number; readonly rows: number };

const quote = (word: string) => `'${word.replaceAll("'", `'\\''`)}'`;

const LIMIT_MS = 120_000;

export type WatchedCommand = {
  /** The visible lines, from the top; blanks at the ends of lines are omitted. */
  rows(): string[];
  /** Every written line, scrolled away or not. */
  all(): string[];
  /** The first lines of each line that the terminal itself wrapped, scrolled away or not. */
  wrapped(): string[];
  /** Types, and resolves when there are more lines and the screen ends with this text. */
  type(text: string, until: RegExp): Promise<void>;
  until(ends: RegExp): Promise<void>;
  /** Empties the screen and what scrolled away. */
  clear(): void;
  /** Types, and resolves with the exit code when the command has ended by itself. */
  ended(text: string): Promise<number>;
  end(): Promise<void>;
};

export function watchCommand(size: Size, command: readonly string[], env: Record<string, string>): WatchedCommand {
  const { columns, rows } = size;
  const terminal = new xterm.Terminal({ cols: columns, rows, scrollback: 20_000, allowProposedApi: true });
  const child: ChildProcess = spawn(
    'script',
    ['-qec', `stty cols ${columns} rows ${rows}; exec ${command.map(quote).join(' ')}`, '/dev/null'],
    { env: { ...env, TERM: 'xterm', SHELL: '/bin/sh' }, stdio: ['pipe', 'pipe', 'pipe'] },
  );
  let written = Promise.resolve();
  const checks = new Set<() => void>();
  /** Number of line ends so far. */
  let lines = 0;
  terminal.onLineFeed(() => lines++);
  const closed = once(child, 'close');
  for (const stream of [child.stdout!, child.stderr!])
    stream.on('data', (chunk: Buffer) => {
      written = written.then(() => new Promise<void>((resolve) => terminal.write(chunk, resolve)));
      void written.then(() => {
        for (const check of checks) check();
      });
    });
  const line = (at: number) => terminal.buffer.active.getLine(at);
  const visible = () => {
    const { viewportY } = terminal.buffer.active;
    return Array.from({ length: rows }, (_, at) => line(viewportY + at)?.translateToString(true) ?? '');
  };
  const until = (ends: RegExp) =>
    new Promise<void>((resolve, reject) => {
      const stop = (error?: Error) => {
        clearTimeout(limit);
        checks.delete(check);
        if (error) reject(error);
        else resolve();
      };
      const fail = (why: string) => stop(new Error(`${why} before ${ends}:\n${visible().join('\n')}`));
      // Up to the cursor: after Enter, an answered prompt is still the last text, a line above.
      const upToCursor = () =>
        visible()
          .slice(0, terminal.buffer.active.cursorY + 1)
          .join('\n')
          .replace(/ +$/, '');
      const check = () => ends.test(upToCursor()) && stop();
      const limit = setTimeout(() => fail('too much time went by'), LIMIT_MS);
      checks.add(check);
      check();
      void closed.then(() => written).then(() => fail('it ended'));
    });
  return {
    rows: visible,
    all() {
      const { length } = terminal.buffer.active;
      return Array.from({ length }, (_, at) => line(at)!.translateToString(true));
    },
    wrapped() {
      const { length } = terminal.buffer.active;
      const found: string[] = [];
      for (let at = 1; at < length; at++) if (line(at)!.isWrapped) found.push(line(at - 1)!.translateToString(true));
      return found;
    },
    async type(text, ends) {
      const before = lines;
      child.stdin!.write(text);
      await new Promise<void>((resolve) => {
        const changed = () => {
          if (lines === before) return;
          checks.delete(changed);
          resolve();
        };
        checks.add(changed);
      });
      await until(ends);
    },
    until,
    clear: () => terminal.reset(),
    async ended(text) {
      child.stdin!.write(text);
      const [code] = (await closed) as [number];
      await written;
      return code;
    },
    async end() {
      // Closes the terminal at once, so that its programs get SIGHUP; on SIGTERM script would wait two seconds.
      child.kill('SIGKILL');
      await closed;
      await written;
      terminal.dispose();
    },
  };
}
