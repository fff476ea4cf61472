/**
 * The router's routes (docs/reference/api.md). The server, the OpenAPI document and the typed client read this
 * table.
 */
import { z } from 'zod';
import { clientEndSchema } from '../../wire/agent.ts';
import { budgetSchema } from '../../wire/budget.ts';
import { checkRequestSchema } from '../../wire/check-verdict.ts';
import { lookAnswerSchema, lookRequestSchema } from '../../wire/look.ts';
import { machineChangeListSchema, machineChangeQuerySchema, machineListQuerySchema } from '../../wire/machine.ts';
import { machineTurnListSchema, machineTurnQuerySchema } from '../../wire/machine-turn.ts';
import {
  endedSchema,
  personAddSchema,
  personListQuerySchema,
  personListSchema,
  personRevokedSchema,
  personRightsSchema,
  personTokenCreateSchema,
  personTokenMadeSchema,
  personTokenRevokedSchema,
  personTokenViewSchema,
} from '../../wire/person.ts';
import { PROBES, type Routes } from '../../wire/route.ts';
import { turnReportKeysSchema } from '../../wire/turn-report.ts';
import { wakeRequestSchema } from '../../wire/wake.ts';
import { machinePutAnswerSchema, machinePutSchema, machineViewSchema } from '../machines/machine-schema.ts';

export const ROUTER_ROUTES = {
  wake: {
    method: 'post',
    path: '/internal/wake',
    summary: "wake a user's agent; answers what its daemon answers",
    credential: 'transport',
    body: wakeRequestSchema,
    data: z.unknown(),
  },
  tryCheck: {
    method: 'post',
    path: '/internal/checks',
    summary: "refuse a check that could never be made on a user's machine",
    credential: 'transport',
    body: checkRequestSchema,
    data: z.object({}),
  },
  look: {
    method: 'post',
    path: '/internal/look',
    summary:
      "events since the last look at a file, folder or process of a user's machine, or at an MCP server; starts nothing",
    credential: 'transport',
    body: lookRequestSchema,
    data: lookAnswerSchema,
  },
  receiptKeys: {
    method: 'get',
    path: '/internal/receipt-keys/{user_id}',
    summary: "the keys with which a user's machine signs turn reports, the current one first",
    credential: 'transport',
    data: turnReportKeysSchema,
  },
  putMachine: {
    method: 'put',
    path: '/admin/machines/{user_id}',
    summary: "set where a user's agent runs",
    credential: 'admin',
    body: machinePutSchema,
    data: machinePutAnswerSchema,
  },
  getMachine: {
    method: 'get',
    path: '/admin/machines/{user_id}',
    summary: 'one machine',
    credential: 'admin',
    data: machineViewSchema,
  },
  listMachines: {
    method: 'get',
    path: '/admin/machines',
    summary: 'all machines',
    credential: 'admin',
    query: machineListQuerySchema,
    data: z.object({ machines: z.array(machineViewSchema), next_cursor: z.string().optional() }),
  },
  deleteMachine: {
    method: 'delete',
    path: '/admin/machines/{user_id}',
    summary: 'stop it and refuse all later wakes',
    credential: 'admin',
    data: machineViewSchema,
  },
  listTurns: {
    method: 'get',
    path: '/admin/machines/{user_id}/turns',
    summary: 'the outcomes of wakes of a machine of provider command, newest first',
    credential: 'admin',
    query: machineTurnQuerySchema,
    data: machineTurnListSchema,
  },
  putBudget: {
    method: 'put',
    path: '/admin/machines/{user_id}/budget',
    summary: 'set the budget of wakes, and change nothing else',
    credential: 'admin',
    body: budgetSchema,
    data: machineViewSchema,
  },
  deleteBudget: {
    method: 'delete',
    path: '/admin/machines/{user_id}/budget',
    summary: 'remove the budget; the setting of the router applies again',
    credential: 'admin',
    data: machineViewSchema,
  },
  listChanges: {
    method: 'get',
    path: '/admin/machines/{user_id}/changes',
    summary: 'the changes of a machine with their author, newest first',
    credential: 'admin',
    query: machineChangeQuerySchema,
    data: machineChangeListSchema,
  },
  suspendMachine: {
    method: 'post',
    path: '/admin/machines/{user_id}/suspend',
    summary: 'stop it and refuse wakes until it is restored',
    credential: 'admin',
    data: machineViewSchema,
  },
  restoreMachine: {
    method: 'post',
    path: '/admin/machines/{user_id}/restore',
    summary: 'wake it again',
    credential: 'admin',
    data: machineViewSchema,
  },
  rotateToken: {
    method: 'post',
    path: '/admin/machines/{user_id}/rotate-token',
    summary: 'replace its token; the answer shows the new one once',
    credential: 'admin',
    data: machinePutAnswerSchema,
  },
  addUser: {
    method: 'post',
    path: '/admin/users',
    summary: 'authorize a user at the public listener; the answer shows the credential once',
    credential: 'admin',
    body: personAddSchema,
    data: personTokenMadeSchema,
  },
  listUsers: {
    method: 'get',
    path: '/admin/users',
    summary: 'the credentials of users, without the tokens',
    credential: 'admin',
    query: personListQuerySchema,
    data: personListSchema,
  },
  revokeUser: {
    method: 'delete',
    path: '/admin/users/{user_id}',
    summary: 'revoke all credentials of a user, and end what programs have set with them',
    credential: 'admin',
    data: personRevokedSchema,
  },
  addUserToken: {
    method: 'post',
    path: '/admin/users/{user_id}/tokens',
    summary: 'create another credential for a user, for another device; the answer shows it once',
    credential: 'admin',
    body: personTokenCreateSchema,
    data: personTokenMadeSchema,
  },
  grantUserToken: {
    method: 'put',
    path: '/admin/users/{user_id}/tokens/{token_id}/rights',
    summary: 'set the rights of a credential at chronosd and the executor, for the console',
    credential: 'admin',
    body: personRightsSchema,
    data: personTokenViewSchema,
  },
  revokeUserToken: {
    method: 'delete',
    path: '/admin/users/{user_id}/tokens/{token_id}',
    summary: 'revoke one credential, and end what programs have set with it',
    credential: 'admin',
    data: personTokenRevokedSchema,
  },
  endClient: {
    method: 'post',
    path: '/admin/users/{user_id}/clients/end',
    summary:
      'end what a client whose access was revoked has set: alarms, addresses, subscriptions, push targets, tasks',
    credential: 'admin',
    body: clientEndSchema,
    data: endedSchema,
  },
  metrics: {
    method: 'get',
    path: '/metrics',
    summary: 'the state of its listeners, in Prometheus text format',
    credential: 'metrics',
    data: z.string(),
    text: true,
  },
  ...PROBES,
} as const satisfies Routes;
