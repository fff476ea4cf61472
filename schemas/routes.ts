/** The HTTP routes of every daemon, for the OpenAPI documents: path, who may call it, what goes in and what comes out. */
import { z } from 'zod';
import { machinePutAnswerSchema, machinePutSchema, machineViewSchema } from '../src/router/machines/machine-schema.ts';
import {
  challengeRequestSchema,
  challengeSchema,
  enrolledKeySchema,
  enrollRequestSchema,
  principalSchema,
  revokeRequestSchema,
  verifyRequestSchema,
} from '../src/wire/agent.ts';
import {
  alarmCreatedSchema,
  alarmCreateSchema,
  alarmListQuerySchema,
  alarmListSchema,
  alarmPatchSchema,
  alarmViewSchema,
  fireListQuerySchema,
  fireListSchema,
} from '../src/wire/alarm.ts';
import {
  approverListSchema,
  approverQuerySchema,
  approverRequestSchema,
  approverViewSchema,
  revocationRequestSchema,
} from '../src/wire/approver.ts';
import { budgetSchema } from '../src/wire/budget.ts';
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
} from '../src/wire/executor.ts';
import { intentSchema } from '../src/wire/intent.ts';
import { intentReceiptSchema } from '../src/wire/intent-receipt.ts';
import {
  intentEventQuerySchema,
  intentListQuerySchema,
  intentListSchema,
  intentViewSchema,
} from '../src/wire/intent-view.ts';
import { machineListQuerySchema } from '../src/wire/machine.ts';
import { machineChangeListSchema, machineChangeQuerySchema } from '../src/wire/machine-change.ts';
import { machineTurnListSchema, machineTurnQuerySchema } from '../src/wire/machine-turn.ts';
import { receiptKeysSchema, receiptPostSchema, receiptsRecordedSchema } from '../src/wire/receipt.ts';
import {
  submitterListSchema,
  submitterMadeSchema,
  submitterQuerySchema,
  submitterRequestSchema,
  submitterRevocationSchema,
  submitterViewSchema,
} from '../src/wire/submitter.ts';
import { surfaceViewSchema } from '../src/wire/tool-surface.ts';
import {
  conversationListQuerySchema,
  conversationListSchema,
  conversationQuerySchema,
  conversationViewSchema,
  eventQuerySchema,
  turnViewSchema,
} from '../src/wire/turn.ts';
import { chatAcceptedSchema, chatRequestSchema, daemonHealthSchema, wakeRequestSchema } from '../src/wire/wake.ts';

/** Which credentials a route asks for. */
export type Credential = 'none' | 'transport' | 'principal' | 'admin' | 'machine' | 'user';

export type Route = {
  method: 'get' | 'post' | 'put' | 'patch' | 'delete';
  /** With `{name}` for what varies. */
  path: string;
  summary: string;
  credential: Credential;
  query?: z.ZodObject;
  body?: z.ZodType;
  data: z.ZodType;
  /** 200 unless told. */
  status?: number;
};

export type Api = { name: string; description: string; routes: readonly Route[] };

const health = z.object({ status: z.string() });
const probes: readonly Route[] = [
  {
    method: 'get',
    path: '/',
    summary: 'name and version',
    credential: 'none',
    data: z.object({ name: z.string(), version: z.string() }),
  },
  { method: 'get', path: '/healthz', summary: 'the process is alive', credential: 'none', data: health },
  {
    method: 'get',
    path: '/readyz',
    summary: 'it can do its job; 503 with reasons when it cannot',
    credential: 'none',
    data: health,
  },
];

const onAlarm = (action: string, summary: string): Route => ({
  method: 'post',
  path: `/v1/alarms/{id}/${action}`,
  summary,
  credential: 'principal',
  data: action === 'trigger' ? alarmViewSchema.extend({ fire_id: z.string() }) : alarmViewSchema,
});

