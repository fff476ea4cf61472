/**
 * Keeping a log while things are being broken. A recorder turns calls and wakes into lines; where the lines go (an
 * array, a file) is handed in, so that simulation and chaos write the same.
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

/** Where lines go. */
export type Sink<Line> = (line: Line) => void;

/** A log on disk that is being written. */
export type Journal<Line> = {
  /** Hands a line to the operating system before it returns: it survives `kill -9` of this process, not a power cut. */
  readonly write: Sink<Line>;
  /** How many lines stood there when it was opened, the header apart: number calls and wakes from here on. */
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

/** Only a log that this would have begun is continued. */
function checkHeader(path: string, bytes: Buffer, kind: LogHeader['log']): void {
  const first = bytes.subarray(0, bytes.indexOf(NEWLINE)).toString('utf8');
  try {
    const header = headerSchema.parse(JSON.parse(first));
    if (header.log === kind && header.version === LOG_VERSION) return;
  } catch {
    // Not a log at all: said below.
  }
  throw new ReveilleError(
    'conflict',
    `${path} is something else than a ${kind} log of version ${LOG_VERSION}; name a new file`,
  );
}

/**
 * Opens a log for appending; one writer at a time. A new one gets its header. A last line that was torn by a crash is
 * cut off: whoever wrote it was not there any more to act on it.
 *
 * @throws ReveilleError `unavailable` when the file cannot be opened or a line cannot be written; nothing of such a
 *   line stays. `conflict` when the file holds something else
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

/** Records what a client asks and is told. */
export type ClientRecorder = {
  /**
   * Before the request is sent. The function that comes back takes the answer; never called, the answer counts as lost.
   */
  invoke(user: string, operation: Operation, at: number): Answered<Answer>;
};

/** @param from the number of the first call; {@link Journal.lines} of a log that is continued */
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

/** Records what reaches the receiving end. */
export type ReceiverRecorder = {
  /** Before it is answered. The function that comes back takes the HTTP status, when the answer goes out. */
  woken(arrival: Arrival, at: number): Answered<number>;
  /** A turn, when it has ended or when the receiving end is read at last: once for each turn. */
  turn(turn: Omit<Turn, 'at'>, at: number): void;
};

/** @param from the number of the first wake; {@link Journal.lines} of a log that is continued */
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
