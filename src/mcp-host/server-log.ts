/**
 * The output of a server on stderr, and on stdout where it is not a message. It is stored in a bounded file per server,
 * without secrets.
 */
import { appendFileSync, mkdirSync, renameSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { StringDecoder } from 'node:string_decoder';
import type { Clock } from '../kit/clock/clock.ts';
import type { Logger } from '../kit/log/log.ts';
import { isStackFrame, QUOTED_LINES, quoteLast } from '../kit/text/excerpt.ts';
import { hiddenBlanked, withoutColours } from '../kit/text/hidden-characters.ts';

/** The file is rotated at this size; one old file is kept. */
const FILE_BYTES = 1024 * 1024;
const LINE_CHARACTERS = 4096;
/** Output beyond this within a second is counted and dropped, to protect the disk and this process. */
const BYTES_PER_SECOND = 256 * 1024;
/** Shorter values occur in ordinary text by chance. */
const SHORTEST_SECRET = 6;

/** The source of a line; `host` marks lines of the MCP host. */
export type LineSource = 'stderr' | 'stdout' | 'host';

export type ServerLogOptions = {
  folder: string;
  alias: string;
  /** Values that are never written. */
  secrets: readonly string[];
  clock: Clock;
  log: Logger;
};

/** Replaces control characters and terminal colours, which could affect the terminal of a reader. */
function printable(line: string): string {
  return hiddenBlanked(withoutColours(line));
}

/** What a connection needs of a log. */
export type ServerOutput = Pick<ServerLog, 'line' | 'stderr' | 'clearLast' | 'lastOutput'>;

export class ServerLog {
  readonly path: string;
  readonly #clock: Clock;
  readonly #log: Logger;
  readonly #secrets: readonly string[];
  readonly #decoder = new StringDecoder('utf8');
  #partial = '';
  #last: string[] = [];
  #bytes = 0;
  #windowFrom = Number.NEGATIVE_INFINITY;
  #windowBytes = 0;
  #dropped = 0;
  #isBroken = false;

  /** Creates the folder and continues an existing file. */
  constructor({ folder, alias, secrets, clock, log }: ServerLogOptions) {
    this.#clock = clock;
    this.#log = log;
    // The longest first: one may be a part of another.
    this.#secrets = secrets
      .filter((secret) => secret.length >= SHORTEST_SECRET)
      .toSorted((one, other) => other.length - one.length);
    this.path = join(folder, `${alias}.log`);
    try {
      mkdirSync(folder, { recursive: true, mode: 0o700 });
      this.#bytes = statSync(this.path, { throwIfNoEntry: false })?.size ?? 0;
    } catch (err) {
      this.#warnBroken(err);
    }
  }

  /** Accepts a chunk of stderr; lines may be cut anywhere. */
  stderr(chunk: Buffer): void {
    const lines = (this.#partial + this.#decoder.write(chunk)).split('\n');
    this.#partial = (lines.pop() ?? '').slice(0, LINE_CHARACTERS);
    for (const line of lines) this.line('stderr', line);
  }

  line(source: LineSource, text: string): void {
    let line = text.slice(0, LINE_CHARACTERS);
    for (const secret of this.#secrets) line = line.replaceAll(secret, '[hidden]');
    line = printable(line).trimEnd();
    if (line === '') return;
    if (source !== 'host' && !isStackFrame(line)) this.#last = [...this.#last.slice(1 - QUOTED_LINES), line];
    this.#append(`${new Date(this.#clock.now()).toISOString()} ${source} ${line}\n`);
  }

  /** The server's last output as one short line, for an error message. */
  get lastOutput(): string {
    const partial = this.#partial.trim();
    if (partial !== '') this.line('stderr', this.#partial);
    this.#partial = '';
    return quoteLast(this.#last);
  }

  /** Clears the last output: a new process begins. */
  clearLast(): void {
    this.#partial = '';
    this.#last = [];
  }

  /** A full disk must not end the server; one warning is enough. */
  #warnBroken(err: unknown): void {
    if (!this.#isBroken) this.#log.warn({ err, path: this.path }, "a server's output cannot be stored");
    this.#isBroken = true;
  }

  #append(line: string): void {
    const now = this.#clock.monotonic();
    if (now - this.#windowFrom >= 1000) {
      const dropped = this.#dropped;
      this.#windowFrom = now;
      this.#windowBytes = 0;
      this.#dropped = 0;
      if (dropped > 0) this.line('host', `${dropped} lines were dropped because the server wrote too fast`);
    }
    this.#windowBytes += line.length;
    if (this.#windowBytes > BYTES_PER_SECOND) {
      this.#dropped++;
      return;
    }
    try {
      if (this.#bytes + line.length > FILE_BYTES) {
        // First, so that a failed rotation is not repeated at every line.
        this.#bytes = 0;
        renameSync(this.path, `${this.path}.1`);
      }
      appendFileSync(this.path, line, { mode: 0o600 });
      this.#bytes += line.length;
      this.#isBroken = false;
    } catch (err) {
      this.#warnBroken(err);
    }
  }
}
