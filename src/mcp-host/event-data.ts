/** Cutting a stream of server-sent events into the data of each event, in bytes (https://html.spec.whatwg.org, section 9.2). */

const LF = 0x0a;
const CR = 0x0d;
const COLON = 0x3a;
const SPACE = 0x20;
const DATA = Buffer.from('data');

/** An event of more lines is passed over: JSON stands in one. */
const MOST_LINES = 1000;

/** What a `data` line holds; `undefined` for any other line. */
function dataOf(line: Buffer): Buffer | undefined {
  if (!line.subarray(0, DATA.length).equals(DATA)) return undefined;
  if (line.length === DATA.length) return line.subarray(DATA.length);
  if (line[DATA.length] !== COLON) return undefined;
  return line.subarray(DATA.length + (line[DATA.length + 1] === SPACE ? 2 : 1));
}

/**
 * Makes a function to feed chunks to. What has come of an event is kept until its blank line; whoever feeds bounds its length.
 *
 * @param onData the data of an event, its lines joined by line feeds
 */
export function eventDataReader(onData: (data: Buffer) => void): (chunk: Uint8Array) => void {
  let begun: Buffer[] = [];
  let lines: Buffer[] = [];
  let lastWasCr = false;

  const endLine = (last: Buffer) => {
    const line = begun.length === 0 ? last : Buffer.concat([...begun, last]);
    begun = [];
    if (line.length > 0) {
      const data = dataOf(line);
      if (data && lines.length <= MOST_LINES) lines.push(data);
      return;
    }
    if (lines.length > 0 && lines.length <= MOST_LINES) {
      onData(
        lines.length === 1
          ? lines[0]!
          : Buffer.concat(lines.flatMap((one, at) => (at === 0 ? [one] : [Buffer.of(LF), one]))),
      );
    }
    lines = [];
  };

  return (chunk) => {
    const bytes = Buffer.from(chunk.buffer, chunk.byteOffset, chunk.byteLength);
    let from = 0;
    for (let at = 0; at < bytes.length; at++) {
      const byte = bytes[at];
      if (byte === LF && lastWasCr) from = at + 1;
      else if (byte === LF || byte === CR) {
        endLine(bytes.subarray(from, at));
        from = at + 1;
      }
      lastWasCr = byte === CR;
    }
    // A copy: the chunk's memory belongs to the stream.
    if (from < bytes.length) begun.push(Buffer.from(bytes.subarray(from)));
  };
}