const chronosd: Api = {
  name: 'chronosd',
  description: 'Keeps alarms durably and fires them on time.',
  routes: [
    {
      method: 'post',
      path: '/v1/agent/auth/challenge',
      summary: 'ask for a nonce to sign',
      credential: 'transport',
      body: challengeRequestSchema,
      data: challengeSchema,
    },
    {
      method: 'post',
      path: '/v1/agent/auth/verify',
      summary: 'answer a challenge; gives a principal token',
      credential: 'transport',
      body: verifyRequestSchema,
      data: principalSchema,
    },
    {
      method: 'post',
      path: '/v1/alarms',
      summary: 'set an alarm; acknowledged once it is durable',
      credential: 'principal',
      body: alarmCreateSchema,
      data: alarmCreatedSchema,
    },
    {
      method: 'get',
      path: '/v1/alarms',
      summary: 'your alarms, newest first',
      credential: 'principal',
      query: alarmListQuerySchema,
      data: alarmListSchema,
    },
    { method: 'get', path: '/v1/alarms/{id}', summary: 'one alarm', credential: 'principal', data: alarmViewSchema },
    {
      method: 'patch',
      path: '/v1/alarms/{id}',
      summary: 'edit an alarm',
      credential: 'principal',
      body: alarmPatchSchema,
      data: alarmViewSchema,
    },
    {
      method: 'delete',
      path: '/v1/alarms/{id}',
      summary: 'cancel an alarm',
      credential: 'principal',
      data: alarmViewSchema,
    },
    onAlarm('pause', 'hold the schedule back'),
    onAlarm('resume', 'take the schedule up again'),
    onAlarm('trigger', 'fire now, beside the schedule'),
    onAlarm('redrive', 're-arm a failed alarm under the same fire id'),
    {
      method: 'get',
      path: '/v1/alarms/{id}/fires',
      summary: 'the attempts at its occurrences, latest first',
      credential: 'principal',
      query: fireListQuerySchema,
      data: fireListSchema,
    },
    {
      method: 'post',
      path: '/v1/fires/{fire_id}/receipts',
      summary: "how far a fire got, told by the user's machine under its own signature",
      credential: 'machine',
      body: receiptPostSchema,
      data: receiptsRecordedSchema,
    },
    {
      method: 'post',
      path: '/v1/admin/agents',
      summary: 'enrol a key',
      credential: 'admin',
      body: enrollRequestSchema,
      data: enrolledKeySchema,
    },
    {
      method: 'get',
      path: '/v1/admin/agents',
      summary: 'all keys',
      credential: 'admin',
      query: z.strictObject({ cursor: z.string().optional() }),
      data: z.object({ agents: z.array(enrolledKeySchema), count: z.int(), next_cursor: z.string().optional() }),
    },
    {
      method: 'delete',
      path: '/v1/admin/agents',
      summary: 'revoke a key, or all of a label',
      credential: 'admin',
      body: revokeRequestSchema,
      data: z.object({ revoked: z.array(enrolledKeySchema), count: z.int() }),
    },
    ...probes,
  ],
};

const onMachine = (action: string, summary: string): Route => ({
  method: 'post',
  path: `/admin/machines/{user_id}/${action}`,
  summary,
  credential: 'admin',
  data: machineViewSchema,
});

