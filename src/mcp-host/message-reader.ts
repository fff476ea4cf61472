/** Cutting a server's stdout into messages, without ever holding more than one line of bounded length. */
import { type JSONRPCMessage, parseJSONRPCMessage } from '@modelcontextprotocol/client';
import { parseForeignJson } from '../wire/json.ts';

const NEWLINE = 0x0a;
const CARRIAGE_RETURN = 0x0d;

export type MessageSink = {
  /** @param line its bytes, without the line end */
  message(message: JSONRPCMessage, line: Buffer): void;
  /** A line that is no JSON-RPC message. @param bytes of the line */
  garbage(line: string, bytes: number): void;
  /** A line grew beyond the limit. Nothing is read any more. */
  tooLong(): void;
};

/** What of a line that is no message is worth showing. */
const SHOWN_BYTES = 512;

/**
 * Makes a function to feed chunks to. Empty lines are passed over.
 *
 * @param longestBytes of one line
 */
export function messageReader(longestBytes: number, sink: MessageSink): (chunk: Buffer) => void {
  let waiting: Buffer[] = [];
  let waitingBytes = 0;
  let isOver = false;

  const read = (line: Buffer) => {
    const text = line.toString('utf8').trim();
    if (text === '') return;
    let message: JSONRPCMessage;
    try {
      message = parseJSONRPCMessage(parseForeignJson(text));
    } catch {
      sink.garbage(line.subarray(0, SHOWN_BYTES).toString('utf8'), line.length);
      return;
    }
    sink.message(message, line.at(-1) === CARRIAGE_RETURN ? line.subarray(0, -1) : line);
  };

  return (chunk) => {
    let from = 0;
    while (!isOver && from < chunk.length) {
      const end = chunk.indexOf(NEWLINE, from);
      const piece = chunk.subarray(from, end === -1 ? chunk.length : end);
      from += piece.length + 1;
      waiting.push(piece);
      waitingBytes += piece.length;
      if (waitingBytes > longestBytes) {
        isOver = true;
        waiting = [];
        sink.tooLong();
      } else if (end !== -1) {
        const line = waiting.length === 1 ? piece : Buffer.concat(waiting, waitingBytes);
        waiting = [];
        waitingBytes = 0;
        read(line);
      }
    }
  };
}
