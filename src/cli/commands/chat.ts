/** `reveille chat`: a conversation with the user's agent, or one question and its answer for scripts and pipes. */
import { text } from 'node:stream/consumers';
import { lastTurns, type NeoClient, type NeoEvent } from '../../agents/neo/client.ts';
import { oneLine } from '../../kit/text/hidden-characters.ts';
import { ReveilleError } from '../../wire/errors.ts';
import type { TurnView } from '../../wire/turn.ts';
import { personClient } from '../access/router.ts';
import { arrivalLine, Screen } from '../chat/conversation.ts';
import { answerInline, gateRemark } from '../chat/gates.ts';
import { answerQuestionInline, questionRemark } from '../chat/questions.ts';
import { talk } from '../chat/session.ts';
import type { CliContext } from '../context.ts';
import { UsageError } from '../flags/usage-error.ts';
import { wrap } from '../screens/columns.ts';
import { replyLines } from '../screens/log-screen.ts';
import { readerOf } from '../screens/reader.ts';

export type ChatFlags = { conversation?: string; last?: boolean; router?: string };

const TURNS_SHOWN = 3;
const NO_MODEL =
  'No language model is configured: the agent only repeats its input. Set NEO_MODEL_BASE_URL, NEO_MODEL and NEO_MODEL_API_KEY for "reveille up" and restart it (see: reveille docs neo).';

/** The conversation to continue; `undefined` for a new one. */
async function conversationOf(client: NeoClient, { conversation, last }: ChatFlags): Promise<string | undefined> {
  if (conversation !== undefined && last) throw new UsageError('--conversation and --last exclude each other');
  if (!last) return conversation;
  const { conversations } = await client.conversations({ limit: 1 });
  const [latest] = conversations;
  if (latest) return latest.id;
  throw new ReveilleError('not_found', 'there is no conversation yet; start one with: reveille chat');
}

/** A remark to show before the first question; wakes the agent. */
async function toKnow(client: NeoClient): Promise<string | undefined> {
  const { model } = await client.tools();
  return model === 'offline' ? NO_MODEL : undefined;
}

/**
 * Wakes the agent and shows remarks before the first question.
 *
 * @param staying whether the user may continue to type when the agent does not start now
 * @returns whether the agent is reachable
 */
async function greet(context: CliContext, client: NeoClient, { staying }: { staying: boolean }): Promise<boolean> {
  const { out } = context;
  out.progress('waking your agent…');
  try {
    const words = await toKnow(client);
    out.progress('');
    if (words !== undefined) sentence(context, words);
    return true;
  } catch (error) {
    out.progress('');
    if (!staying || !(error instanceof ReveilleError) || !error.retryable) throw error;
    sentence(context, `${error.message}. ${DOES_NOT_COME_UP}`);
    return false;
  }
}
const DOES_NOT_COME_UP = 'See "reveille doctor". Your text is kept and sent when you press Enter.';

/** A remark before the first question, wrapped at blanks. */
function sentence(context: CliContext, text: string): void {
  const { width } = readerOf(context);
  const lines = context.out.live ? wrap(oneLine(text), width - 1) : [text];
  for (const line of lines) context.out.remark(context.out.paint('yellow', line));
}

async function showLatest(context: CliContext, client: NeoClient, id: string): Promise<void> {
  const { out } = context;
  const { turns } = await lastTurns(client, id, TURNS_SHOWN);
  const look = readerOf(context);
  for (const turn of turns) {
    out.line(arrivalLine(turn, look));
    for (const line of replyLines(turn.reply ?? turn.error ?? '', look)) out.line(line);
  }
}

