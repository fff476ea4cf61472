/**
 * The executor's HTTP server: authentication, and the admin routes of the rosters of approvers and submitters
 * (docs/reference/api.md, "Executor").
 */
import type { Clock } from '../../kit/clock/clock.ts';
import { readJson } from '../../kit/http/body.ts';
import type { FeedStreams } from '../../kit/http/feed-stream.ts';
import { type HttpApp, sendOk, serve } from '../../kit/http/handlers.ts';
import { type RunningServer, startServer } from '../../kit/http/server.ts';
import type { Logger } from '../../kit/log/log.ts';
import {
  type ApproverList,
  type ApproverView,
  approverQuerySchema,
  approverRequestSchema,
  revocationRequestSchema,
} from '../../wire/approver.ts';
import { INTENT_BODY_MAX_BYTES } from '../../wire/executor.ts';
import type { IntentEvent } from '../../wire/intent-event.ts';
import { passkeyRequestSchema } from '../../wire/passkey.ts';
import {
  type SubmitterView,
  submitterQuerySchema,
  submitterRequestSchema,
  submitterRevocationSchema,
} from '../../wire/submitter.ts';
import { parseOrThrow } from '../../wire/validate.ts';
import { VERSION } from '../../wire/version.ts';
import type { ExecutorConfig } from '../config.ts';
import type { IntentChange } from '../journal/intent-changes.ts';
import type { Journal } from '../journal/journal.ts';
import type { Roster } from '../journal/roster.ts';
import type { Submitters } from '../journal/submitter-table.ts';
import type { ExecutorRail } from '../rail.ts';
import { eventRoutes, gateRoutes, intentRoutes } from './intent-routes.ts';
import { isStillAccepted, requireAdmin, requireCaller } from './principal.ts';
import { EXECUTOR_ROUTES } from './routes.ts';

type ExecutorServerOptions = {
  config: Pick<ExecutorConfig, 'host' | 'port' | 'listener' | 'allowedHosts' | 'token' | 'adminToken'>;
  rail: ExecutorRail;
  streams: FeedStreams<IntentChange, IntentEvent>;
  journal: Pick<Journal, 'roster' | 'submitters'>;
  /** The public key that receipts are signed with. */
  publicKey: string;
  /** Why there are no tools; without them no intent can be executed. */
  tools: { failure(): Error | undefined };
  clock: Clock;
  log: Logger;
  drainMs: number;
};

/** Starts the server; resolves when it accepts connections. */
export function startExecutorServer(options: ExecutorServerOptions): Promise<RunningServer> {
  const { config, rail, streams, journal, publicKey, tools, clock, log, drainMs } = options;
  const { host, port, listener, allowedHosts } = config;
  return startServer({
    ...{ name: 'executor', version: VERSION, host, port, listener, allowedHosts, log, clock, drainMs },
    ready: () => {
      const failure = tools.failure();
      return failure ? { ready: false, reasons: [failure.message] } : { ready: true };
    },
    limits: { bodyBytes: INTENT_BODY_MAX_BYTES },
    routes: (app) => {
      // `/`, `/healthz` and `/readyz` are routed before this.
      app.use('/approvers', requireAdmin(config));
      app.use('/submitters', requireAdmin(config));
      approverRoutes(app, journal.roster, publicKey);
      submitterRoutes(app, journal.submitters);
      app.use(requireCaller(config, journal.submitters));
      intentRoutes(app, rail);
      gateRoutes(app, rail, { roster: journal.roster, executor: publicKey });
      eventRoutes(app, rail, streams, (c) => isStillAccepted(c, journal.submitters));
    },
  });
}

/** @param executor the public key that signs receipts; enrolment statements name it */
function approverRoutes(app: HttpApp, roster: Roster, executor: string): void {
  serve(app, EXECUTOR_ROUTES.enrollApprover, async (c) => {
    const body = await readJson(c);
    const schema = 'passkey' in body ? passkeyRequestSchema : approverRequestSchema;
    return sendOk(c, roster.enroll(parseOrThrow(schema, body)) satisfies ApproverView);
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

function submitterRoutes(app: HttpApp, submitters: Submitters): void {
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
