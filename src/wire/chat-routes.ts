/** The routes of a daemon that serves conversations (docs/reference/api.md, "Delivery to a daemon"). */
import { z } from 'zod';
import type { Routes } from './route.ts';
import {
  conversationListQuerySchema,
  conversationListSchema,
  conversationQuerySchema,
  conversationViewSchema,
  eventQuerySchema,
  turnViewSchema,
} from './turn.ts';
import { chatAcceptedSchema, chatRequestSchema } from './wake.ts';

export const CHAT_ROUTES = {
  chat: {
    method: 'post',
    path: '/chat',
    summary: 'accept a turn; 202 once it is durable, 200 with deduped for a known fire_id',
    credential: 'transport',
    body: chatRequestSchema,
    data: chatAcceptedSchema,
    status: 202,
  },
  events: {
    method: 'get',
    path: '/events',
    summary: 'server-sent events: say, status, notice, turn; resumes from Last-Event-ID',
    credential: 'transport',
    query: eventQuerySchema,
    data: z.unknown(),
  },
  listConversations: {
    method: 'get',
    path: '/conversations',
    summary: 'conversations, newest activity first',
    credential: 'transport',
    query: conversationListQuerySchema,
    data: conversationListSchema,
  },
  getConversation: {
    method: 'get',
    path: '/conversations/{id}',
    summary: 'one conversation with its turns',
    credential: 'transport',
    query: conversationQuerySchema,
    data: conversationViewSchema,
  },
  getTurn: {
    method: 'get',
    path: '/conversations/{id}/turns/{turn_id}',
    summary: 'one turn of a conversation, for clients that poll for its end',
    credential: 'transport',
    data: turnViewSchema,
  },
  cancelTurn: {
    method: 'post',
    path: '/turns/{id}/cancel',
    summary: 'end a turn permanently; one that has ended is returned unchanged',
    credential: 'transport',
    data: turnViewSchema,
  },
} as const satisfies Routes;
