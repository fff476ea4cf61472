/** Chat: the conversations of a user with the agent, with replies and tool calls as they happen. */
import { html, raw } from 'hono/html';
import { lastTurns } from '../../agents/neo/client.ts';
import { LATE_REASON_TEXT } from '../../kit/clock/duration.ts';
import { conversationIdSchema } from '../../wire/alarm.ts';
import { ReveilleError, toReveilleError } from '../../wire/errors.ts';
import type { ConversationSummary, TurnView } from '../../wire/turn.ts';
import { WAITS_FOR_ANSWER } from '../../wire/turn-report.ts';
import { usageText } from '../../wire/usage.ts';
import { reportsNothing } from '../../wire/wake.ts';
import { markdown } from '../markdown.ts';
import { csrfField, icon, missing, type Page, pageHead, SCREENS } from '../page.ts';
import { field, type Redirect, type RequestContext, there } from '../request-context.ts';
import { brief, type Html, NOTHING, shown } from '../shown.ts';
import { type LocalContext, relative, time } from '../times.ts';
import { waitingOf } from '../waiting-questions.ts';
import { passkeysOf, questionBlock } from './question.ts';
import { serverQuestion } from './server-question.ts';

/** The last turns of a long conversation. */
const MAX_TURNS = 100;
const MAX_CONVERSATIONS = 30;
const ALARM_ICON = SCREENS[1].icon;

const pathOf = (id: string) => `chat/${encodeURIComponent(id)}`;

const messageForm = (
  action: string,
  csrf: string,
  typed = '',
): Html => html`<form method="post" action="${action}" class="say" id="say" data-say>
${csrfField(csrf)}<label for="message" class="sr">Message</label><textarea id="message" name="message" rows="1" required placeholder="Message your agent" data-key="/">\n${typed}</textarea><button class="primary">Send</button></form>`;

type Conversations = { readonly list: readonly ConversationSummary[]; readonly next: string | undefined };

async function readConversations({ backend, query }: RequestContext): Promise<Conversations> {
  const cursor = query.get('cursor') ?? undefined;
  const page = await there(backend.agent).conversations({ limit: MAX_CONVERSATIONS, cursor });
  return { list: page.conversations, next: page.next_cursor };
}

/** The list of conversations, beside the open one. */
function side({ list, next }: Conversations, { here }: RequestContext, chosen: string | undefined): Html {
  const rows = list.map(
    ({ id, last_message, last_activity_at }) =>
      html`<li id="conversation-${id}" data-row><a href="${pathOf(id)}" data-open${id === chosen ? raw(' aria-current="true"') : ''}><span class="name" dir="auto">${brief(last_message, 80)}</span><span class="when">${relative(Date.parse(last_activity_at), here)}</span></a></li>`,
  );
  const more =
    next === undefined
      ? NOTHING
      : html`<p class="pages"><a class="button" rel="next" href="chat?cursor=${encodeURIComponent(next)}">Older</a></p>`;
  return html`<section class="side" aria-label="Conversations"><div class="side-head">${chosen === undefined ? html`<h1>Chat</h1>` : html`<h2>Chat</h2>`}<a class="button" href="chat" data-key="n">New chat</a></div>
${rows.length === 0 ? html`<p class="conversations dim">No conversations yet.</p>` : html`<ul class="conversations" data-list tabindex="0" aria-label="Conversations">${rows}</ul>`}${more}</section>`;
}

/** `chat`: the conversations, and the input of a new one. */
export async function chatScreen(context: RequestContext): Promise<Page> {
  const { backend, session } = context;
  const about = { screen: 'chat', title: 'Chat' } as const;
  if ('missing' in backend.agent)
    return { ...about, main: html`${pageHead('Chat')}${missing('Chat is not available', backend.agent.missing)}` };
  const conversations = await readConversations(context);
  const main = html`<div class="chat overview">${side(conversations, context, undefined)}
<section class="thread" aria-label="New conversation"><div class="thread-head"><h2>New conversation</h2></div>
<div class="scroll"><div class="empty"><h3>Ask your agent</h3><p>It can set alarms, read its memory and use its tools. Questions about actions that cannot be undone appear here and under Approvals.</p></div></div>
${messageForm('chat', session.csrf)}</section></div>`;
  return { ...about, looksAt: ['chat'], layout: 'fixed', main };
}

const STATUSES = {
  queued: 'queued',
  running: 'working',
  done: '',
  failed: 'failed',
  interrupted: 'interrupted',
} as const;

/** Whose message began the turn. */
function sender({ origin, set_by, sent_by, label, late_because }: TurnView): Html {
  if (origin === 'user') return NOTHING;
  if (sent_by !== undefined) return html`<strong>Another agent</strong><span>${shown(sent_by)}</span>`;
  const name = label ? html`<strong>${shown(label)}</strong>` : html`<strong>Alarm</strong>`;
  const by = set_by === undefined ? NOTHING : html`<span>set by ${shown(set_by)}</span>`;
  const late = late_because ? html`<span>late: ${LATE_REASON_TEXT[late_because]}</span>` : NOTHING;
  return html`${icon(ALARM_ICON)}${name}${by}${late}`;
}

/** A reply without a notification is shown dimmed. */
export const replyText = (reply: string | undefined): Html =>
  reportsNothing(reply) ? html`<p class="dim">Nothing to report</p>` : markdown(reply ?? '');

