/**
 * Writes a log during faults. A recorder turns calls and wakes into lines. Their destination (an array, a file) is a
 * parameter, so that simulation and chaos write the same lines.
 */
import { closeSync, fsyncSync, ftruncateSync, openSync, readFileSync, writeSync } from 'node:fs';
import { ReveilleError } from '../../../src/wire/errors.ts';
import {
  type Answer,
  type ClientLine,
  headerSchema,
  LOG_VERSION,
  type LogHeader,
  type Operation,
  type ReceiverLine,
  type Turn,
  type Wake,
} from './history.ts';

/** The destination of lines. */
export type Sink<Line> = (line: Line) => void;

/** A log on disk, open for writing. */
export type Journal<Line> = {
  /**
   * Passes a line to the operating system before it returns: it survives `kill -9` of this process, not a power
   * failure.
   */
  readonly write: Sink<Line>;
  /** Number of lines when it was opened, without the header: number calls and wakes from here on. */
  readonly lines: number;
  /** Syncs to disk and closes. */
  close(): void;
};

const NEWLINE = 0x0a;

function newlinesIn(bytes: Buffer): number {
  let count = 0;
  for (let at = bytes.indexOf(NEWLINE); at >= 0; at = bytes.indexOf(NEWLINE, at + 1)) count++;
  return count;
}

/** Only a log with the same header is continued. */
function checkHeader(path: string, bytes: Buffer, kind: LogHeader['log']): void {
  const first = bytes.subarray(0, bytes.indexOf(NEWLINE)).toString('utf8');
  try {
    const header = headerSchema.parse(JSON.parse(first));
    if (header.log === kind && header.version === LOG_VERSION) return;
  } catch {
    // Not a log at all: reported below.
  }
  throw new ReveilleError('conflict', `${path} is not a ${kind} log of version ${LOG_VERSION}; name a new file`);
}

/**
 * Opens a log for appending; one writer at a time. A new one gets its header. An incomplete last line is cut off: its
 * writer crashed and cannot have acted on it.
 *
 * @throws ReveilleError `unavailable` when the file cannot be opened or a line cannot be written; no part of such a
 *   line remains. `conflict` when the file has other contents
 */
export function openJournal<Line extends ClientLine | ReceiverLine>(
  path: string,
  header: Omit<LogHeader, 'version'>,
): Journal<Line> {
  const failure = (doing: string, cause: unknown) =>
    new ReveilleError('unavailable', `${path} cannot be ${doing}: ${cause instanceof Error ? cause.message : cause}`, {
      cause,
    });
  let file: number;
  let length: number;
  let lines: number;
  try {
    file = openSync(path, 'a+');
    const bytes = readFileSync(file);
    length = bytes.lastIndexOf(NEWLINE) + 1;
    if (length > 0) checkHeader(path, bytes, header.log);
    ftruncateSync(file, length);
    lines = newlinesIn(bytes);
  } catch (cause) {
    if (cause instanceof ReveilleError) throw cause;
    throw failure('opened', cause);
  }
  const append = (value: unknown) => {
    const bytes = Buffer.from(`${JSON.stringify(value)}\n`, 'utf8');
    try {
      for (let written = 0; written < bytes.length; ) written += writeSync(file, bytes, written);
    } catch (cause) {
      ftruncateSync(file, length);
      throw failure('written', cause);
    }
    length += bytes.length;
  };
  if (lines === 0) append({ ...header, version: LOG_VERSION });
  return {
    write: append,
    lines: Math.max(0, lines - 1),
    close() {
      fsyncSync(file);
      closeSync(file);
    },
  };
}

/** Writes the answer of one call, once. */
export type Answered<Outcome> = (outcome: Outcome, at: number) => void;

/** Records a client's requests and their answers. */
export type ClientRecorder = {
  /**
   * Call it before the request is sent. The returned function records the answer; without it the answer counts as lost.
   */
  invoke(user: string, operation: Operation, at: number): Answered<Answer>;
};

/** @param from the number of the first call; {@link Journal.lines} of a continued log */
export function recordClient(sink: Sink<ClientLine>, from = 0): ClientRecorder {
  let calls = from;
  return {
    invoke(user, operation, at) {
      const call = calls++;
      sink({ event: 'invoked', call, at, user, operation });
      return (answer, answeredAt) => sink({ event: 'answered', call, at: answeredAt, answer });
    },
  };
}

/** A wake as it arrives. */
export type Arrival = Pick<Wake, 'fireId' | 'user' | 'conversation' | 'message' | 'payload'> & {
  attempt?: number;
  missedCount?: number;
};

/** Records the requests that reach the receiver. */
export type ReceiverRecorder = {
  /** Call it before the answer. The returned function records the HTTP status when the answer is sent. */
  woken(arrival: Arrival, at: number): Answered<number>;
  /** A turn, when it has ended or when the receiver is finally read: once for each turn. */
  turn(turn: Omit<Turn, 'at'>, at: number): void;
};

/** @param from the number of the first wake; {@link Journal.lines} of a continued log */
export function recordReceiver(sink: Sink<ReceiverLine>, from = 0): ReceiverRecorder {
  let wakes = from;
  return {
    woken(arrival, at) {
      const wake = wakes++;
      sink({ event: 'woken', wake, at, ...arrival });
      return (status, answeredAt) => sink({ event: 'answered', wake, at: answeredAt, status });
    },
    turn: (turn, at) => sink({ event: 'turn', at, ...turn }),
  };
}
