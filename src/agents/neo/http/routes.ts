/**
 * Neo's routes (docs/reference/api.md, "Delivery to a daemon"). Other daemons that the router wakes serve `chat` and `health` too. The server,
 * the OpenAPI document and the typed client use this table.
 */
import { z } from 'zod';
import { conversationIdSchema } from '../../../wire/alarm.ts';
import { CHAT_ROUTES } from '../../../wire/chat-routes.ts';
import { gateAnsweredSchema, gateAnswerSchema } from '../../../wire/executor.ts';
import { intentReceiptSchema } from '../../../wire/intent-receipt.ts';
import { questionAnswerSchema, questionListSchema, questionSchema } from '../../../wire/question.ts';
import { DAEMON_HEALTH, PROBES, type Routes } from '../../../wire/route.ts';
import { surfaceViewSchema } from '../../../wire/tool-surface.ts';
/** Requests of a person, at the daemon itself or through a router's public listener. */
export const PERSON_ROUTES = {
  ...CHAT_ROUTES,
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
  listQuestions: {
    method: 'get',
    path: '/questions',
    summary: 'questions of MCP servers that wait for an answer of the person',
    credential: 'transport',
    query: z.strictObject({ conversation_id: conversationIdSchema.optional() }),
    data: questionListSchema,
  },
  answerQuestion: {
    method: 'post',
    path: '/questions/{id}/answer',
    summary: "the person's answer to a question of an MCP server; the first one counts",
    credential: 'transport',
    body: questionAnswerSchema,
    data: questionSchema,
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
