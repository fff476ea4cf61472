/**
 * An MCP server of the official SDK with MCP Events: by poll, and by webhooks that an independent library signs. Its
 * types of events and grants are those of the AI SDK.
 */
import assert from 'node:assert/strict';
import { createHash, randomUUID } from 'node:crypto';
import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import type { TestContext } from 'node:test';
import type {
  Experimental_ListEventsResult as EventsList,
  Experimental_SubscribeEventResult as Grant,
  Experimental_MCPEvent as McpEvent,
  Experimental_MCPEventControl as Message,
} from '@ai-sdk/mcp';
import { getRequestListener } from '@hono/node-server';
import { createMcpHandler, McpServer, ProtocolError, type ServerCapabilities } from '@modelcontextprotocol/server';
import { Webhook } from 'standardwebhooks';
import { z } from 'zod';
import { atEnd } from '../temporary.ts';

const NAME = 'ticket.created';
const CALLBACK_ERROR = -32_015;

const subjectSchema = z.looseObject({
  name: z.string(),
  arguments: z.record(z.string(), z.unknown()).optional(),
  cursor: z.string().nullish(),
});
const callSchema = subjectSchema.extend({
  delivery: z.looseObject({ mode: z.literal('webhook'), url: z.string(), secret: z.string().startsWith('whsec_') }),
  ttlMs: z.number().nullish(),
});
const pollSchema = subjectSchema.extend({ maxEvents: z.number().optional() });

type Subscription = { id: string; url: string; secret: string; until: number; cursor: number };

/** @param ttlMs what it grants */
export async function startEventServer(
  t: TestContext,
  { ttlMs = 3_600_000, delivery = ['poll', 'webhook'] as ('poll' | 'webhook')[], capability = 'extension' } = {},
) {
  const events: McpEvent[] = [];
  const subscriptions = new Map<string, Subscription>();
  const calls: string[] = [];
  /** The oldest event that it still has. */
  const state = { oldest: 0 };

  async function post(to: Subscription, body: McpEvent | Message | { type: 'verification'; challenge: string }) {
    const text = JSON.stringify(body);
    const id = 'eventId' in body ? body.eventId : `msg_${body.type}_${randomUUID()}`;
    const now = new Date();
    const headers = {
      'content-type': 'application/json',
      'webhook-id': String(id),
      'webhook-timestamp': String(Math.floor(now.getTime() / 1000)),
      'webhook-signature': new Webhook(to.secret).sign(String(id), now, text),
      'x-mcp-subscription-id': to.id,
    };
    return fetch(to.url, { method: 'POST', headers, body: text, redirect: 'error' });
  }

  const refuseOther = (name: string) => {
    if (name !== NAME) throw new ProtocolError(-32_602, `there is no event ${name}`);
  };

  async function subscribe(call: z.output<typeof callSchema>): Promise<Grant> {
    refuseOther(call.name);
    calls.push('subscribe');
    const { url, secret } = call.delivery;
    const id = `sub_${createHash('sha256')
      .update(JSON.stringify([url, call.name, call.arguments]))
      .digest('hex')
      .slice(0, 16)}`;
    const from = typeof call.cursor === 'string' ? Number(call.cursor) : events.length;
    const known = subscriptions.get(id);
    const kept = known && known.until > Date.now() ? known : undefined;
    const granted: Subscription = { id, url, secret, until: Date.now() + ttlMs, cursor: kept?.cursor ?? from };
    if (!kept) {
      const challenge = randomUUID();
      const answer = await post(granted, { type: 'verification', challenge }).catch(() => undefined);
      const echoed = answer?.ok ? ((await answer.json()) as { challenge?: string }).challenge : undefined;
      if (echoed !== challenge)
        throw new ProtocolError(CALLBACK_ERROR, 'the callback did not echo the challenge', {
          reason: 'challenge_failed',
        });
    }
    const truncated = granted.cursor < state.oldest;
    granted.cursor = Math.max(granted.cursor, state.oldest);
    subscriptions.set(id, granted);
    void deliver(granted);
    return { id, refreshBefore: new Date(granted.until).toISOString(), cursor: String(granted.cursor), truncated };
  }

  /** Posts what a subscription has not acknowledged, in order. */
  async function deliver(to: Subscription): Promise<void> {
    while (to.cursor < events.length && to.until > Date.now() && subscriptions.get(to.id) === to) {
      const event = { ...events[to.cursor]!, cursor: String(to.cursor) };
      const answer = await post(to, event).catch(() => undefined);
      await answer?.arrayBuffer();
      if (!answer?.ok) return;
      to.cursor++;
    }
  }

  const factory = () => {
    const extension =
      capability === 'extension' ? { extensions: { 'io.modelcontextprotocol/events': {} } } : { events: {} };
    const capabilities = { ...extension, tools: {} } as ServerCapabilities;
    const server = new McpServer({ name: 'tickets', version: '1.0.0' }, { capabilities });
    const list = async (): Promise<EventsList & { resultType: string }> => ({
      resultType: 'complete',
      events: [{ name: NAME, description: 'a ticket was created', delivery, inputSchema: true, payloadSchema: true }],
    });
    server.server.setRequestHandler('events/list', { params: z.looseObject({}).optional() }, list);
    server.server.setRequestHandler('events/subscribe', { params: callSchema }, async (call) => ({
      resultType: 'complete',
      ...(await subscribe(call)),
    }));
    server.server.setRequestHandler('events/poll', { params: pollSchema }, async ({ name, cursor, maxEvents = 50 }) => {
      refuseOther(name);
      calls.push('poll');
      const from = typeof cursor === 'string' ? Math.max(Number(cursor), state.oldest) : events.length;
      const some = events.slice(from, from + maxEvents);
      const to = from + some.length;
      const truncated = typeof cursor === 'string' && Number(cursor) < state.oldest;
      return { resultType: 'complete', events: some, cursor: String(to), truncated, hasMore: to < events.length };
    });
    return server;
  };
  const handler = createMcpHandler(factory, { legacy: 'stateless' });
  const server = createServer(getRequestListener((request) => handler.fetch(request))).listen(0, '127.0.0.1');
  await once(server, 'listening');
  atEnd(t, () => {
    server.closeAllConnections();
    server.close();
  });
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/mcp`,
    events,
    calls,
    state,
    subscriptions,
    post,
    /** It happens now. @param data as JSON */
    async emit(eventId: string, data: Record<string, unknown>): Promise<void> {
      events.push({ eventId, name: NAME, timestamp: new Date().toISOString(), data });
      await Promise.all([...subscriptions.values()].map(deliver));
    },
    /** The only subscription. */
    only(): Subscription {
      assert.equal(subscriptions.size, 1);
      return [...subscriptions.values()][0]!;
    },
  };
}

export type EventServer = Awaited<ReturnType<typeof startEventServer>>;
