/**
 * A router with MCP over HTTP and a chronosd that wakes through it, for subscriptions to events; and a receiver of
 * webhooks with a memory of its own.
 */

import assert from 'node:assert/strict';
import { randomBytes } from 'node:crypto';
import { createServer, type IncomingHttpHeaders } from 'node:http';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import { openAgentHost } from '../../../src/agents/host.ts';
import { createChronosClient, holdPrincipal } from '../../../src/chronos/client.ts';
import { parseChronosConfig } from '../../../src/chronos/config.ts';
import { type RunningChronos, startChronos } from '../../../src/chronos/daemon.ts';
import { endAlarmsBy, fleetAlarms, fleetServices } from '../../../src/cli/access/public-services.ts';
import type { CliContext } from '../../../src/cli/context.ts';
import { systemClock } from '../../../src/kit/clock/clock.ts';
import { agentIdentity } from '../../../src/kit/identity/agent.ts';
import { generateKey } from '../../../src/kit/identity/keys.ts';
import { verifyWebhook } from '../../../src/kit/identity/webhook-signature.ts';
import { silentLogger } from '../../../src/kit/log/log.ts';
import { parseRouterConfig } from '../../../src/router/config.ts';
import { type RunningRouter, startRouter } from '../../../src/router/daemon.ts';
import { ADMIN_TOKEN, clientOf, WAKE_TOKEN } from '../../../src/router/testing/bench.ts';
import { reservePort } from '../../support/ports.ts';
import { atEnd, listening, type Owner, temporaryFolder } from '../../support/temporary.ts';
import { startIssuer } from '../mcp-http/mcp-http-bench.ts';

const TRANSPORT = 'transport-token-of-the-tests';
const CHRONOS_ADMIN = 'admin-token-of-the-chronosd-of-the-tests';

export const newSecret = (bytes = 32) => `whsec_${randomBytes(bytes).toString('base64')}`;

type Params = Record<string, unknown>;
/** An answer in JSON-RPC. */
export type Answer = {
  result: Params & { id: string; cursor: string; events: Params[]; truncated: boolean };
  error?: { code: number; message: string; data?: Params };
};
type CallOptions = { bearer?: string; endpoint?: string };

export type EventsBench = Awaited<ReturnType<typeof openEventsBench>>;

