/** Webhooks: the verification of the sender, and the event in a request. Pure but for hashing. */
import { createHash, createHmac, randomBytes, timingSafeEqual } from 'node:crypto';
import { z } from 'zod';
import { verifyWebhook, WEBHOOK_HEADERS } from '../../kit/identity/webhook-signature.ts';
import { jsonForTerminal } from '../../kit/text/hidden-characters.ts';
import type { AlarmEvent, HookScheme } from '../../wire/conditions.ts';
import { ReveilleError } from '../../wire/errors.ts';
import { refuseDeepNesting } from '../../wire/json.ts';
import { hasValue } from '../../wire/json-pointer.ts';
import { CURSOR_CHARACTERS, eventData, mcpEvent, mcpGap } from '../../wire/look.ts';
import type { Alarm } from '../alarm/alarm.ts';
import {
  type HookName,
  hookSchemeOf,
  hookSecretOf,
  hookTokenOf,
  TIMELESS_EVENT,
  UNNAMED_EVENT,
} from '../alarm/hook.ts';
import { optionsOf } from '../alarm/options.ts';

/** A request at an address. Names of headers are in lower case. */
export type HookRequest = {
  readonly headers: Readonly<Record<string, string | undefined>>;
  readonly body: Buffer;
  readonly nowMs: number;
};

const GITHUB = { signature: 'x-hub-signature-256', event: 'x-github-event', delivery: 'x-github-delivery' } as const;

function isEqual(one: string, other: string): boolean {
  const [given, expected] = [Buffer.from(one), Buffer.from(other)];
  return given.length === expected.length && timingSafeEqual(given, expected);
}

/** Whether the request comes from a sender that knows the alarm's secret, now. */
export function isVerified(
  alarm: Pick<Alarm, 'kind' | 'options'>,
  { token }: HookName,
  { headers, body, nowMs }: HookRequest,
): boolean {
  const secret = hookSecretOf(alarm);
  if (secret === undefined) return false;
  switch (hookSchemeOf(alarm)) {
    case 'standard':
      return verifyWebhook({ headers, body, secrets: [secret], nowMs }).ok;
    case 'github': {
      const mac = createHmac('sha256', secret).update(body).digest('hex');
      return isEqual(headers[GITHUB.signature] ?? '', `sha256=${mac}`);
    }
    case 'path':
      return isEqual(token ?? '', hookTokenOf(secret));
    case undefined:
      return false;
  }
}

const digestOf = (text: string) => createHash('sha256').update(text).digest('hex').slice(0, 40);

/** Ids from outside are hashed: they may have any length and any characters. */
function idOf(scheme: HookScheme, { headers }: HookRequest): string {
  // GitHub's signature covers the body alone, so only the signature identifies what was signed.
  const given =
    scheme === 'standard'
      ? headers[WEBHOOK_HEADERS.id]
      : scheme === 'github'
        ? headers[GITHUB.signature]
        : (headers['idempotency-key'] ?? headers[WEBHOOK_HEADERS.id] ?? headers[GITHUB.delivery]);
  return given === undefined || given === ''
    ? `${UNNAMED_EVENT}${randomBytes(16).toString('hex')}`
    : `${scheme === 'github' ? TIMELESS_EVENT : `${scheme}:`}${digestOf(given)}`;
}

const decoder = new TextDecoder('utf-8', { fatal: false, ignoreBOM: true });

/** Deeper JSON is taken as text: a wake with it would exceed the limit of every later reader. */
const DEEPEST_BODY = 64;

/**
 * The body as JSON source text: itself if it is JSON, otherwise as one text. Hidden characters in its texts are written
 * as escapes, which mean the same: the agent reads nothing that a person does not see.
 */
function jsonOf(body: Buffer): string {
  const text = decoder.decode(body);
  try {
    refuseDeepNesting(text, 'the body', DEEPEST_BODY);
    JSON.parse(text);
    return jsonForTerminal(text);
  } catch (thrown) {
    if (thrown instanceof SyntaxError || thrown instanceof ReveilleError) return jsonForTerminal(JSON.stringify(text));
    throw thrown;
  }
}

