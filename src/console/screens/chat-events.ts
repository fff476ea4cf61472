/** What the agent says and does in one conversation, on its way to an open page: as text that is shown, never as markup. */
import { html } from 'hono/html';
import type { Clock } from '../../kit/clock/clock.ts';
import type { NeoEvent } from '../../neo/client.ts';
import { conversationIdSchema } from '../../wire/alarm.ts';
import { toReveilleError } from '../../wire/errors.ts';
import type { LiveStream } from '../live.ts';
import { brief, type Html, NOTHING, shown } from '../shown.ts';
import type { RequestContext } from '../request-context.ts';

/** A reply that comes in small pieces is sent so often at most. */
const SAY_EVERY_MS = 80;

/** The reply so far of each turn, and which of them the page has not been given yet. */
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

  say({ turn_id: turn, offset, text }: Extract<NeoEvent, { type: 'say' }>['data']): void {
    const before = this.#texts.get(turn);
    // Of a reply that had begun before anybody looked, the page has the beginning when the turn is over.
    const kept = before === undefined && offset > 0 ? '… ' : (before ?? '').slice(0, offset);
    this.#texts.set(turn, kept + text);
    this.#fresh.add(turn);
    if (this.#isWaiting) return;
    this.#isWaiting = true;
    this.#clock.after(SAY_EVERY_MS, () => this.flush());
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
  const words = state === 'begun' ? 'runs' : is_error ? 'failed' : 'done';
  const detail = state === 'begun' ? input : output;
  return html`<code>${shown(name)}</code> <span class="state ${is_error ? 'failed' : state}">${words}${took}</span>${detail === undefined ? NOTHING : html` <span class="dim">${brief(detail, 160)}</span>`}`;
}

/** So many events before those of the page are looked through for what still runs. */
const LOOKED_THROUGH = 2000;

/**
 * Follows a conversation until the stream is over. Never rejects.
 *
 * @param followed.seen the newest event that the page has been made of; of those before it, the page is given what it
 *   does not show: the tools, and what has been said of a reply that is not whole
 */
export async function followTalk(
  { backend, clock }: RequestContext,
  { conversation, seen }: { conversation: string; seen: string },
  stream: LiveStream,
): Promise<void> {
  if ('missing' in backend.agent || !conversationIdSchema.safeParse(conversation).success) return;
  const page = /^\d{1,15}$/.test(seen) ? Number(seen) : undefined;
  const send = async (event: string, about: Record<string, unknown>, shownAs: Html) =>
    stream.send({ event, data: JSON.stringify({ ...about, html: String(await shownAs) }) });
  const replies = new Replies(clock, (turn, text) => void send('say', { turn }, shown(text)));
  const onConnection = (connection: { state: string; error?: Error }) => {
    if (connection.state === 'open') stream.send({ event: 'hint', data: 'talk' });
    else
      void send(
        'notice',
        {},
        html`The agent is out of reach: ${shown(connection.error?.message ?? '')}. It is tried again.`,
      );
  };
  const after = page === undefined ? undefined : String(Math.max(0, page - LOOKED_THROUGH));
  let isPast = page !== undefined && page > 0;
  try {
    const follow = { conversationId: conversation, signal: stream.closed, onConnection, after };
    for await (const { type, data, id } of backend.agent.there.events(follow)) {
      isPast &&= id === undefined || Number(id) <= page!;
      if (type === 'say') replies.say(data);
      else if (type === 'tool') await send('tool', { turn: data.turn_id, call: data.call_id }, toolLine(data));
      else if (type === 'status' && !isPast) await send('status', { turn: data.turn_id }, shown(data.text));
      else {
        const isOver = type === 'turn' && data.status !== 'running';
        if (isOver && isPast) replies.forget(data.turn_id);
        if (isPast) continue;
        replies.flush();
        if (isOver) replies.forget(data.turn_id);
        stream.send({ event: 'hint', data: type === 'gate' ? 'approvals' : 'talk' });
      }
    }
  } catch (thrown) {
    await send('notice', {}, html`The agent cannot be followed: ${shown(toReveilleError(thrown).message)}`);
  }
}
