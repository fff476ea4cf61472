/** Talk: conversations with the agent, what it says and does as it comes, and questions where they come up. */
import { html } from 'hono/html';
import { LATE_WORDS } from '../../kit/clock/duration.ts';
import { lastTurns } from '../../neo/client.ts';
import { conversationIdSchema } from '../../wire/alarm.ts';
import { ReveilleError, toReveilleError } from '../../wire/errors.ts';
import type { TurnView } from '../../wire/turn.ts';
import { csrfField, empty, missing, type Page } from '../page.ts';
import { block, brief, type Html, NOTHING, shown } from '../shown.ts';
import { type Here, time } from '../times.ts';
import { field, type Redirect, there, type RequestContext, withQuery } from '../request-context.ts';
import { waitingOf } from '../waiting-questions.ts';
import { passkeysOf, questionBlock } from './question.ts';

/** What is shown of a long conversation: its end. */
const TURNS_SHOWN = 100;

const sayForm = (
  action: string,
  csrf: string,
  typed = '',
): Html => html`<form method="post" action="${action}" class="say" id="say" data-say>
${csrfField(csrf)}<label for="message" class="sr">What you say</label><textarea id="message" name="message" rows="2" required placeholder="Say something" data-key="/">\n${typed}</textarea><button class="primary">Send</button></form>`;

/** `talk`: the conversations, and a place to begin one. */
export async function talkScreen(context: RequestContext): Promise<Page> {
  const { backend, here, session, query } = context;
  if ('missing' in backend.agent)
    return {
      screen: 'talk',
      title: 'Talk',
      main: html`<h1>Talk</h1>${missing('Nobody to talk to from here', backend.agent.missing)}`,
    };
  const cursor = query.get('cursor') ?? undefined;
  const { conversations, next_cursor: next } = await backend.agent.there.conversations({ limit: 30, cursor });
  const rows = conversations.map(
    (one) =>
      html`<li class="row" id="conversation-${one.id}" data-row><a class="name" href="talk/${encodeURIComponent(one.id)}" data-open dir="auto">${brief(one.last_message, 100)}</a><span class="when">${time(one.last_activity_at, here)}</span><span class="dim">${one.turn_count === 1 ? '1 turn' : `${one.turn_count} turns`} · ${shown(one.id)}</span></li>`,
  );
  const list =
    rows.length === 0
      ? empty(
          'Nothing was said yet',
          html`Say something above; your agent wakes for it. Its alarms begin conversations, too.`,
        )
      : html`<ul class="rows talks" data-list>${rows}</ul>`;
  const more =
    next === undefined
      ? NOTHING
      : html`<p class="pages"><a class="button" rel="next" href="${withQuery('talk', query, { cursor: next })}">Earlier ones</a></p>`;
  return {
    screen: 'talk',
    title: 'Talk',
    looksAt: ['talk'],
    main: html`<h1>Talk</h1>${sayForm('talk', session.csrf)}<h2>Conversations</h2>${list}${more}`,
  };
}

const WAKES = 'woken by an alarm';
const STATUSES = {
  queued: 'waits for its turn',
  running: 'thinks',
  done: '',
  failed: 'failed',
  interrupted: 'was interrupted',
} as const;

function whose({ origin, set_by, label, late_because }: TurnView): Html {
  if (origin === 'user') return html`you`;
  const by = set_by === undefined ? NOTHING : html`, in the words of ${shown(set_by)}`;
  return html`${WAKES}${label ? html` (${shown(label)})` : NOTHING}${by}${late_because ? html`, late: ${LATE_WORDS[late_because]}` : NOTHING}`;
}

