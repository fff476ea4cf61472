/** Sends replies and tool calls of one conversation to an open page. The server escapes every text. */
import { html } from 'hono/html';
import type { NeoEvent } from '../../agents/neo/client.ts';
import type { Clock } from '../../kit/clock/clock.ts';
import { conversationIdSchema } from '../../wire/alarm.ts';
import { toReveilleError } from '../../wire/errors.ts';
import type { LiveStream } from '../live.ts';
import { markdown } from '../markdown.ts';
import type { RequestContext } from '../request-context.ts';
import { brief, type Html, NOTHING, shown } from '../shown.ts';

/** Shortest time between two updates of a reply. */
const REPLY_EVERY_MS = 80;

/** The reply of each turn so far, and the turns whose reply has changed since the last update. */
class Replies {
  readonly #texts = new Map<string, string>();
  readonly #fresh = new Set<string>();
  readonly #send: (turn: string, text: string) => void;
  readonly #clock: Clock;
  #isWaiting = false;

  constructor(clock: Clock, send: (turn: string, text: string) => void) {
    this.#clock = clock;
    this.#send = send;
  }

  append({ turn_id: turn, offset, text }: Extract<NeoEvent, { type: 'say' }>['data']): void {
    const before = this.#texts.get(turn);
    // The page was opened in the middle of this reply; it shows the beginning when the turn has ended.
    const kept = before === undefined && offset > 0 ? '… ' : (before ?? '').slice(0, offset);
    this.#texts.set(turn, kept + text);
    this.#fresh.add(turn);
    if (this.#isWaiting) return;
    this.#isWaiting = true;
    this.#clock.after(REPLY_EVERY_MS, () => this.flush());
  }

  flush(): void {
    this.#isWaiting = false;
    for (const turn of this.#fresh) this.#send(turn, this.#texts.get(turn)!);
    this.#fresh.clear();
  }

  forget(turn: string): void {
    this.#texts.delete(turn);
    this.#fresh.delete(turn);
  }
}

function toolLine({
  name,
  state,
  input,
  output,
  is_error,
  took_ms,
}: Extract<NeoEvent, { type: 'tool' }>['data']): Html {
  const took =
    took_ms === undefined
      ? ''
      : ` · ${took_ms < 1000 ? `${Math.round(took_ms)} ms` : `${(took_ms / 1000).toFixed(1)} s`}`;
  const text = state === 'begun' ? 'running' : is_error ? 'failed' : 'done';
  const detail = state === 'begun' ? input : output;
  return html`<code>${shown(name)}</code> <span class="state ${is_error ? 'failed' : state}">${text}${took}</span>${detail === undefined ? NOTHING : html` <span class="dim">${brief(detail, 160)}</span>`}`;
}

/** Events before the page's own that are searched for running tools. */
const SEARCHED_EVENTS = 2000;

/**
 * Follows a conversation until the stream ends. Never rejects.
 *
 * @param followed.seen the newest event that the page contains; of earlier events, the stream repeats the tools and the
 *   unfinished reply, which the page does not contain
 */
export async function followChat(
  { backend, clock }: RequestContext,
  { conversation, seen }: { conversation: string; seen: string },
  stream: LiveStream,
): Promise<void> {
  if ('missing' in backend.agent || !conversationIdSchema.safeParse(conversation).success) return;
  const page = /^\d{1,15}$/.test(seen) ? Number(seen) : undefined;
  const send = async (event: string, about: Record<string, unknown>, shownAs: Html) =>
    stream.send({ event, data: JSON.stringify({ ...about, html: String(await shownAs) }) });
  const replies = new Replies(clock, (turn, text) => void send('say', { turn }, markdown(text)));
  const onConnection = (connection: { state: string; error?: Error }) => {
    if (connection.state === 'open') stream.send({ event: 'hint', data: 'chat' });
    else
      void send(
        'notice',
        {},
        html`The agent cannot be reached: ${shown(connection.error?.message ?? '')}. The console tries again.`,
      );
  };
  const after = page === undefined ? undefined : String(Math.max(0, page - SEARCHED_EVENTS));
  let isPast = page !== undefined && page > 0;
  try {
    const follow = { conversationId: conversation, signal: stream.closed, onConnection, after };
    for await (const { type, data, id } of backend.agent.there.events(follow)) {
      isPast &&= id === undefined || Number(id) <= page!;
      if (type === 'say') replies.append(data);
      else if (type === 'tool')
        await send(
          'tool',
          { turn: data.turn_id, call: data.call_id, name: data.name, state: data.state },
          toolLine(data),
        );
      else if (type === 'status' && !isPast) await send('status', { turn: data.turn_id }, shown(data.text));
      else {
        const hasEnded = type === 'turn' && data.status !== 'running';
        if (hasEnded && isPast) replies.forget(data.turn_id);
        if (isPast) continue;
        replies.flush();
        if (hasEnded) replies.forget(data.turn_id);
        stream.send({ event: 'hint', data: type === 'gate' ? 'approvals' : 'chat' });
      }
    }
  } catch (thrown) {
    await send('notice', {}, html`The conversation cannot be followed: ${shown(toReveilleError(thrown).message)}`);
  }
}