const router: Api = {
  name: 'router',
  description: "Knows where each user's agent lives, starts that machine and delivers its wakes.",
  routes: [
    {
      method: 'post',
      path: '/internal/wake',
      summary: "wake a user's agent; answers what its daemon answers",
      credential: 'transport',
      body: wakeRequestSchema,
      data: z.unknown(),
    },
    {
      method: 'get',
      path: '/internal/receipt-keys/{user_id}',
      summary: "the keys with which a user's machine signs receipts, the present one first",
      credential: 'transport',
      data: receiptKeysSchema,
    },
    {
      method: 'put',
      path: '/admin/machines/{user_id}',
      summary: "say where a user's agent lives",
      credential: 'admin',
      body: machinePutSchema,
      data: machinePutAnswerSchema,
    },
    {
      method: 'get',
      path: '/admin/machines/{user_id}',
      summary: 'one machine',
      credential: 'admin',
      data: machineViewSchema,
    },
    {
      method: 'get',
      path: '/admin/machines',
      summary: 'all machines',
      credential: 'admin',
      query: machineListQuerySchema,
      data: z.object({ machines: z.array(machineViewSchema), next_cursor: z.string().optional() }),
    },
    {
      method: 'delete',
      path: '/admin/machines/{user_id}',
      summary: 'stop it and never wake it again',
      credential: 'admin',
      data: machineViewSchema,
    },
    {
      method: 'get',
      path: '/admin/machines/{user_id}/turns',
      summary: 'what became of the wakes of a machine of provider command, newest first',
      credential: 'admin',
      query: machineTurnQuerySchema,
      data: machineTurnListSchema,
    },
    {
      method: 'put',
      path: '/admin/machines/{user_id}/budget',
      summary: 'say how often and when its agent may be woken, and change nothing else',
      credential: 'admin',
      body: budgetSchema,
      data: machineViewSchema,
    },
    {
      method: 'delete',
      path: '/admin/machines/{user_id}/budget',
      summary: "leave that to the router's own setting again",
      credential: 'admin',
      data: machineViewSchema,
    },
    {
      method: 'get',
      path: '/admin/machines/{user_id}/changes',
      summary: 'what was done to a machine, by whom, newest first',
      credential: 'admin',
      query: machineChangeQuerySchema,
      data: machineChangeListSchema,
    },
    onMachine('suspend', 'stop it and refuse wakes until it is restored'),
    onMachine('restore', 'wake it again'),
    {
      ...onMachine('rotate-token', 'give it a new token, which the answer shows once'),
      data: machinePutAnswerSchema,
    },
    ...probes,
  ],
};

const neo: Api = {
  name: 'neo',
  description:
    'A conversational agent daemon. Other daemons that the router wakes speak the same POST /chat and GET /healthz.',
  routes: [
    {
      method: 'post',
      path: '/chat',
      summary: 'accept a turn; 202 once it is durable, 200 with deduped for a known fire_id',
      credential: 'transport',
      body: chatRequestSchema,
      data: chatAcceptedSchema,
      status: 202,
    },
    {
      method: 'get',
      path: '/events',
      summary: 'server-sent events: say, status, notice, turn; resumes from Last-Event-ID',
      credential: 'transport',
      query: eventQuerySchema,
      data: z.unknown(),
    },
    {
      method: 'get',
      path: '/conversations',
      summary: 'conversations, newest activity first',
      credential: 'transport',
      query: conversationListQuerySchema,
      data: conversationListSchema,
    },
    {
      method: 'get',
      path: '/conversations/{id}',
      summary: 'one conversation with its turns',
      credential: 'transport',
      query: conversationQuerySchema,
      data: conversationViewSchema,
    },
    {
      method: 'post',
      path: '/turns/{id}/cancel',
      summary: 'end a turn for good; one that has ended comes back unchanged',
      credential: 'transport',
      data: turnViewSchema,
    },
    {
      method: 'get',
      path: '/tools',
      summary: 'the functions that the model sees, what is reached through core_execute alone, and warnings',
      credential: 'transport',
      data: surfaceViewSchema,
    },
    {
      method: 'post',
      path: '/intents/{id}/gates/{nid}/answer',
      summary:
        "a person's word on a step that the executor asks about, signed by their approver's key and passed on as it is; the first one counts",
      credential: 'transport',
      body: gateAnswerSchema,
      data: gateAnsweredSchema,
    },
    ...probes.filter(({ path }) => path !== '/healthz'),
    {
      method: 'get',
      path: '/healthz',
      summary: 'alive, and whether it may be put to sleep',
      credential: 'none',
      data: daemonHealthSchema,
    },
  ],
};

const ofUser = { credential: 'user' } as const;
const ofOperator = { credential: 'admin' } as const;