function turnBlock(turn: TurnView, csrf: string, here: Here): Html {
  const { id, status, reply, error, conversation_id } = turn;
  const isOpen = status === 'queued' || status === 'running';
  const state = turn.retry_at === undefined ? STATUSES[status] : html`failed, tries again ${time(turn.retry_at, here)}`;
  const stop = isOpen
    ? html`<form method="post" action="talk/${encodeURIComponent(conversation_id)}/stop" class="inline" id="stop-${id}">${csrfField(csrf)}<input type="hidden" name="turn" value="${id}"><button data-key="s">Stop</button></form>`
    : NOTHING;
  return html`<li class="turn" id="turn-${id}" data-turn="${id}">
<div class="said ${turn.origin === 'user' ? 'person' : 'alarm'}"><p class="who">${whose(turn)} <span class="dim">${time(turn.created_at, here)}</span></p>${block(turn.message)}</div>
<ul class="tools" data-tools></ul>
<div class="said agent"><p class="who">the agent${turn.model === undefined ? NOTHING : html` <span class="dim">${shown(turn.model)}</span>`} <span class="state ${status}" data-state>${state}</span> ${stop}</p><div class="words" dir="auto" data-reply>${shown(reply ?? '')}</div>${error === undefined ? NOTHING : html`<p class="trouble">${shown(error)}</p>`}</div>
</li>`;
}

/** `talk/{id}`: one conversation. */
export async function conversationScreen(context: RequestContext): Promise<Page> {
  const { backend, here, session, params, reads } = context;
  const { id = '' } = params;
  if (!conversationIdSchema.safeParse(id).success)
    throw new ReveilleError('not_found', 'there is no such conversation');
  const agent = there(backend.agent);
  const talk = await lastTurns(agent, id, TURNS_SHOWN).catch((thrown: unknown) => {
    if (toReveilleError(thrown).code === 'not_found') return { turns: [], count: 0, lastEventId: undefined };
    throw thrown;
  });
  const waiting = await waitingOf(backend, reads)
    .look()
    .catch(() => []);
  const passkeys = await passkeysOf(context);
  const questions = waiting
    .filter(({ intent }) => intent.conversation_id === id)
    .map((question) => questionBlock(question, context, passkeys, `talk/${id}`));
  const earlier = talk.count - talk.turns.length;
  const main = html`<p class="back"><a href="talk">All conversations</a></p><h1 class="quiet">${talk.turns[0] === undefined ? 'A new conversation' : brief(talk.turns.at(-1)!.message, 60)}</h1>
${earlier > 0 ? html`<p class="dim">${earlier} earlier turns are not shown here.</p>` : NOTHING}
<ol class="turns" data-talk="${id}"${talk.lastEventId === undefined ? NOTHING : html` data-seen="${talk.lastEventId}"`} aria-live="polite">${talk.turns.map((turn) => turnBlock(turn, session.csrf, here))}</ol>
${questions}
${sayForm(`talk/${encodeURIComponent(id)}`, session.csrf)}`;
  return { screen: 'talk', title: 'Talk', main, looksAt: ['approvals', 'talk'] };
}

/** `talk` and `talk/{id}`, sent. */
export async function sayScreen(context: RequestContext): Promise<Page | Redirect> {
  const { backend, form, params, session } = context;
  const message = form.get('message')?.replace(/\r\n/g, '\n').trim() ?? '';
  const { id } = params;
  const back = id === undefined ? 'talk' : `talk/${encodeURIComponent(id)}`;
  if (message === '') return { to: back };
  try {
    const said = { message, ...(id === undefined ? {} : { conversation_id: id }) };
    const { conversation_id } = await there(backend.agent).chat(said);
    return { to: `talk/${encodeURIComponent(conversation_id)}` };
  } catch (thrown) {
    // What was typed is not lost.
    const { message: why, status } = toReveilleError(thrown);
    const main = html`<h1>Talk</h1><p class="notice bad" role="alert">Your agent could not be told: ${shown(why)}</p><p>Your words are kept here; send them again when that is mended.</p>${sayForm(back, session.csrf, message)}`;
    return { screen: 'talk', title: 'Talk', main, status };
  }
}

/** `talk/{id}/stop`, sent. */
export async function stopScreen(context: RequestContext): Promise<Redirect> {
  const { backend, params, session } = context;
  const turn = field(context, 'turn');
  if (turn === undefined) throw new ReveilleError('invalid_request', 'turn must name what is to be stopped');
  const { status } = await there(backend.agent).cancelTurn(turn);
  session.messages.success(status === 'done' ? 'It had finished already.' : 'Stopped.');
  return { to: `talk/${encodeURIComponent(params.id!)}` };
}