function turnBlock(turn: TurnView, csrf: string, here: LocalContext): Html {
  const { id, status, reply, error, conversation_id } = turn;
  const isOpen = status === 'queued' || status === 'running';
  const used = usageText(turn.usage);
  const state =
    turn.retry_at === undefined
      ? STATUSES[status]
      : error?.startsWith(WAITS_FOR_ANSWER)
        ? html`waits for your answer until ${time(turn.retry_at, here)}`
        : html`failed, next attempt ${time(turn.retry_at, here)}`;
  const stop = isOpen
    ? html`<form method="post" action="${pathOf(conversation_id)}/stop" class="inline" id="stop-${id}">${csrfField(csrf)}<input type="hidden" name="turn" value="${id}"><button data-key="s">Stop</button></form>`
    : NOTHING;
  return html`<li class="turn" id="turn-${id}" data-turn="${id}">
<div class="said ${turn.origin === 'user' ? 'person' : 'alarm'}"><p class="meta">${sender(turn)}${time(turn.created_at, here)}</p><div class="bubble" dir="auto">${shown(turn.message)}</div></div>
<div class="said agent"><p class="meta"><strong>Agent</strong>${turn.model === undefined ? NOTHING : html`<span>${shown(turn.model)}</span>`}${used === undefined ? NOTHING : html`<span>${used}</span>`}<span class="state ${status}" data-state>${state}</span>${stop}</p>
<details class="tools" data-tools-of="${id}" hidden><summary>Tools</summary><ul data-tools></ul></details>
<div class="reply" dir="auto" data-reply>${replyText(reply)}</div>${error === undefined ? NOTHING : html`<p class="trouble">${shown(error)}</p>`}</div>
</li>`;
}

/** `chat/{id}`: one conversation. */
export async function conversationScreen(context: RequestContext): Promise<Page> {
  const { backend, here, session, params, reads } = context;
  const { id = '' } = params;
  if (!conversationIdSchema.safeParse(id).success)
    throw new ReveilleError('not_found', 'there is no conversation with this id');
  const agent = there(backend.agent);
  const [conversations, chat, waiting, passkeys, asked] = await Promise.all([
    readConversations(context),
    lastTurns(agent, id, MAX_TURNS).catch((thrown: unknown) => {
      if (toReveilleError(thrown).code === 'not_found') return { turns: [], count: 0, lastEventId: undefined };
      throw thrown;
    }),
    waitingOf(backend, reads).catch(() => []),
    passkeysOf(context),
    agent.questions(id).catch(() => []),
  ]);
  const questions = waiting
    .filter(({ intent }) => intent.conversation_id === id)
    .map((question) => questionBlock(question, context, passkeys, `chat/${id}`));
  const ofServers = asked.map((question) => serverQuestion(question, context, `${pathOf(id)}/question`));
  const earlier = chat.count - chat.turns.length;
  const seen = chat.lastEventId === undefined ? NOTHING : html` data-seen="${chat.lastEventId}"`;
  const main = html`<div class="chat">${side(conversations, context, id)}
<section class="thread" aria-label="Conversation"><div class="thread-head"><p class="back"><a href="chat">Chats</a></p><h1 dir="auto">${chat.turns[0] === undefined ? 'New conversation' : brief(chat.turns.at(-1)!.message, 80)}</h1></div>
<div class="scroll" tabindex="0" role="group" aria-label="Messages"><div>${earlier > 0 ? html`<p class="dim">${earlier} earlier turns are not shown.</p>` : NOTHING}
<ol class="turns" data-conversation="${id}"${seen} aria-live="polite">${chat.turns.map((turn) => turnBlock(turn, session.csrf, here))}</ol>
${questions}${ofServers}</div></div>
${messageForm(pathOf(id), session.csrf)}</section></div>`;
  return { screen: 'chat', title: 'Chat', main, layout: 'fixed', looksAt: ['approvals', 'chat'] };
}

/** `POST chat` and `POST chat/{id}`. */
export async function sendMessage(context: RequestContext): Promise<Page | Redirect> {
  const { backend, form, params, session } = context;
  const message = form.get('message')?.replace(/\r\n/g, '\n').trim() ?? '';
  const { id } = params;
  const back = id === undefined ? 'chat' : pathOf(id);
  if (message === '') return { to: back };
  try {
    const request = { message, ...(id === undefined ? {} : { conversation_id: id }) };
    const { conversation_id } = await there(backend.agent).chat(request);
    return { to: pathOf(conversation_id) };
  } catch (thrown) {
    // The page returns the typed message.
    const { message: why, status } = toReveilleError(thrown);
    const main = html`${pageHead('Chat')}<p class="notice bad" role="alert">The message was not sent: ${shown(why)}</p><p>Your text is kept below. Send it again when the problem is solved.</p>${messageForm(back, session.csrf, message)}`;
    return { screen: 'chat', title: 'Chat', main, status };
  }
}

/** `POST chat/{id}/stop`. */
export async function stopTurn(context: RequestContext): Promise<Redirect> {
  const { backend, params, session } = context;
  const turn = field(context, 'turn');
  if (turn === undefined) throw new ReveilleError('invalid_request', 'turn must be the id of the turn to stop');
  const { status } = await there(backend.agent).cancelTurn(turn);
  session.messages.success(status === 'done' ? 'The turn had already finished.' : 'Stopped.');
  return { to: pathOf(params.id!) };
}
