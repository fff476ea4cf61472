/** HTTP channels: ntfy, signed webhooks, and the push services of browsers. */
import { hash } from 'node:crypto';
import { isIP } from 'node:net';
import { z } from 'zod';
import { hostOf } from '../../kit/http/guarded-lookup.ts';
import { type NoticePost, postNotice, signedHeaders } from '../../kit/outbox/notice-post.ts';
import type { Delivery } from '../../kit/outbox/outbox.ts';
import { encodeJson } from '../../wire/json.ts';
import { formatInstant } from '../../wire/rfc3339.ts';
import { type ChannelKind, type ChannelTools, cut, type Message } from './channel.ts';

const address = z.url({ protocol: /^https?$/, error: 'must be an http:// or https:// address' }).refine((text) => {
  const { username, password } = new URL(text);
  return username === '' && password === '';
}, 'must be an address without a user name or password');
const allowPrivate = z.boolean().optional();
const headerText = z.string().regex(/^[\x21-\x7e]+$/, 'must be printable ASCII without spaces');

type Addressed = { readonly allow_private?: boolean | undefined };

const refusalOf = (url: string, { allow_private }: Addressed, { http }: Pick<ChannelTools, 'http'>) =>
  http.refusalOf(new URL(url), allow_private === true);

function post(notice: NoticePost, { allow_private }: Addressed, tools: ChannelTools): Promise<Delivery> {
  const { http, clock, signal } = tools;
  // A number needs no lookup.
  const refusal = isIP(hostOf(notice.url)) === 0 ? undefined : http.refusalOf(notice.url, allow_private === true);
  if (refusal !== undefined) return Promise.resolve({ result: 'later', slow: true, why: refusal });
  return postNotice(notice, { transport: http.dispatcher(allow_private === true), clock, signal });
}

const isUrgent = ({ kinds }: Message) => kinds.some((kind) => kind === 'approvals' || kind === 'failures');

/** JSON escapes some characters with two or six: the text is shortened until the whole body fits. */
function fitted(write: (room: number) => string, room: number, most: number): string {
  for (let left = room; ; left = Math.floor(left / 2)) {
    const written = write(left);
    if (left === 0 || Buffer.byteLength(written) <= most) return written;
  }
}

const ntfySpec = z.strictObject({
  server: address.default('https://ntfy.sh'),
  topic: z.string().regex(/^[-_A-Za-z0-9]{1,64}$/, 'must be 1 to 64 of A-Z a-z 0-9 _ -'),
  token: headerText.optional(),
  allow_private: allowPrivate,
});

/** A longer message becomes an attachment, and a longer body is rejected (8,192 bytes). */
const NTFY_MESSAGE_BYTES = 3900;
const NTFY_BODY_BYTES = 8000;
const NTFY_TITLE_BYTES = 240;
const NTFY_MOST_BUTTONS = 3;
const NTFY_HIGH = 4;
const NTFY_DEFAULT = 3;

/**
 * ntfy (https://docs.ntfy.sh/publish), published as JSON. A repetition has the sequence id of the first one, so that a
 * server from 2.16 on replaces it.
 */
export const ntfy: ChannelKind<z.output<typeof ntfySpec>> = {
  spec: ntfySpec,
  place: ({ server, topic }) => `${server}/${topic}`,
  refusal: (spec, tools) => refusalOf(spec.server, spec, tools),
  tell(spec, message, tools) {
    const actions = message.links.slice(0, NTFY_MOST_BUTTONS).map(({ label, url }) => ({ action: 'view', label, url }));
    const bodyOf = (room: number) =>
      encodeJson({
        topic: spec.topic,
        title: cut(message.title, NTFY_TITLE_BYTES),
        message: cut(message.text === '' ? message.title : message.text, room),
        priority: isUrgent(message) ? NTFY_HIGH : NTFY_DEFAULT,
        tags: [...message.kinds],
        sequence_id: message.id,
        ...(actions.length === 0 ? {} : { actions }),
      });
    const body = fitted(bodyOf, NTFY_MESSAGE_BYTES, NTFY_BODY_BYTES);
    const { server, token } = spec;
    const headers = { 'content-type': 'application/json', ...(token && { authorization: `Bearer ${token}` }) };
    const notice = { who: 'ntfy', url: new URL(server), headers, body, gone: [], secrets: token ? [token] : [] };
    return post(notice, spec, tools);
  },
};

