/**
 * Being told that something has happened to an intent. An event is only a hint to look: what an intent's state is, the executor says
 * when it is asked, and it is asked now and then in any case. So a stream that breaks, stands still or lies loses nothing.
 */
import { type Clock, wait } from '../../kit/clock/clock.ts';
import { INTENT_EVENTS } from '../../wire/executor.ts';

/** Pauses before a stream that broke is opened again. */
const REOPEN_MS = [500, 1000, 2000, 5000, 10_000];

const KNOWN: ReadonlySet<string> = new Set(INTENT_EVENTS);

/** A line without an end is given up at this length. */
const LONGEST_LINE = 1024 * 1024;

/** The kinds of the events of a stream, as they come (WHATWG HTML, §9.2.6). */
async function* eventKinds(stream: ReadableStream<Uint8Array>): AsyncGenerator<string> {
  let rest = '';
  let kind = 'message';
  for await (const chunk of stream.pipeThrough(new TextDecoderStream())) {
    const lines = (rest + chunk).split(/\r\n|\n|\r/);
    rest = lines.pop()!;
    if (rest.length > LONGEST_LINE) throw new Error('a line of the event stream has no end');
    for (const line of lines) {
      if (line.startsWith('event:')) kind = line.slice('event:'.length).trim();
      else if (line === '') {
        yield kind;
        kind = 'message';
      }
    }
  }
}

export type IntentEvents = {
  /** Whether the stream stands at the moment. */
  live(): boolean;
};

/**
 * Follows an intent's events until the signal aborts, over as many streams as it takes.
 *
 * @param open opens a stream
 * @param onHint called when something may have happened: an event came, or the stream was opened anew
 */
export function followIntent(
  open: (signal: AbortSignal) => Promise<ReadableStream<Uint8Array>>,
  { clock, signal, onHint }: { clock: Clock; signal: AbortSignal; onHint: () => void },
): IntentEvents {
  let live = false;
  const follow = async () => {
    for (let failures = 0; !signal.aborted; failures++) {
      try {
        const stream = await open(signal);
        live = true;
        onHint();
        for await (const kind of eventKinds(stream)) {
          failures = 0;
          if (KNOWN.has(kind)) onHint();
        }
      } catch {
        // The executor is asked without a stream, too, and that is where its failures are told.
      }
      live = false;
      await wait(clock, REOPEN_MS[Math.min(failures, REOPEN_MS.length - 1)]!, signal);
    }
  };
  void follow();
  return { live: () => live };
}
