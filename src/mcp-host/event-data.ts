/** The data of each event in a stream of server-sent events (https://html.spec.whatwg.org, section 9.2). */
import { createParser } from 'eventsource-parser';

/** An event of more lines is passed over: JSON stands in one. */
const MOST_LINES = 1000;

/**
 * Makes a function to feed chunks to. What has come of an event is kept until its blank line; whoever feeds bounds its length.
 *
 * @param onData the data of an event, its lines joined by line feeds
 */
export function eventDataReader(onData: (data: Buffer) => void): (chunk: Uint8Array) => void {
  const decoder = new TextDecoder();
  const parser = createParser({
    onEvent({ data }) {
      if (data.split('\n', MOST_LINES + 1).length <= MOST_LINES) onData(Buffer.from(data));
    },
  });
  let endedInCr = false;
  return (chunk) => {
    let text = decoder.decode(chunk, { stream: true });
    if (text === '') return;
    if (endedInCr && text.startsWith('\n')) text = text.slice(1);
    // The parser would hold an event that ends in a CR back until it knows that no LF follows.
    endedInCr = text.endsWith('\r');
    parser.feed(text.replace(/\r\n?/g, '\n'));
  };
}