const webhookSpec = z.strictObject({
  url: address,
  secret: z.string().min(16, 'must have at least 16 characters'),
  allow_private: allowPrivate,
});

const WEBHOOK_TEXT_BYTES = 16 * 1024;
const WEBHOOK_TYPE = 'reveille.notification';

/** Any address, signed by Standard Webhooks; `webhook-id` is the same for every attempt. */
export const webhook: ChannelKind<z.output<typeof webhookSpec>> = {
  spec: webhookSpec,
  // The path of a webhook is often its secret.
  place: ({ url }) => new URL(url).origin,
  refusal: (spec, tools) => refusalOf(spec.url, spec, tools),
  tell(spec, message, tools) {
    const { id, links } = message;
    const body = webhookBody(message);
    const headers = { ...signedHeaders(spec.secret, { id, body }, tools.clock), 'content-type': 'application/json' };
    const secrets = [spec.secret, ...links.map(({ url }) => url)];
    return post({ who: 'the webhook', url: new URL(spec.url), headers, body, secrets }, spec, tools);
  },
};

/** The body for webhooks and programs: one JSON object. */
export function webhookBody({ id, kinds, at, title, text, about, links }: Message): string {
  const data = { id, kinds, title, text: cut(text, WEBHOOK_TEXT_BYTES), ...about, links };
  return encodeJson({ type: WEBHOOK_TYPE, timestamp: formatInstant(at), data });
}

const base64url = (bytes: number) =>
  z
    .string()
    .refine(
      (text) => Buffer.from(text, 'base64url').length === bytes,
      `must be ${bytes} bytes in base64url, as PushSubscription.toJSON() returns it`,
    );

const webpushSpec = z.strictObject({
  /** The result of `PushSubscription.toJSON()` (W3C Push API). */
  endpoint: address,
  keys: z.strictObject({ p256dh: base64url(65), auth: base64url(16) }),
  expirationTime: z.number().nullable().optional(),
  allow_private: allowPrivate,
});

/** RFC 8030: a push service accepts 4096 bytes, of which the encryption needs 103. */
const PUSH_BYTES = 3900;
const PUSH_TITLE_BYTES = 240;
const PUSH_TTL_SECONDS = 24 * 3600;
/** The subscription has ended (RFC 8030 §7.3). */
const PUSH_GONE = [404, 410];

function pushPayload(message: Message): string {
  const { id, kinds, at, about } = message;
  const title = cut(message.title, PUSH_TITLE_BYTES);
  const payload = (text: string, links: Message['links']) =>
    encodeJson({ id, kinds, at: formatInstant(at), title, text, ...about, links });
  const links = Buffer.byteLength(payload('', message.links)) < PUSH_BYTES - 500 ? message.links : [];
  const room = PUSH_BYTES - Buffer.byteLength(payload('', links));
  return fitted((bytes) => payload(cut(message.text, bytes), links), room, PUSH_BYTES);
}

/** A browser, through its push service: encrypted for it alone (RFC 8291), signed by our VAPID key (RFC 8292). */
export const webPush: ChannelKind<z.output<typeof webpushSpec>> = {
  spec: webpushSpec,
  place: ({ endpoint }) => new URL(endpoint).origin,
  refusal: (spec, tools) => refusalOf(spec.endpoint, spec, tools),
  async tell(spec, message, tools) {
    // Rarely needed, and slow to load.
    const { default: webpush } = await import('web-push');
    try {
      const { endpoint, headers, body } = webpush.generateRequestDetails(
        { endpoint: spec.endpoint, keys: spec.keys },
        pushPayload(message),
        {
          vapidDetails: tools.vapid,
          TTL: PUSH_TTL_SECONDS,
          urgency: isUrgent(message) ? 'high' : 'normal',
          contentEncoding: 'aes128gcm',
          // A repetition replaces the first one at the push service.
          topic: hash('sha256', message.id, 'base64url').slice(0, 32),
        },
      );
      const { 'Content-Length': _, ...others } = headers as Record<string, string | number>;
      const sent = Object.fromEntries(Object.entries(others).map(([name, value]) => [name, String(value)]));
      const notice = { who: 'the push service', url: new URL(endpoint), headers: sent, body: new Uint8Array(body!) };
      return await post({ ...notice, gone: PUSH_GONE }, spec, tools);
    } catch (thrown) {
      const why = thrown instanceof Error ? thrown.message : String(thrown);
      return { result: 'drop', why: `the subscription cannot be written to: ${why}` };
    }
  },
};