/** What a server of MCP Events posts: an event, or a word about the subscription itself. */
export type SubscriptionMessage =
  | { readonly kind: 'verification'; readonly challenge: string }
  | {
      readonly kind: 'events';
      /** `undefined`: the alarm's filter excludes it. */
      readonly event: AlarmEvent | undefined;
      /** The position up to which nothing needs to be sent again; `undefined`: unchanged. */
      readonly cursor: string | undefined;
      /** The server has ended the subscription. */
      readonly isLast: boolean;
    };

const messageSchema = z.union([
  z.looseObject({ type: z.literal('verification'), challenge: z.string().min(1).max(1000) }),
  z.looseObject({ type: z.literal('gap'), cursor: z.string().max(CURSOR_CHARACTERS).nullish() }),
  z.looseObject({ type: z.literal('terminated'), error: z.unknown() }),
  z.looseObject({
    type: z.undefined().optional(),
    eventId: z.string().min(1),
    cursor: z.string().max(CURSOR_CHARACTERS).nullish(),
  }),
]);

/**
 * What is in a verified request of a server of MCP Events.
 *
 * @throws ReveilleError `invalid_request`
 */
export function subscriptionMessageOf(alarm: Pick<Alarm, 'options'>, request: HookRequest): SubscriptionMessage {
  const { event: asked, expect } = optionsOf(alarm);
  if (asked?.source !== 'mcp') throw new Error('no subscription');
  const source = jsonOf(request.body);
  const read = messageSchema.safeParse(JSON.parse(source));
  if (!read.success)
    throw new ReveilleError(
      'invalid_request',
      'the body must be an event of MCP Events, with eventId, or a message of type verification, gap or terminated',
    );
  const message = read.data;
  const arrived = ({ id, data }: { id: string; data: string }) => ({ id, data, receivedAt: request.nowMs });
  // A word about the subscription is not what is expected.
  const notice = (event: { id: string; data: string }) => (expect === undefined ? arrived(event) : undefined);
  switch (message.type) {
    case 'verification':
      return { kind: 'verification', challenge: message.challenge };
    case 'gap': {
      const { cursor = null } = message;
      const event = notice(mcpGap(asked.name, cursor));
      return { kind: 'events', event, cursor: cursor ?? undefined, isLast: false };
    }
    case 'terminated': {
      const reduced = () => ({ type: message.type, note: 'the server has ended the subscription' });
      const event = notice({ id: `terminated-${digestOf(source)}`, data: eventData(source, reduced) });
      return { kind: 'events', event, cursor: undefined, isLast: true };
    }
    default: {
      const { eventId, cursor } = message;
      const isWanted = asked.filter === undefined || hasValue(source, asked.filter);
      const event = isWanted ? arrived(mcpEvent(source, eventId, asked.name)) : undefined;
      return { kind: 'events', event, cursor: cursor ?? undefined, isLast: false };
    }
  }
}

/**
 * The event in a verified request. GitHub's says in headers what it is about, so its data is
 * `{"event", "delivery", "body"}`; other data is the body.
 *
 * @returns `undefined` when the alarm's filter excludes it
 */
export function eventOf(alarm: Pick<Alarm, 'kind' | 'options'>, request: HookRequest): AlarmEvent | undefined {
  const scheme = hookSchemeOf(alarm)!;
  const body = jsonOf(request.body);
  const about = { event: request.headers[GITHUB.event], delivery: request.headers[GITHUB.delivery] };
  const named = jsonForTerminal(JSON.stringify(about));
  const data = scheme === 'github' ? `${named === '{}' ? '{' : `${named.slice(0, -1)},`}"body":${body}}` : body;
  const { event } = optionsOf(alarm);
  if (event?.filter !== undefined && !hasValue(data, event.filter)) return undefined;
  return { id: idOf(scheme, request), receivedAt: request.nowMs, data };
}
