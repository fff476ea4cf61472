/**
 * A small ntfy server (https://docs.ntfy.sh/publish, version 2.16): publishing as JSON with tokens, its bounds and
 * codes. With sequence ids, a phone shows a later message in the place of an earlier one.
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
  /** Every published message, repetitions included. */
  readonly published: NtfyMessage[];
  /** The messages on a phone: of each sequence id the latest. */
  shown(): NtfyMessage[];
  /** Answers differently, before (`arrived`) or after a message was accepted; `true` when it did. */
  misbehave: ((response: ServerResponse, when: 'arrived' | 'published') => boolean) | undefined;
};

const MESSAGE_BYTES = 4096;
/** Twice that, for the overhead of JSON. */
const BODY_BYTES = 2 * MESSAGE_BYTES;
const TOPIC = /^[-_A-Za-z0-9]{1,64}$/;
const ACTIONS = new Set(['view', 'broadcast', 'http']);

/** The server's reason to refuse a message. */
function objection(
  given: NtfyMessage & { priority?: unknown },
): [http: number, code: number, error: string] | undefined {
  const { topic, message = '', sequence_id: sequence, priority = 3, actions = [], tags = [] } = given;
  if (!TOPIC.test(topic)) return [400, 40009, 'invalid request: topic invalid'];
  if (sequence !== undefined && !TOPIC.test(sequence)) return [400, 40049, 'invalid request: sequence ID invalid'];
  if (![1, 2, 3, 4, 5].includes(priority as number)) return [400, 40007, 'invalid priority parameter'];
  if (!Array.isArray(tags) || tags.some((tag) => typeof tag !== 'string'))
    return [400, 40024, 'invalid request: request body must be valid JSON'];
  const isGood = ({ action, label, url }: (typeof actions)[number]) =>
    ACTIONS.has(action) && label !== '' && (action === 'broadcast' || /^https?:/.test(url));
  if (actions.length > 3 || !actions.every(isGood)) return [400, 40018, 'invalid request: actions invalid'];
  if (Buffer.byteLength(message) > MESSAGE_BYTES)
    return [413, 41301, 'attachment too large, or bandwidth limit reached'];
  return undefined;
}

/** @param token required for publishing; without it publishing is open */
export async function startStandInNtfy(owner: Owner, token?: string): Promise<StandInNtfy> {
  const published: NtfyMessage[] = [];
  const refuse = (response: ServerResponse, http: number, code: number, error: string) =>
    void response.writeHead(http, { 'content-type': 'application/json' }).end(JSON.stringify({ code, http, error }));
  const server = createServer(async (request, response) => {
    if (ntfy.misbehave?.(response, 'arrived')) return undefined;
    if (!['POST', 'PUT'].includes(request.method!) || request.url !== '/')
      return refuse(response, 404, 40401, 'page not found');
    const { authorization } = request.headers;
    if (token !== undefined && authorization === undefined) return refuse(response, 403, 40301, 'forbidden');
    if (token !== undefined && authorization !== `Bearer ${token}`) return refuse(response, 401, 40101, 'unauthorized');
    const body = await text(request);
    if (Buffer.byteLength(body) > BODY_BYTES) return refuse(response, 413, 41303, 'JSON body too large');
    let given: NtfyMessage;
    try {
      given = JSON.parse(body) as NtfyMessage;
    } catch {
      return refuse(response, 400, 40024, 'invalid request: request body must be valid JSON');
    }
    const refused = objection(given);
    if (refused) return refuse(response, ...refused);
    const id = randomBytes(6).toString('hex');
    const message = { ...given, message: given.message || 'triggered', id, sequence_id: given.sequence_id ?? id };
    published.push(message);
    if (ntfy.misbehave?.(response, 'published')) return undefined;
    const time = Math.floor(Date.now() / 1000);
    return void response
      .setHeader('content-type', 'application/json')
      .end(JSON.stringify({ ...message, time, expires: time + 43_200, event: 'message' }));
  });
  const ntfy: StandInNtfy = {
    url: await listening(owner, server),
    published,
    shown: () => [...new Map(published.map((message) => [message.sequence_id, message])).values()],
    misbehave: undefined,
  };
  return ntfy;
}
