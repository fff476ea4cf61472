/** Cutting a byte stream into lines without ever holding more than one line of bounded length. */

const NEWLINE = 0x0a;

export type LineSink = {
  /** A line without its line feed. */
  line(bytes: Buffer): void;
  /** A line grew beyond the limit; it is dropped, what follows its line feed is read on. Called once per line. */
  tooLong(): void;
};

/**
 * Makes a function to feed chunks to. What follows the last line feed waits for more.
 *
 * @param maxBytes of one line
 */
export function lineCutter(maxBytes: number, sink: LineSink): (chunk: Buffer) => void {
  let waiting: Buffer[] = [];
  let waitingBytes = 0;
  let dropping = false;

  const keep = (piece: Buffer) => {
    if (dropping) return;
    if (waitingBytes + piece.length > maxBytes) {
      waiting = [];
      waitingBytes = 0;
      dropping = true;
      sink.tooLong();
      return;
    }
    waiting.push(piece);
    waitingBytes += piece.length;
  };

  return (chunk) => {
    let from = 0;
    for (let at = chunk.indexOf(NEWLINE); at !== -1; at = chunk.indexOf(NEWLINE, from)) {
      keep(chunk.subarray(from, at));
      from = at + 1;
      if (!dropping) {
        const line = waiting.length === 1 ? waiting[0]! : Buffer.concat(waiting, waitingBytes);
        waiting = [];
        waitingBytes = 0;
        sink.line(line);
      }
      dropping = false;
    }
    if (from < chunk.length) keep(chunk.subarray(from));
  };
}
