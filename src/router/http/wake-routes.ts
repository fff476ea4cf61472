/** The routes of the wake token: `POST /internal/wake`, and the keys of turn reports (docs/reference/api.md, "The wake" and §4). */
import type { StatusCode } from 'hono/utils/http-status';
import type { Clock } from '../../kit/clock/clock.ts';
import { requireBearer } from '../../kit/http/bearer.ts';
import { bodyBytes, readJson } from '../../kit/http/body.ts';
import { type HttpApp, type HttpContext, sendOk, serve } from '../../kit/http/handlers.ts';
import { turnReportKey, verifyWebhook, WEBHOOK_HEADERS } from '../../kit/identity/webhook-signature.ts';
import type { Logger } from '../../kit/log/log.ts';
import { continueTrace, failSpan, TRACEPARENT } from '../../kit/trace/trace.ts';
import { CHECK_HEADER, checkRequestSchema, encodeVerdict } from '../../wire/check-verdict.ts';
import { ownerOf } from '../../wire/did.ts';
import { ReveilleError } from '../../wire/errors.ts';
import { type LookRequest, lookRequestSchema } from '../../wire/look.ts';
import { formatInstant } from '../../wire/rfc3339.ts';
import { parseOrThrow } from '../../wire/validate.ts';
import {
  callerWakeName,
  DEFERRED_UNTIL_HEADER,
  MACHINE_READY_HEADER,
  RAW_WAKE_FIELDS,
  type WakeRequest,
  wakeRequestSchema,
  withoutEmptyMembers,
} from '../../wire/wake.ts';
import { WakeDeferred } from '../budget/account.ts';
import type { Checks } from '../checks/checks.ts';
import type { Looks } from '../looks/looks.ts';
import { noMachine } from '../machines/machine.ts';
import type { Registry } from '../machines/registry.ts';
import type { Repetitions } from '../repetitions.ts';
import type { WakeAnswer } from '../wake.ts';
import { userIdOf } from './machine-routes.ts';
import { ROUTER_ROUTES } from './routes.ts';

/** Marks an answer of the daemon. An answer of the router may have the same status. */
const ANSWERED_BY = 'x-reveille-answered-by';
const MACHINE_START_MS = 'x-reveille-machine-start-ms';

/** Statuses without a body in HTTP (RFC 9110 §15.3.5, §15.3.6). */
const BODILESS = new Set([204, 205]);

type WakeRoutesOptions = { repetitions: Repetitions; wakeToken: string | undefined; clock: Clock; log: Logger };

export function addWakeRoutes(app: HttpApp, options: WakeRoutesOptions): void {
  serve(
    app,
    ROUTER_ROUTES.wake,
    async (c) => {
      checkSignature(c, options);
      const body = withoutEmptyMembers(await readJson(c, { raw: RAW_WAKE_FIELDS }));
      const wake = parseOrThrow(wakeRequestSchema, body, ['message', 'payload']);
      // Not bound to the connection: a delivery under way continues when the caller disconnects.
      try {
        const onReady = (afterMs: number) => c.header(MACHINE_READY_HEADER, String(afterMs));
        const name = callerWakeName((header) => c.req.header(header));
        // Behind the wake token: the caller's trace continues.
        const woken = await continueTrace(c.req.header(TRACEPARENT), 'wake', waking(wake), async (span) => {
          const answered = await options.repetitions.wake(wake, name, onReady);
          const { status } = answered.answer;
          span?.setAttributes({ 'http.response.status_code': status, 'reveille.machine.start_ms': answered.startMs });
          if (status > 299) failSpan(span, String(status));
          return answered;
        });
        return passOn(c, woken);
      } catch (thrown) {
        if (thrown instanceof WakeDeferred) c.header(DEFERRED_UNTIL_HEADER, formatInstant(thrown.until));
        throw thrown;
      }
    },
    requireBearer(options.wakeToken),
  );
}

const waking = (wake: WakeRequest) => () => ({
  kind: 'server' as const,
  attributes: {
    ...(wake.fire_id !== undefined && { 'messaging.message.id': wake.fire_id }),
    ...(wake.alarm_id !== undefined && { 'reveille.alarm.id': wake.alarm_id }),
  },
});

/**
 * A signature is optional, and verified when present. `webhook-id` alone only names the wake.
 *
 * @throws ReveilleError `unauthorized` when the three headers of a signature do not match the body
 */
function checkSignature(
  c: HttpContext,
  { wakeToken, clock, log }: Pick<WakeRoutesOptions, 'wakeToken' | 'clock' | 'log'>,
): void {
  const headers = Object.fromEntries(Object.values(WEBHOOK_HEADERS).map((name) => [name, c.req.header(name)]));
  if (wakeToken === undefined || headers[WEBHOOK_HEADERS.signature] === undefined) return;
  const verdict = verifyWebhook({ headers, body: bodyBytes(c), secrets: [wakeToken], nowMs: clock.now() });
  if (verdict.ok) return;
  log.warn({ reason: verdict.reason }, 'a request with a bad signature was refused');
  throw new ReveilleError('unauthorized', 'the webhook signature does not fit this request, or is too old');
}

function passOn(c: HttpContext, { answer, startMs, daemonUrl, verdict }: WakeAnswer): Response {
  const headers: Record<string, string> = { [MACHINE_START_MS]: String(startMs) };
  if (verdict) headers[CHECK_HEADER] = encodeVerdict(verdict);
  if (daemonUrl !== undefined) headers[ANSWERED_BY] = 'daemon';
  if (answer.contentType !== undefined) headers['content-type'] = answer.contentType;
  if (answer.retryAfter !== undefined) headers['retry-after'] = answer.retryAfter;
  const body = BODILESS.has(answer.status) ? null : new Uint8Array(answer.body);
  return c.newResponse(body, answer.status as StatusCode, headers);
}

/** A check before it is stored: what could never be made is refused. */
export function addCheckRoutes(
  app: HttpApp,
  { registry, checks, wakeToken }: { registry: Registry; checks: Checks; wakeToken: string | undefined },
): void {
  serve(
    app,
    ROUTER_ROUTES.tryCheck,
    async (c) => {
      const { user_id, ...given } = parseOrThrow(checkRequestSchema, await readJson(c));
      const machine = registry.get(ownerOf(user_id));
      // A user may get the machine later.
      if (machine && machine.state !== 'deleted') await checks.refuseUnusable(machine, given);
      return sendOk(c, {});
    },
    requireBearer(wakeToken),
  );
}

/** Looks at sources of events. The signature is as that of a wake. */
export function addLookRoutes(
  app: HttpApp,
  { looks, ...signing }: Pick<WakeRoutesOptions, 'wakeToken' | 'clock' | 'log'> & { looks: Looks },
): void {
  serve(
    app,
    ROUTER_ROUTES.look,
    async (c) => {
      checkSignature(c, signing);
      const request = parseOrThrow(lookRequestSchema, await readJson(c)) as LookRequest;
      return sendOk(c, await looks.look(request));
    },
    requireBearer(signing.wakeToken),
  );
}

export function addTurnReportKeyRoutes(
  app: HttpApp,
  { registry, wakeToken }: { registry: Registry; wakeToken: string | undefined },
): void {
  serve(
    app,
    ROUTER_ROUTES.receiptKeys,
    (c) => {
      const userId = userIdOf(c);
      const tokens = registry.turnReportTokens(userId);
      if (tokens.length === 0) throw noMachine(userId);
      return sendOk(c, { keys: tokens.map(turnReportKey) });
    },
    requireBearer(wakeToken),
  );
}
