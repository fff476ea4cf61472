/** `POST /chat`: a wake, or a message from a person. */
import { readJson } from '../../kit/http/body.ts';
import { sendOk } from '../../kit/http/envelope.ts';
import type { HttpApp } from '../../kit/http/environment.ts';
import { serve } from '../../kit/http/serve.ts';
import { acceptChat, type ChatOptions, userOf, withMarkers } from '../../turns/chat.ts';
import { parseOrThrow } from '../../wire/validate.ts';
import { callerWakeName, chatRequestSchema, RAW_WAKE_FIELDS, withoutEmptyMembers } from '../../wire/wake.ts';
import { NEO_ROUTES } from './routes.ts';

export function chatRoutes(app: HttpApp, options: ChatOptions): void {
  serve(app, NEO_ROUTES.chat, async (c) => {
    const header = (name: string) => c.req.header(name);
    const sent = withoutEmptyMembers(await readJson(c, { raw: RAW_WAKE_FIELDS }));
    const body = parseOrThrow(chatRequestSchema, withMarkers(header, sent));
    const accepted = await acceptChat(body, options, { userId: userOf(header, body), name: callerWakeName(header) });
    return sendOk(c, accepted, accepted.deduped ? 200 : 202);
  });
}
