/**
 * The Fly Machines API for tests, over real HTTP: the documented states, transitions, refusals, leases and rate limits.
 * A machine has a real daemon, with the IPv6 loopback address as its private one.
 */
import type { ServerResponse } from 'node:http';
import { createServer } from 'node:net';
import type { Clock } from '../../../src/kit/clock/clock.ts';
import { createFakeDaemon, type FakeDaemon } from './fake-daemon.ts';
import { FakeFlyLimits } from './fake-fly-limits.ts';
import { type FakeProviderApi, type SeenRequest, sendJson, startFakeProviderApi } from './fake-provider-api.ts';

export type FakeFlyMachine = {
  state: string;
  privateIp: string | null;
  readonly daemon: FakeDaemon;
  /** Transitions wait until `settle` is called. */
  slow: boolean;
  /** Its image is still being prepared, so that it does not start yet. */
  preparing: boolean;
  /** A suspended machine resumes from its snapshot; otherwise, it boots anew. */
  snapshot: boolean;
  canSuspend: boolean;
  /** Its program ends right after the start. */
  diesAtOnce: { code: number } | undefined;
  /** Another client holds a lease on it. */
  lease: string | undefined;
  /** Number of starts and resumes. */
  starts: number;
  events: object[];
};

export type FakeFly = FakeProviderApi & {
  readonly machine: FakeFlyMachine;
  /** The accepted API token. */
  readonly token: string;
  /** Number of boots of the daemon before the machine was created. */
  readonly bootsBefore: number;
  /** Number of requests that the rate limit refused. */
  readonly limited: number;
  /** Completes the current transition. */
  settle(): Promise<void>;
  /** Actions of another client on the machine. */
  set(state: string): Promise<void>;
};

export type FakeFlyOptions = { clock: Clock; app: string; machineId: string; token: string };

/** Containers for tests may be without IPv6. */
function canListenOn(host: string): Promise<boolean> {
  return new Promise((resolve) => {
    const server = createServer().once('error', () => resolve(false));
    server.listen(0, host, () => server.close(() => resolve(true)));
  });
}

const STARTABLE = new Set(['stopped', 'suspended', 'failed', 'created']);

