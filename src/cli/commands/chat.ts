/** `reveille chat`: a conversation with the user's agent. */
import { text } from 'node:stream/consumers';
import { oneLine } from '../../kit/text/hidden-characters.ts';
import { lastTurns, type NeoClient } from '../../neo/client.ts';
import { ReveilleError } from '../../wire/errors.ts';
import { personClient } from '../access/person.ts';
import { arrivalLine } from '../chat/conversation.ts';
import { askOnce, assertAnswered } from '../chat/once.ts';
import { talk } from '../chat/session.ts';
import type { CliContext } from '../context.ts';
import { UsageError } from '../flags/usage-error.ts';
import { wrap } from '../screens/columns.ts';
import { replyLines } from '../screens/log-screen.ts';
import { lookOf } from '../screens/look.ts';

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
  const { width } = lookOf(context);
  const lines = context.out.live ? wrap(oneLine(text), width - 1) : [text];
  for (const line of lines) context.out.remark(context.out.paint('yellow', line));
}

async function showLatest(context: CliContext, client: NeoClient, id: string): Promise<void> {
  const { out } = context;
  const { turns } = await lastTurns(client, id, TURNS_SHOWN);
  const look = lookOf(context);
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
