/** `POST /chat`: a wake, or a message from a person. */
import { readJson } from '../../kit/http/body.ts';
import { sendOk } from '../../kit/http/envelope.ts';
import type { HttpApp } from '../../kit/http/environment.ts';
import { serve } from '../../kit/http/serve.ts';
import { parseOrThrow } from '../../wire/validate.ts';
import { chatRequestSchema, RAW_WAKE_FIELDS } from '../../wire/wake.ts';
import { acceptChat, type ChatOptions, checkWakeHeaders, userOf } from '../chat.ts';
import { NEO_ROUTES } from './routes.ts';

export function chatRoutes(app: HttpApp, options: ChatOptions): void {
  serve(app, NEO_ROUTES.chat, async (c) => {
    const body = parseOrThrow(chatRequestSchema, await readJson(c, { raw: RAW_WAKE_FIELDS }));
    const header = (name: string) => c.req.header(name);
    checkWakeHeaders(header, body);
    const accepted = await acceptChat(body, options, userOf(header, body));
    return sendOk(c, accepted, accepted.deduped ? 200 : 202);
  });
}