const executor: Api = {
  name: 'executor',
  description:
    'Carries tasks out under the eyes of a person: compiles them to a plan, asks before every step that cannot be undone, and proves what happened.',
  routes: [
    {
      ...ofUser,
      method: 'post',
      path: '/messages/async',
      summary: 'hand a task over, in words or as an intent; acknowledged once it is durable',
      // Read as source text, so that its numbers keep their digits; this is its shape.
      body: z.strictObject({ ...intentRequestSchema.shape, intent: intentSchema.optional() }),
      data: intentAcceptedSchema,
    },
    {
      ...ofUser,
      method: 'get',
      path: '/messages/async/{id}',
      summary: 'how it stands',
      data: intentStateSchema,
    },
    {
      ...ofUser,
      method: 'get',
      path: '/intents',
      summary: 'your intents, newest first',
      query: intentListQuerySchema,
      data: intentListSchema,
    },
    {
      ...ofUser,
      method: 'get',
      path: '/intents/{id}',
      summary: 'an intent, its plan, and how each step stands',
      data: intentViewSchema,
    },
    {
      ...ofUser,
      method: 'get',
      path: '/intents/{id}/receipt',
      summary: 'the chain of signed envelopes that "reveille receipt verify" reads',
      data: intentReceiptSchema,
    },
    {
      ...ofUser,
      method: 'get',
      path: '/intents/{id}/gates',
      summary: 'the steps that wait for a person, with the very calls that would be made',
      data: gateListSchema,
    },
    {
      ...ofUser,
      method: 'post',
      path: '/intents/{id}/gates/{node_id}/answer',
      summary:
        "a person's word on a step, signed by their approver's key; it counts for the question that was shown and for no other",
      body: gateAnswerSchema,
      data: gateAnsweredSchema,
    },
    {
      ...ofUser,
      method: 'post',
      path: '/intents/{id}/cancel',
      summary: 'end it, as long as no call that cannot be undone has started; the body may be missing',
      body: cancelSchema,
      data: intentStateSchema,
    },
    {
      ...ofUser,
      method: 'post',
      path: '/intents/{id}/reconcile',
      summary: 'ask the tools again what became of calls whose outcome is unknown',
      data: intentStateSchema,
    },
    {
      ...ofUser,
      method: 'post',
      path: '/intents/{id}/park',
      summary: 'wait for it no more; an alarm in this conversation tells what came of it',
      body: parkSchema,
      data: parkedSchema,
    },
    {
      ...ofUser,
      method: 'get',
      path: '/events',
      summary:
        'server-sent events: gate.invoked, intent.attest, intent.fail, intent.cancel; begins with what holds now',
      query: intentEventQuerySchema,
      data: z.unknown(),
    },
    {
      ...ofOperator,
      method: 'post',
      path: '/approvers',
      summary: "let a key answer for a user; after the user's first one it takes the signature of a key that stands",
      body: approverRequestSchema,
      data: approverViewSchema,
    },
    {
      ...ofOperator,
      method: 'get',
      path: '/approvers',
      summary: 'whose keys may answer, revoked ones included',
      query: approverQuerySchema,
      data: approverListSchema,
    },
    {
      ...ofOperator,
      method: 'delete',
      path: '/approvers',
      summary: 'end a key, on the signature of one that stands',
      body: revocationRequestSchema,
      data: approverViewSchema,
    },
    {
      ...ofOperator,
      method: 'post',
      path: '/submitters',
      summary: 'make a token that hands tasks over for one user and cannot answer; it is shown this once',
      body: submitterRequestSchema,
      data: submitterMadeSchema,
    },
    {
      ...ofOperator,
      method: 'get',
      path: '/submitters',
      summary: 'who may hand tasks over, without their tokens',
      query: submitterQuerySchema,
      data: submitterListSchema,
    },
    {
      ...ofOperator,
      method: 'delete',
      path: '/submitters',
      summary: "end a submitter's token",
      body: submitterRevocationSchema,
      data: submitterViewSchema,
    },
    ...probes,
  ],
};

export const APIS: readonly Api[] = [chronosd, router, neo, executor];
