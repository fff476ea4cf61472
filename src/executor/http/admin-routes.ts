/** The admin routes: the rosters of approvers and submitters (docs/reference/api.md, "Executor"). */
import { readJson } from '../../kit/http/body.ts';
import { sendOk } from '../../kit/http/envelope.ts';
import type { HttpApp } from '../../kit/http/environment.ts';
import { serve } from '../../kit/http/serve.ts';
import {
  type ApproverList,
  type ApproverView,
  approverQuerySchema,
  approverRequestSchema,
  revocationRequestSchema,
} from '../../wire/approver.ts';
import { passkeyRequestSchema } from '../../wire/passkey.ts';
import {
  type SubmitterView,
  submitterQuerySchema,
  submitterRequestSchema,
  submitterRevocationSchema,
} from '../../wire/submitter.ts';
import { parseOrThrow } from '../../wire/validate.ts';
import type { Roster } from '../journal/roster.ts';
import type { Submitters } from '../journal/submitter-table.ts';
import { EXECUTOR_ROUTES } from './routes.ts';

/** @param executor the public key that signs receipts; enrolment statements name it */
export function approverRoutes(app: HttpApp, roster: Roster, executor: string): void {
  serve(app, EXECUTOR_ROUTES.enrollApprover, async (c) => {
    const body = await readJson(c);
    const isPasskey = typeof body === 'object' && body !== null && 'passkey' in body;
    const request = isPasskey ? parseOrThrow(passkeyRequestSchema, body) : parseOrThrow(approverRequestSchema, body);
    return sendOk(c, roster.enroll(request) satisfies ApproverView);
  });
  serve(app, EXECUTOR_ROUTES.listApprovers, (c) => {
    const { user } = parseOrThrow(approverQuerySchema, c.req.query());
    const list: ApproverList = { executor, approvers: roster.list(user), resets: roster.resets(user) };
    return sendOk(c, list);
  });
  serve(app, EXECUTOR_ROUTES.revokeApprover, async (c) => {
    const request = parseOrThrow(revocationRequestSchema, await readJson(c));
    return sendOk(c, roster.revoke(request) satisfies ApproverView);
  });
}

export function submitterRoutes(app: HttpApp, submitters: Submitters): void {
  serve(app, EXECUTOR_ROUTES.addSubmitter, async (c) => {
    const { user, name, token_sha256 } = parseOrThrow(submitterRequestSchema, await readJson(c));
    return sendOk(c, submitters.add(user, name, token_sha256));
  });
  serve(app, EXECUTOR_ROUTES.listSubmitters, (c) => {
    const { user } = parseOrThrow(submitterQuerySchema, c.req.query());
    return sendOk(c, { submitters: submitters.list(user) });
  });
  serve(app, EXECUTOR_ROUTES.revokeSubmitter, async (c) => {
    const { id } = parseOrThrow(submitterRevocationSchema, await readJson(c));
    return sendOk(c, submitters.revoke(id) satisfies SubmitterView);
  });
}
