/**
 * The executor's routes (docs/reference/api.md, "Executor"). The server, the OpenAPI document and the typed client read this
 * table.
 */
import { z } from 'zod';
import {
  approverListSchema,
  approverQuerySchema,
  approverRequestSchema,
  approverViewSchema,
  revocationRequestSchema,
} from '../../wire/approver.ts';
import {
  cancelSchema,
  gateAnsweredSchema,
  gateAnswerSchema,
  gateListSchema,
  intentAcceptedSchema,
  intentRequestSchema,
  intentStateSchema,
  parkedSchema,
  parkSchema,
} from '../../wire/executor.ts';
import { intentSchema } from '../../wire/intent.ts';
import { intentEventQuerySchema } from '../../wire/intent-event.ts';
import { intentReceiptSchema } from '../../wire/intent-receipt.ts';
import { intentListQuerySchema, intentListSchema, intentViewSchema } from '../../wire/intent-view.ts';
import { passkeyListSchema, passkeyRequestSchema } from '../../wire/passkey.ts';
import { PROBES, type Routes } from '../../wire/route.ts';
import {
  submitterListSchema,
  submitterMadeSchema,
  submitterQuerySchema,
  submitterRequestSchema,
  submitterRevocationSchema,
  submitterViewSchema,
} from '../../wire/submitter.ts';

export const EXECUTOR_ROUTES = {
  submit: {
    credential: 'user',
    method: 'post',
    path: '/messages/async',
    summary: 'submit a task, in prose or as an intent; acknowledged once it is durable',
    // The intent is read as source text, so that its numbers keep their digits; this schema is its shape.
    body: z.strictObject({ ...intentRequestSchema.shape, intent: intentSchema.optional() }),
    data: intentAcceptedSchema,
  },
  getState: {
    credential: 'user',
    method: 'get',
    path: '/messages/async/{id}',
    summary: 'the state of an intent',
    data: intentStateSchema,
  },
  listIntents: {
    credential: 'user',
    method: 'get',
    path: '/intents',
    summary: 'your intents, newest first',
    query: intentListQuerySchema,
    data: intentListSchema,
  },
  getIntent: {
    credential: 'user',
    method: 'get',
    path: '/intents/{id}',
    summary: 'an intent, its plan, and the state of each step',
    data: intentViewSchema,
  },
  getReceipt: {
    credential: 'user',
    method: 'get',
    path: '/intents/{id}/receipt',
    summary: 'the chain of signed envelopes that "reveille receipt verify" reads',
    data: intentReceiptSchema,
  },
  listGates: {
    credential: 'user',
    method: 'get',
    path: '/intents/{id}/gates',
    summary: 'the steps that wait for an answer, with the exact calls that would be made',
    data: gateListSchema,
  },
  answerGate: {
    credential: 'user',
    method: 'post',
    path: '/intents/{id}/gates/{node_id}/answer',
    summary:
      "answer a step, signed with an approver's key or a passkey; the answer counts only for the question that was shown",
    body: gateAnswerSchema,
    data: gateAnsweredSchema,
  },
  listPasskeys: {
    credential: 'user',
    method: 'get',
    path: '/passkeys',
    summary: 'the passkeys with which your questions may be answered',
    data: passkeyListSchema,
  },
  cancelIntent: {
    credential: 'user',
    method: 'post',
    path: '/intents/{id}/cancel',
    summary: 'cancel an intent before its first escalate-class call has started; the body is optional',
    body: cancelSchema,
    data: intentStateSchema,
  },
  reconcileIntent: {
    credential: 'user',
    method: 'post',
    path: '/intents/{id}/reconcile',
    summary: 'query the tools again for the outcome of calls whose outcome is unknown',
    data: intentStateSchema,
  },
  parkIntent: {
    credential: 'user',
    method: 'post',
    path: '/intents/{id}/park',
    summary: 'park an intent; when it ends, an alarm in this conversation reports the outcome',
    body: parkSchema,
    data: parkedSchema,
  },
  events: {
    credential: 'user',
    method: 'get',
    path: '/events',
    summary:
      'server-sent events of your intents; resumes from Last-Event-ID. With intent_id only of one, beginning with its present state',
    query: intentEventQuerySchema,
    data: z.unknown(),
  },
  enrollApprover: {
    credential: 'admin',
    method: 'post',
    path: '/approvers',
    summary: "enrol a key or a passkey as an approver of a user; after the user's first key an active key must sign it",
    body: z.union([approverRequestSchema, passkeyRequestSchema]),
    data: approverViewSchema,
  },
  listApprovers: {
    credential: 'admin',
    method: 'get',
    path: '/approvers',
    summary: 'the keys and passkeys of approvers, including revoked ones',
    query: approverQuerySchema,
    data: approverListSchema,
  },
  revokeApprover: {
    credential: 'admin',
    method: 'delete',
    path: '/approvers',
    summary: 'revoke a key; an active key must sign the revocation',
    body: revocationRequestSchema,
    data: approverViewSchema,
  },
  addSubmitter: {
    credential: 'admin',
    method: 'post',
    path: '/submitters',
    summary: 'create a token that may submit tasks for one user and cannot answer; it is shown only once',
    body: submitterRequestSchema,
    data: submitterMadeSchema,
  },
  listSubmitters: {
    credential: 'admin',
    method: 'get',
    path: '/submitters',
    summary: 'the submitters, without their tokens',
    query: submitterQuerySchema,
    data: submitterListSchema,
  },
  revokeSubmitter: {
    credential: 'admin',
    method: 'delete',
    path: '/submitters',
    summary: "revoke a submitter's token",
    body: submitterRevocationSchema,
    data: submitterViewSchema,
  },
  ...PROBES,
} as const satisfies Routes;
