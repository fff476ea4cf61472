/** Shows an agent's events in a terminal as they arrive: reply text as it is streamed, tools as they run. */
import type { NeoEvent } from '../../agents/neo/client.ts';
import { formatDuration } from '../../kit/clock/duration.ts';
import { oneLine, printable } from '../../kit/text/hidden-characters.ts';
import type { TurnEventData, TurnView } from '../../wire/turn.ts';
import { fit } from '../screens/columns.ts';
import { waitsWords } from '../screens/log-screen.ts';
import type { Reader } from '../screens/render.ts';

/** Characters shown of arguments and results. */
const SHOWN_CELLS = 200;

/** Writes to the terminal, also parts of a line. */
export type Write = (text: string) => void;

/** What started a turn of another client or of a timer. */
export function arrivalLine({ origin, sent_by, message, label }: TurnView, look: Reader): string {
  const alarm = `alarm${label ? ` ${oneLine(label)}` : ''}`;
  const other = sent_by === undefined ? alarm : `agent ${oneLine(sent_by)}`;
  const who = origin === 'user' ? 'elsewhere' : other;
  return look.paint('dim', fit(`${who}> ${oneLine(message)}`, look.width - 1));
}

/** The reason why there is no answer; `undefined` while one may still come. */
export function endingWords({ status, error, retry_at }: TurnEventData<'turn'>, look: Reader): string | undefined {
  if (retry_at !== undefined) return waitsWords(Date.parse(retry_at), error, look);
  if (status !== 'failed' && status !== 'interrupted') return undefined;
  return `the turn ${status === 'failed' ? 'failed' : 'was given up'}${error === undefined ? '' : `: ${oneLine(error)}`}`;
}

/** Writes the turns of a conversation as they proceed. */
export class Screen {
  readonly #write: Write;
  readonly #look: () => Reader;
  /** The turn whose text is on the unfinished line, and the number of characters written. */
  #speaking: string | undefined;
  /** Per turn: the reply so far, and the reply on the screen. The latter is longer while the reply is repeated. */
  readonly #said = new Map<string, { readonly reply: string; readonly written: string }>();
  #column = false;

  constructor(write: Write, look: () => Reader) {
    this.#write = write;
    this.#look = look;
  }

  /** Ends an unfinished line. */
  freshLine(): void {
    if (this.#column) this.#write('\n');
    this.#column = false;
    this.#speaking = undefined;
  }

  line(text: string): void {
    this.freshLine();
    this.#write(`${text}\n`);
  }

  /** Whether any text of a turn has been shown. */
  hasSaid(turnId: string): boolean {
    return this.#said.has(turnId);
  }

  /** Writes a whole answer of which no text was streamed. */
  reply(turnId: string, text: string): void {
    this.#say({ conversation_id: '', turn_id: turnId, offset: 0, text });
    this.freshLine();
  }

  show(event: NeoEvent): void {
    if (event.type === 'say') this.#say(event.data);
    else if (event.type === 'tool') this.#tool(event.data);
    else if (event.type === 'status') this.line(this.#look().paint('dim', `  ${oneLine(event.data.text)}`));
    else if (event.type === 'notice') this.line(this.#look().paint('yellow', oneLine(event.data.text)));
    else if (event.type === 'turn') this.#turn(event.data);
  }

  /** Writes the new part of a reply. The event log can repeat the whole reply; only the missing end is written then. */
  #say({ turn_id, offset, text }: TurnEventData<'say'>): void {
    const { reply: before, written } = this.#said.get(turn_id) ?? { reply: '', written: '' };
    const reply = `${before.slice(0, offset).padEnd(offset)}${text}`;
    // Missed text is blank in both and is not written.
    const seen = offset > written.length && before === written ? written.padEnd(offset) : written;
    const isRepeated = seen.startsWith(reply);
    this.#said.set(turn_id, { reply, written: isRepeated ? seen : reply });
    if (isRepeated) return;
    const goesOn = seen !== '' && reply.startsWith(seen);
    if (this.#speaking !== turn_id || !goesOn) this.freshLine();
    this.#speaking = turn_id;
    const shown = (goesOn ? reply.slice(seen.length) : reply).split('\n').map(printable).join('\n');
    this.#write(shown);
    this.#column = !shown.endsWith('\n');
  }

  #tool({ turn_id, name, state, input, is_error, output, took_ms }: TurnEventData<'tool'>): void {
    // The reply restarts after a call. The same text is new text then.
    if (this.#said.has(turn_id)) this.#said.set(turn_id, { reply: '', written: '' });
    const { paint, width } = this.#look();
    const short = (text: string | undefined) => (text === undefined ? '' : ` ${fit(oneLine(text), SHOWN_CELLS)}`);
    if (state === 'begun') {
      this.line(paint('dim', fit(`  · ${oneLine(name)}${short(input)}`, width - 1)));
      return;
    }
    const took = took_ms === undefined ? '' : ` ${formatDuration(took_ms)}`;
    const words = is_error ? `  ✗ ${oneLine(name)}${took}${short(output)}` : `  ✓ ${oneLine(name)}${took}`;
    this.line(paint(is_error ? 'red' : 'dim', fit(words, width - 1)));
  }

  #turn(turn: TurnEventData<'turn'>): void {
    const look = this.#look();
    const words = endingWords(turn, look);
    if (words !== undefined) this.line(look.paint('yellow', words));
    else if (turn.status === 'done') this.freshLine();
  }
}
