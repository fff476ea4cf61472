/**
 * Compares the tables of routes with the servers: every served route is documented, and every documented route is
 * served, under the documented credential.
 */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { APIS } from '../../schemas/routes.ts';
import { startNeoServer } from '../../src/agents/neo/http/server.ts';
import type { EventService } from '../../src/chronos/http/event-routes.ts';
import { startChronosServer } from '../../src/chronos/http/server.ts';
import type { ChronosService } from '../../src/chronos/http/service.ts';
import type { KeyRing } from '../../src/chronos/turn-reports/key-ring.ts';
import { startExecutorServer } from '../../src/executor/http/server.ts';
import type { ExecutorRail } from '../../src/executor/rail.ts';
import { systemClock } from '../../src/kit/clock/clock.ts';
import type { ListenerSettings } from '../../src/kit/http/listener-settings.ts';
import type { RunningServer } from '../../src/kit/http/server.ts';
import { silentLogger } from '../../src/kit/log/log.ts';
import { startBench } from '../../src/router/testing/bench.ts';

const base = { host: '127.0.0.1', port: 0, log: silentLogger, clock: systemClock };
const config = { ...base, listener: {} as ListenerSettings, allowedHosts: [], token: 'a', adminToken: 'b' };
/** Replaces dependencies that no request of this test uses. */
const unused = <T>(given: object = {}) => given as T;

type Served = Pick<RunningServer, 'url' | 'routes' | 'close'>;

const SERVERS: Readonly<Record<string, (t: Parameters<typeof startBench>[0]) => Promise<Served>>> = {
  chronosd: () =>
    startChronosServer({
      ...base,
      service: unused<ChronosService>({ auth: { transportToken: 'a', adminToken: 'b', wakeToken: 'w' }, limits: {} }),
      turnReportKeys: unused<KeyRing>(),
      events: unused<EventService>(),
      metrics: { page: async () => ({ contentType: 'text/plain', text: '' }), scrapeToken: 'c' },
      ready: async () => ({ ready: true }),
    }),
  router: (t) => startBench(t),
  'router-public': async (t) => {
    const { public: listener, close } = await startBench(t);
    return { ...listener, close };
  },
  executor: () =>
    startExecutorServer({
      ...{ ...base, config, drainMs: 100, publicKey: '', tools: { failure: () => undefined } },
      rail: unused<ExecutorRail>(),
      streams: unused(),
      journal: unused({ submitters: { holder: () => undefined } }),
    }),
  neo: () =>
    startNeoServer({
      ...{ ...base, drainMs: 100, turnReports: undefined, config: unused(config), model: 'offline' },
      capabilities: unused(),
      questions: unused(),
      runner: unused({ state: () => ({ busy: false, queued: 0 }) }),
      store: unused(),
      feed: unused(),
    }),
};

const STATUS_WITHOUT_CREDENTIAL = { transport: 401, principal: 401, admin: 401, user: 401, person: 401 } as const;

for (const { name, routes } of APIS)
  test(`${name} serves the documented routes and no other, under the documented credential`, async (t) => {
    const server = await SERVERS[name]!(t);
    t.after(() => server.close());
    const lines = (all: readonly { method: string; path: string }[]) =>
      [...new Set(all.map(({ method, path }) => `${method} ${path}`))].sort();
    assert.deepEqual(lines(server.routes), lines(Object.values(routes)));
    for (const { method, path, credential } of Object.values(routes)) {
      // The signature of receipts is checked after their body.
      if (credential === 'machine') continue;
      // An address is the name of its alarm, and of none here.
      if (credential === 'hook') continue;
      const url = server.url + path.replaceAll(/\{\w+\}/g, 'x');
      const { status } = await fetch(url, { method: method.toUpperCase() });
      const expected = credential === 'none' || credential === 'metrics' ? 200 : STATUS_WITHOUT_CREDENTIAL[credential];
      assert.equal(status, expected, `${method} ${path} without a credential`);
    }
  });
