/** The conversation of a tool call. It is never guessed: a wrong session would receive another session's message. */
import { conversationIdSchema } from '../wire/alarm.ts';
import { CONVERSATION_META } from '../wire/manifest.ts';

/** A conversation, and a remark about waking it. */
export type Conversation = { readonly id: string; readonly note?: string | undefined };

/** Codex's client name, and the `_meta` field with the thread of a call. */
const CODEX = /^codex/i;
const CODEX_THREAD_META = 'threadId';

/** The remark when the conversation is unknown. */
export const NEW_CONVERSATION =
  'The conversation of this call is not known: the alarm starts a new conversation. Pass conversation_id to be woken in this one.';

/**
 * The conversation of a call, for an alarm that names none.
 *
 * @param meta the call's `_meta`
 * @param client the client's name in its handshake
 * @param session the open conversation of the client process
 * @returns `undefined` when unknown
 */
export function conversationOf(
  meta: Readonly<Record<string, unknown>>,
  client: string | undefined,
  session: () => Conversation | undefined,
): Conversation | undefined {
  // One process of Codex may serve many threads: only the call names its thread.
  const isCodex = (client !== undefined && CODEX.test(client)) || meta[CODEX_THREAD_META] !== undefined;
  const own = meta[CONVERSATION_META] ?? (isCodex ? meta[CODEX_THREAD_META] : undefined);
  if (own === undefined) return isCodex ? undefined : session();
  const { data } = conversationIdSchema.safeParse(own);
  return data === undefined ? undefined : { id: data };
}
