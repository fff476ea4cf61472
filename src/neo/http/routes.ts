/**
 * Neo's routes (docs/reference/api.md, "Delivery to a daemon"). Other daemons that the router wakes serve `chat` and `health` too. The server,
 * the OpenAPI document and the typed client use this table.
 */
import { z } from 'zod';
import { gateAnsweredSchema, gateAnswerSchema } from '../../wire/executor.ts';
import { intentReceiptSchema } from '../../wire/intent-receipt.ts';
import { DAEMON_HEALTH, PROBES, type Routes } from '../../wire/route.ts';
import { surfaceViewSchema } from '../../wire/tool-surface.ts';
import {
  conversationListQuerySchema,
  conversationListSchema,
  conversationQuerySchema,
  conversationViewSchema,
  eventQuerySchema,
  turnViewSchema,
} from '../../wire/turn.ts';
import { chatAcceptedSchema, chatRequestSchema } from '../../wire/wake.ts';

/** Requests of a person, at the daemon itself or through a router's public listener. */
export const PERSON_ROUTES = {
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
  tools: {
    method: 'get',
    path: '/tools',
    summary: 'the functions that the model sees, the tools reached through core_execute alone, and warnings',
    credential: 'transport',
    data: surfaceViewSchema,
  },
  answerGate: {
    method: 'post',
    path: '/intents/{id}/gates/{nid}/answer',
    summary:
      "an approver's answer to a step that waits for it, signed by their key and passed on as it is; the first one counts",
    credential: 'transport',
    body: gateAnswerSchema,
    data: gateAnsweredSchema,
  },
  getReceipt: {
    method: 'get',
    path: '/intents/{id}/receipt',
    summary: 'the receipt of a task of this agent, as the executor has it: "reveille receipt verify" reads it',
    credential: 'transport',
    data: intentReceiptSchema,
  },
} as const satisfies Routes;

export const NEO_ROUTES = {
  ...PERSON_ROUTES,
  root: PROBES.root,
  ready: PROBES.ready,
  health: DAEMON_HEALTH,
} as const satisfies Routes;
