/** Reads logs back from files. */
import { readFileSync } from 'node:fs';
import type { z } from 'zod';
import { ReveilleError } from '../../../src/wire/errors.ts';
import { parseOrThrow } from '../../../src/wire/validate.ts';
import { foldClient, foldReceiver, Misfit } from './fold.ts';
import {
  type ClientLog,
  clientLineSchema,
  headerSchema,
  LOG_VERSION,
  type LogHeader,
  type ReceiverLog,
  receiverLineSchema,
} from './history.ts';

/** A log, with remarks about its file. */
export type ReadLog<Log> = { log: Log; remarks: readonly string[] };

function refusal(path: string, what: string, cause?: unknown): ReveilleError {
  return new ReveilleError('invalid_request', `${path} ${what}`, { cause });
}

/** The complete lines of a file; a crash left the last one incomplete. */
function linesOf(path: string): { lines: string[]; torn: boolean } {
  let bytes: Buffer;
  try {
    bytes = readFileSync(path);
  } catch (cause) {
    const missing = (cause as NodeJS.ErrnoException).code === 'ENOENT';
    const why = missing ? 'there is no such file' : (cause as Error).message;
    throw refusal(path, `cannot be read: ${why}; name the log that was written`, cause);
  }
  const lines: string[] = [];
  const decoder = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true });
  let from = 0;
  for (let end = bytes.indexOf(0x0a); end >= 0; end = bytes.indexOf(0x0a, from)) {
    try {
      lines.push(decoder.decode(bytes.subarray(from, end)));
    } catch (cause) {
      throw refusal(path, `line ${lines.length + 1} is not UTF-8; use the log as it was written`, cause);
    }
    from = end + 1;
  }
  return { lines, torn: from < bytes.length };
}

function parseLine<Schema extends z.ZodType>(
  path: string,
  index: number,
  text: string,
  schema: Schema,
): z.output<Schema> {
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch (cause) {
    const remedy = 'one line contains one JSON object; use the log as it was written';
    throw refusal(path, `line ${index + 1} is not JSON (${(cause as Error).message}): ${remedy}`, cause);
  }
  try {
    return parseOrThrow(schema, value);
  } catch (cause) {
    throw refusal(path, `line ${index + 1}: ${(cause as Error).message}; see test/checker/history.ts`, cause);
  }
}

function readHeader(path: string, text: string | undefined, kind: LogHeader['log']): LogHeader {
  if (text === undefined) throw refusal(path, 'is empty: the first line of a log declares its kind');
  const header = parseLine(path, 0, text, headerSchema);
  if (header.version !== LOG_VERSION)
    throw refusal(
      path,
      `is a log of version ${header.version}, and this checker reads version ${LOG_VERSION}; judge it with the checker it was written for`,
    );
  if (header.log !== kind)
    throw refusal(path, `is the log of the ${header.log}; use it with --${header.log}, not --${kind}`);
  return header;
}

/** Reads one file and folds its lines; a contradictory line is reported with its number. */
function readFolded<Schema extends z.ZodType, Folded>(
  path: string,
  kind: LogHeader['log'],
  schema: Schema,
  fold: (lines: z.output<Schema>[]) => Folded,
): { header: LogHeader; folded: Folded; remarks: string[] } {
  const { lines, torn } = linesOf(path);
  const header = readHeader(path, lines[0], kind);
  const entries = lines.slice(1).map((text, index) => parseLine(path, index + 1, text, schema));
  try {
    const remarks = torn ? [`the last line of ${path} is incomplete and is ignored`] : [];
    return { header, folded: fold(entries), remarks };
  } catch (cause) {
    if (!(cause instanceof Misfit)) throw cause;
    throw refusal(path, `line ${cause.index + 2}: ${cause.message}; use the log as it was written`, cause);
  }
}

const widest = (headers: readonly LogHeader[]) => Math.max(...headers.map(({ clockToleranceMs }) => clockToleranceMs));

/**
 * Reads the logs of one or several clients as one.
 *
 * @throws ReveilleError `invalid_request` that names the file, the line and the remedy
 */
export function readClientLogs(paths: readonly string[]): ReadLog<ClientLog> {
  const read = paths.map((path) => readFolded(path, 'client', clientLineSchema, foldClient));
  return {
    log: {
      clockToleranceMs: widest(read.map(({ header }) => header)),
      calls: read.flatMap(({ folded }) => folded).sort((one, other) => one.invokedAt - other.invokedAt),
    },
    remarks: read.flatMap(({ remarks }) => remarks),
  };
}

/**
 * Reads the logs of one or several receivers as one. Either all of them run turns, or none does.
 *
 * @throws ReveilleError `invalid_request` that names the file, the line and the remedy
 */
export function readReceiverLogs(paths: readonly string[]): ReadLog<ReceiverLog> {
  const read = paths.map((path) => readFolded(path, 'receiver', receiverLineSchema, foldReceiver));
  const [first] = read;
  read.forEach(({ header, folded }, index) => {
    if (header.runsTurns !== first!.header.runsTurns)
      throw refusal(
        paths[index]!,
        `and ${paths[0]} do not agree on runsTurns: either all receivers run turns, or none`,
      );
    if (header.runsTurns !== true && folded.turns.length > 0)
      throw refusal(paths[index]!, 'contains turns; its first line must have "runsTurns":true');
  });
  return {
    log: {
      clockToleranceMs: widest(read.map(({ header }) => header)),
      wakes: read.flatMap(({ folded }) => folded.wakes).sort((one, other) => one.receivedAt - other.receivedAt),
      turns: first?.header.runsTurns === true ? read.flatMap(({ folded }) => folded.turns) : null,
    },
    remarks: read.flatMap(({ remarks }) => remarks),
  };
}