/** @param more settings of the router */
export async function openEventsBench(owner: Owner, more: Record<string, string> = {}) {
  const folder = temporaryFolder(owner);
  const issuer = await startIssuer(owner);
  let chronos: RunningChronos | undefined;
  let router: RunningRouter | undefined;
  const ports = {
    internal: String(await reservePort()),
    open: String(await reservePort()),
    chronos: String(await reservePort()),
  };
  const openChronos = async () => {
    chronos = await startChronos({
      ...{ clock: systemClock, log: silentLogger },
      config: parseChronosConfig({
        ...{ CHRONOS_PORT: ports.chronos, CHRONOS_DATA_DIR: join(folder, 'chronos') },
        ...{ CHRONOS_TOKEN: TRANSPORT, CHRONOS_ADMIN_TOKEN: CHRONOS_ADMIN, CHRONOS_WAKE_TOKEN: WAKE_TOKEN },
        CHRONOS_AGENT_AUTH_SECRET: 'auth-secret-of-the-tests',
        CHRONOS_ROUTER_WAKE_URL: `http://127.0.0.1:${ports.internal}/internal/wake`,
      }),
    });
    return chronos;
  };
  const settings = () => ({
    ...{ ROUTER_PORT: ports.internal, ROUTER_PUBLIC_PORT: ports.open, ROUTER_DATA_DIR: join(folder, 'router') },
    ...{ ROUTER_WAKE_TOKEN: WAKE_TOKEN, ROUTER_ADMIN_TOKEN: ADMIN_TOKEN },
    ...{ ROUTER_CHRONOS_URL: chronos!.url, ROUTER_CHRONOS_TOKEN: TRANSPORT, ROUTER_CHRONOS_ADMIN_TOKEN: CHRONOS_ADMIN },
    ROUTER_MCP_ISSUERS: JSON.stringify([
      {
        issuer: issuer.url,
        users: { 'subject-of-ada': 'ada', 'subject-of-bob': 'bob' },
        clients: { 'https://chat.example/client.json': 'Chat' },
      },
    ]),
    ROUTER_PUBLIC_REQUESTS_PER_MINUTE: '1000000',
    ...more,
  });
  const openRouter = async () => {
    const config = parseRouterConfig(settings());
    const context = {
      settings: settings(),
      clock: systemClock,
      log: async () => silentLogger,
    } as unknown as CliContext;
    router = await startRouter({
      ...{ config, openAgents: openAgentHost, clock: systemClock, log: silentLogger, version: '0.0.0' },
      environment: {},
      ...fleetServices(context, config),
      endAlarms: endAlarmsBy(fleetAlarms(context, config)),
    });
    return router;
  };
  await openChronos();
  await openRouter();
  atEnd(owner, () => router!.close());
  atEnd(owner, () => chronos!.close());
  const url = router!.public.url;

  const key = generateKey();
  const identity = agentIdentity('ada', key);
  const principal = holdPrincipal();
  const place = { url: chronos!.url, token: TRANSPORT, adminToken: CHRONOS_ADMIN };
  const alarms = createChronosClient({ ...place, identity, principal });
  // The first key of a label is known by itself, and the router's may be the first.
  await alarms.enrollAgent({ label: 'ada', public_key: key.publicKeyHex });

  const token = (claims: Params = {}, endpoint = 'chronos') =>
    issuer.sign({
      aud: `${url}/mcp/${endpoint}`,
      scope: 'alarms:read alarms:write time:read intents:read',
      ...claims,
    });
  const call = async (
    method: string,
    params: object = {},
    { bearer, endpoint = 'chronos' }: CallOptions = {},
  ): Promise<Answer> => {
    const response = await fetch(`${url}/mcp/${endpoint}`, {
      method: 'POST',
      headers: {
        ...{ 'content-type': 'application/json', accept: 'application/json, text/event-stream' },
        ...{ 'mcp-protocol-version': '2025-11-25', authorization: `Bearer ${bearer ?? (await token({}, endpoint))}` },
      },
      body: JSON.stringify({ jsonrpc: '2.0', id: 1, method, params }),
    });
    const body = await response.text();
    assert.equal(response.status, 200, body);
    return JSON.parse(/^data: (.*)$/m.exec(body)?.[1] ?? body);
  };
  return {
    ...{ folder, issuer, url, token, call, alarms, settings },
    internal: clientOf(router!.url),
    resource: (endpoint: string) => `${url}/mcp/${endpoint}`,
    restartRouter: async () => {
      await router!.close();
      await openRouter();
    },
    closeRouter: () => router!.close(),
    openRouter,
    closeChronos: () => chronos!.close(),
    openChronos,
    /** Calls a method, and returns its error. */
    refused: async (method: string, params: object, options: CallOptions = {}) => {
      const { error, result } = await call(method, params, options);
      assert.ok(error, JSON.stringify(result));
      return error;
    },
    /** Subscribes to due alarms. */
    subscribe: async (receiver: Pick<Receiver, 'url' | 'secret'>, params: Params = {}, options: CallOptions = {}) => {
      const delivery = { mode: 'webhook', url: receiver.url, secret: receiver.secret };
      const { result, error } = await call('events/subscribe', { name: 'alarm.due', delivery, ...params }, options);
      assert.ok(!error, JSON.stringify(error));
      return result;
    },
    /** Sets an alarm of ada. */
    set: async (wake_message: string, more: Params = {}) =>
      (await alarms.createAlarm({ kind: 'once', wake_message, delay_seconds: 1, ...more })).id,
    /** Wakes as chronosd does. */
    wake: (fireId: string, more: Params = {}) =>
      clientOf(router!.url).send('POST', '/internal/wake', WAKE_TOKEN, {
        ...{ user_id: 'ada', message: `message of ${fireId}`, fire_id: fireId },
        ...more,
      }),
  };
}

export type Delivered = {
  readonly headers: IncomingHttpHeaders;
  readonly body: Params & { eventId?: string; type?: string; data?: Params };
};
export type Receiver = Awaited<ReturnType<typeof startReceiver>>;

/** Takes webhooks, and remembers those with a right signature. */
export async function startReceiver(owner: Owner) {
  const delivered: Delivered[] = [];
  const attempts: string[] = [];
  const state = {
    secret: newSecret(),
    /** What it answers to events. */
    status: 200,
    echoes: true,
    redirect: undefined as string | undefined,
    /** Of all requests, before they are answered. */
    onRequest: undefined as (() => Promise<void>) | undefined,
  };
  const server = createServer(async (request, response) => {
    const body = await text(request);
    attempts.push(body);
    await state.onRequest?.();
    if (state.redirect !== undefined) return void response.writeHead(307, { location: state.redirect }).end();
    const headers = request.headers as Record<string, string>;
    const verdict = verifyWebhook({ headers, body, secrets: [state.secret], nowMs: Date.now() });
    if (!verdict.ok) return void response.writeHead(401).end();
    const value = JSON.parse(body) as Delivered['body'] & { challenge?: string };
    if (value.type === 'verification') {
      const challenge = state.echoes ? value.challenge : 'something else';
      return void response.writeHead(200, { 'content-type': 'application/json' }).end(JSON.stringify({ challenge }));
    }
    if (state.status <= 299) delivered.push({ headers: request.headers, body: value });
    response.writeHead(state.status).end();
  });
  const url = `${await listening(owner, server)}/hook`;
  return {
    ...{ url, delivered, attempts, state },
    get secret() {
      return state.secret;
    },
    /** For the setting of the router. */
    host: new URL(url).host,
    ids: () => delivered.flatMap(({ body }) => body.eventId ?? []),
    controls: () => delivered.filter(({ body }) => body.type !== undefined).map(({ body }) => body),
  };
}
