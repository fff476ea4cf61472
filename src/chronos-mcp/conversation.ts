/** In which conversation a tool call is made. Nothing is guessed: a wrong session would be woken with words not its own. */
import { conversationIdSchema } from '../wire/alarm.ts';
import { CONVERSATION_META } from '../wire/manifest.ts';

/** A conversation, and what there is to say of waking it. */
export type Conversation = { readonly id: string; readonly note?: string | undefined };

/** How Codex calls itself, and the member of `_meta` with which it names the thread of a call. */
const CODEX = /^codex/i;
const CODEX_THREAD_META = 'threadId';

/** What an answer says when no conversation is known. */
export const NEW_CONVERSATION =
  'The conversation of this call is not known: the alarm starts a new conversation. Pass conversation_id to be woken in this one.';

/**
 * The conversation of a call, for an alarm that names none.
 *
 * @param meta the call's `_meta`
 * @param client the name by which the client has introduced itself
 * @param session the conversation that the client process has open
 * @returns `undefined` where it is not known
 */
export function conversationOf(
  meta: Readonly<Record<string, unknown>>,
  client: string | undefined,
  session: () => Conversation | undefined,
): Conversation | undefined {
  // One process of Codex may serve many threads: each call names its own, and nothing else does.
  const isCodex = (client !== undefined && CODEX.test(client)) || meta[CODEX_THREAD_META] !== undefined;
  const own = meta[CONVERSATION_META] ?? (isCodex ? meta[CODEX_THREAD_META] : undefined);
  if (own === undefined) return isCodex ? undefined : session();
  const { data } = conversationIdSchema.safeParse(own);
  return data === undefined ? undefined : { id: data };
}