export async function chat(given: CliContext, flags: ChatFlags, question: string | undefined): Promise<void> {
  const { router } = flags;
  const context = router === undefined ? given : { ...given, settings: { ...given.settings, REVEILLE_URL: router } };
  const { out, process } = context;
  const isInteractive = question === undefined && process.stdin.isTTY === true;
  if (isInteractive && out.json) throw new UsageError('--json needs a question: reveille chat --json "What is due?"');
  const client = personClient(context);
  if (!isInteractive) {
    const message = question ?? (await text(process.stdin));
    if (message.trim() === '')
      throw new UsageError('the question is missing; for example: reveille chat "What is due today?"');
    const conversationId = await conversationOf(client, flags);
    await greet(context, client, { staying: false });
    const turn = await askOnce(context, { client, message, conversationId });
    const { conversation_id, id: turn_id, status, reply, error, model } = turn;
    const record = { conversation_id, turn_id, status, reply, error, model };
    if (out.json) out.result(record);
    else if (!out.live && reply) process.stdout.write(`${reply}\n`);
    return assertAnswered(turn);
  }
  const conversationId = await conversationOf(client, flags);
  const isThere = await greet(context, client, { staying: true });
  if (isThere && conversationId !== undefined) await showLatest(context, client, conversationId);
  const talked = await talk(context, { client, conversationId, isThere, toKnow: () => toKnow(client) });
  if (talked !== undefined) out.line(out.paint('dim', `continue with: reveille chat --conversation ${talked}`));
}

type Asked = { client: NeoClient; message: string; conversationId: string | undefined };

/**
 * Asks and waits for the end of the turn. On a terminal the answer is streamed, with the running tools. Otherwise the
 * whole answer is written at the end.
 *
 * @throws ReveilleError `unavailable` when the turn ended without an answer
 */
async function askOnce(context: CliContext, { client, message, conversationId }: Asked): Promise<TurnView> {
  const { out, process } = context;
  const ended = new AbortController();
  const look = () => readerOf(context);
  const screen = new Screen((text) => void process.stdout.write(text), look);
  const opened = Promise.withResolvers<void>();
  const early: NeoEvent[] = [];
  let turn: { conversation_id: string; turn_id: string } | undefined;
  let isStopping = false;

  const onInterrupt = () => {
    if (isStopping || turn === undefined) return ended.abort();
    isStopping = true;
    out.remark('stopping the turn; Ctrl-C again leaves, and the agent continues');
    client.cancelTurn(turn.turn_id).catch((error: Error) => out.remark(`not stopped: ${error.message}`));
  };

  async function isOver(event: NeoEvent): Promise<boolean> {
    const { data } = event;
    if (data.conversation_id !== turn!.conversation_id) return false;
    if (event.type === 'gate' && event.data.state === 'asked') {
      if (out.live && process.stdin.isTTY === true)
        screen.line((await answerInline(context, client, event.data)).words);
      else out.remark(gateRemark(event.data));
      return false;
    }
    if (event.type === 'question') {
      if (event.data.state !== 'asked') return false;
      if (out.live && process.stdin.isTTY === true)
        screen.line(await answerQuestionInline(context, client, event.data));
      else out.remark(questionRemark(event.data));
      return false;
    }
    if (!('turn_id' in data) || data.turn_id !== turn!.turn_id) return false;
    if (out.live) screen.show(event);
    return event.type === 'turn' && event.data.status !== 'queued' && event.data.status !== 'running';
  }

  const events = client.events({
    signal: ended.signal,
    onConnection(connection) {
      if (connection.state === 'lost') out.remark(`${connection.error.message}; trying again`);
      opened.resolve();
    },
  });
  const follow = async () => {
    for await (const event of events) {
      if (turn === undefined) early.push(event);
      else if (await isOver(event)) return;
    }
  };
  globalThis.process.on('SIGINT', onInterrupt);
  try {
    // Subscribed before the question is sent, so that no event of its answer is missed.
    const followed = follow().finally(() => opened.resolve());
    followed.catch(() => {});
    await opened.promise;
    turn = await client.chat(
      { message, ...(conversationId === undefined ? {} : { conversation_id: conversationId }) },
      ended.signal,
    );
    let isDone = false;
    for (const event of early) isDone ||= await isOver(event);
    if (!isDone) await followed;
    screen.freshLine();
    const { conversation_id, turn_id } = turn;
    const view = await client.turn(conversation_id, turn_id);
    if (out.live && view.reply && !screen.hasSaid(turn_id)) screen.reply(turn_id, view.reply);
    return view;
  } finally {
    globalThis.process.off('SIGINT', onInterrupt);
    ended.abort();
  }
}

/** @throws ReveilleError `unavailable` for a turn without an answer */
function assertAnswered({ status, error }: TurnView): void {
  if (status === 'done') return;
  throw new ReveilleError('unavailable', `the turn is ${status}${error === undefined ? '' : `: ${error}`}`);
}
