/**
 * A small ntfy server (https://docs.ntfy.sh/publish, version 2.16): publishing as JSON with tokens, its bounds, and
 * sequence ids, by which a phone shows a later message in the place of an earlier one.
 */
import { randomBytes } from 'node:crypto';
import { createServer, type ServerResponse } from 'node:http';
import { text } from 'node:stream/consumers';
import { listening, type Owner } from '../temporary.ts';

export type NtfyMessage = {
  readonly id: string;
  readonly topic: string;
  readonly sequence_id: string;
  readonly title: string;
  readonly message: string;
  readonly tags: readonly string[];
  readonly actions?: readonly { readonly action: string; readonly label: string; readonly url: string }[];
};

export type StandInNtfy = {
  readonly url: string;
  /** Every message that was published, repetitions among them. */
  readonly published: NtfyMessage[];
  /** What a phone shows: of each sequence id the latest. */
  shown(): NtfyMessage[];
  /** Answers in another way, before (`arrived`) or after a message was taken in; `true` when it did. */
  misbehave: ((response: ServerResponse, when: 'arrived' | 'published') => boolean) | undefined;
};

const MESSAGE_BYTES = 4096;
const TOPIC = /^[-_A-Za-z0-9]{1,64}$/;

/** @param token what publishing needs; anybody may publish without it */
export async function startStandInNtfy(owner: Owner, token?: string): Promise<StandInNtfy> {
  const published: NtfyMessage[] = [];
  const refuse = (response: ServerResponse, http: number, code: number, error: string) =>
    void response.writeHead(http, { 'content-type': 'application/json' }).end(JSON.stringify({ code, http, error }));
  const server = createServer(async (request, response) => {
    if (ntfy.misbehave?.(response, 'arrived')) return undefined;
    if (request.method !== 'POST' || request.url !== '/') return refuse(response, 404, 40401, 'page not found');
    if (token !== undefined && request.headers.authorization !== `Bearer ${token}`)
      return refuse(response, 401, 40101, 'unauthorized');
    const given = JSON.parse(await text(request)) as NtfyMessage;
    if (!TOPIC.test(given.topic)) return refuse(response, 400, 40009, 'invalid topic');
    if (Buffer.byteLength(given.message) > MESSAGE_BYTES)
      return refuse(response, 413, 41301, 'attachment too large, or bandwidth limit reached');
    if ((given.actions?.length ?? 0) > 3) return refuse(response, 400, 40018, 'invalid request: actions invalid');
    const message = { ...given, id: randomBytes(6).toString('hex'), sequence_id: given.sequence_id };
    published.push(message);
    if (ntfy.misbehave?.(response, 'published')) return undefined;
    return void response
      .setHeader('content-type', 'application/json')
      .end(JSON.stringify({ ...message, event: 'message' }));
  });
  const ntfy: StandInNtfy = {
    url: await listening(owner, server),
    published,
    shown: () => [...new Map(published.map((message) => [message.sequence_id, message])).values()],
    misbehave: undefined,
  };
  return ntfy;
}