export async function startFakeFly({ clock, app, machineId, token }: FakeFlyOptions): Promise<FakeFly> {
  const limits = new FakeFlyLimits(clock);
  let limited = 0;
  let transition: (() => Promise<void>) | undefined;
  const waiting = new Set<() => void>();
  const privateIp = (await canListenOn('::1')) ? '::1' : '127.0.0.1';
  const daemon = createFakeDaemon({ host: privateIp, samePort: true });
  // The port is known before the machine is started for the first time.
  await daemon.up();
  await daemon.down();
  const bootsBefore = daemon.boots;
  const machine: FakeFlyMachine = {
    state: 'stopped',
    privateIp,
    daemon,
    slow: false,
    preparing: false,
    snapshot: true,
    canSuspend: true,
    diesAtOnce: undefined,
    lease: undefined,
    starts: 0,
    events: [],
  };

  const enter = (state: string) => {
    machine.state = state;
    for (const check of [...waiting]) check();
  };
  const settle = async () => {
    const current = transition;
    transition = undefined;
    await current?.();
  };
  /** Enters a transitional state, and its final state soon or on request. */
  const pass = async (through: string, arrive: () => Promise<void>) => {
    enter(through);
    transition = arrive;
    if (!machine.slow) await settle();
  };

  const started = async () => {
    if (machine.diesAtOnce) {
      const exit_event = { exit_code: machine.diesAtOnce.code, oom_killed: false };
      machine.events.unshift({ type: 'exit', status: 'stopped', timestamp: clock.now(), request: { exit_event } });
      enter('stopped');
      return;
    }
    await daemon.up();
    enter('started');
  };

  const refuse = (response: ServerResponse, status: number, error: string) => sendJson(response, status, { error });

  const start = async (response: ServerResponse) => {
    const { state } = machine;
    if (state === 'started') return sendJson(response, 200, { previous_state: state, migrated: false, new_host: '' });
    if (state === 'replacing')
      return refuse(response, 412, 'failed_precondition: machine getting replaced, refusing to start');
    if (state === 'stopping' || state === 'suspending')
      return refuse(response, 412, 'failed_precondition: machine still active, refusing to start');
    if (!STARTABLE.has(state) || machine.preparing)
      return refuse(response, 412, `failed_precondition: unable to start machine from current state: '${state}'`);
    machine.starts++;
    if (state === 'suspended' && !machine.snapshot) await daemon.down();
    await pass('starting', started);
    return sendJson(response, 200, { previous_state: state, migrated: false, new_host: '' });
  };

  const stop = async (response: ServerResponse) => {
    if (machine.state === 'suspended') machine.snapshot = false;
    if (machine.state === 'started' || machine.state === 'starting') {
      await pass('stopping', async () => {
        await daemon.down();
        enter('stopped');
      });
    }
    return sendJson(response, 200, { ok: true });
  };

  const suspend = async (response: ServerResponse) => {
    if (machine.state !== 'started')
      return refuse(
        response,
        412,
        `failed_precondition: unable to suspend machine from current state: '${machine.state}'`,
      );
    if (!machine.canSuspend)
      return refuse(response, 400, 'invalid_argument: machines with more than 2GB of memory cannot be suspended');
    await pass('suspending', async () => {
      await daemon.down(false);
      machine.snapshot = true;
      enter('suspended');
    });
    return sendJson(response, 200, { ok: true });
  };

  const waitFor = (url: URL, response: ServerResponse) => {
    const wanted = url.searchParams.get('state') ?? 'started';
    const seconds = Number(url.searchParams.get('timeout') ?? 60);
    if (machine.state === wanted) return sendJson(response, 200, { ok: true });
    if (wanted === 'started' && machine.state !== 'starting' && machine.state !== 'restarting')
      return refuse(
        response,
        400,
        `invalid_argument: machine is in state ${machine.state}, not on its way to ${wanted}`,
      );
    const done = (status: number, body: object) => {
      cancel();
      waiting.delete(check);
      sendJson(response, status, body);
    };
    const check = () => {
      if (machine.state === wanted) done(200, { ok: true });
    };
    const late = { error: `deadline_exceeded: machine did not reach ${wanted} within ${seconds}s` };
    const cancel = clock.after(seconds * 1000, () => done(408, late));
    response.once('close', () => {
      cancel();
      waiting.delete(check);
    });
    waiting.add(check);
  };

  const handle = ({ action, url, headers, method }: SeenRequest, response: ServerResponse): void | Promise<void> => {
    if (headers.authorization !== `Bearer ${token}`)
      return refuse(response, 401, 'unauthorized: token validation failed');
    if (!url.pathname.startsWith(`/v1/apps/${app}/machines/${machineId}`))
      return refuse(response, 404, 'not_found: machine not found');
    if (!limits.allow(machineId, action)) {
      limited++;
      return refuse(response, 429, 'rate limit exceeded');
    }
    if (method === 'POST' && machine.lease !== undefined && headers['fly-machine-lease-nonce'] !== machine.lease)
      return refuse(
        response,
        409,
        `failed_precondition: machine ID ${machineId} lease currently held by deploy@fly.io`,
      );
    const { state, privateIp, events } = machine;
    if (action === 'get')
      return sendJson(response, 200, { id: machineId, name: 'aged-wind', state, private_ip: privateIp, events });
    if (action === 'wait') return waitFor(url, response);
    const act = { start, stop, suspend }[action];
    return act ? act(response) : refuse(response, 404, 'not_found: no such route');
  };

  const api = await startFakeProviderApi({
    listen: { host: '127.0.0.1', port: 0 },
    actionOf: (_method, path) => (path.endsWith(`/${machineId}`) ? 'get' : (path.split('/').at(-1) ?? '')),
    handle,
  });
  return {
    ...api,
    machine,
    token,
    bootsBefore,
    get limited() {
      return limited;
    },
    settle,
    async set(state) {
      transition = undefined;
      if (state === 'started') await daemon.up();
      else await daemon.down(state !== 'suspended' && state !== 'suspending');
      enter(state);
    },
    async close() {
      await api.close();
      await daemon.down();
    },
  };
}
