/** Each daemon's own setting limits its connections; the tests of `kit/http` cover the mechanism. */
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { connect, type Socket } from 'node:net';
import { type TestContext, test } from 'node:test';
import { parseNeoConfig } from '../../../src/agents/neo/config.ts';
import { startedNeo } from '../../../src/agents/neo/testing/workbench.ts';
import { parseChronosConfig } from '../../../src/chronos/config.ts';
import { startChronos } from '../../../src/chronos/daemon.ts';
import { systemClock } from '../../../src/kit/clock/clock.ts';
import { silentLogger } from '../../../src/kit/log/log.ts';
import { startBench } from '../../../src/router/testing/bench.ts';
import { temporaryFolder } from '../../support/temporary.ts';
import { startedExecutor } from '../executor/executor-bench.ts';

const MOST = 16;
const MORE = 8;
const environment = { clock: systemClock, log: silentLogger };

/** The URL of a listener with `<prefix>_MAX_CONNECTIONS` of {@link MOST}. */
const LISTENERS: Record<string, (t: TestContext, bound: Record<string, string>) => Promise<string>> = {
  async CHRONOS(t, bound) {
    const settings = { CHRONOS_DATA_DIR: temporaryFolder(t), CHRONOS_PORT: '0', CHRONOS_DEV: '1', ...bound };
    const chronos = await startChronos({ config: parseChronosConfig(settings), ...environment });
    t.after(() => chronos.close());
    return chronos.url;
  },
  ROUTER: async (t, settings) => (await startBench(t, { settings })).url,
  ROUTER_PUBLIC: async (t, settings) => (await startBench(t, { settings })).public.url,
  EXECUTOR: async (t, bound) => (await startedExecutor(t, temporaryFolder(t), bound)).url,
  async NEO(t, bound) {
    const settings = { NEO_DAEMON_TOKEN: 'a-token-of-the-tests', NEO_DATA_DIR: '/d', ...bound };
    return (await startedNeo(t, { config: { listener: parseNeoConfig(settings).listener! } })).url;
  },
};

async function answers(socket: Socket): Promise<boolean> {
  socket.write('GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n');
  const [first] = await Promise.race([once(socket, 'data'), once(socket, 'close')]);
  return Buffer.isBuffer(first) && first.toString('latin1').startsWith('HTTP/1.1 200 ');
}

for (const [prefix, start] of Object.entries(LISTENERS))
  test(`${prefix}_MAX_CONNECTIONS limits the connections of its listener, and those within it are served`, async (t) => {
    const { hostname, port } = new URL(await start(t, { [`${prefix}_MAX_CONNECTIONS`]: String(MOST) }));
    const open = new Set<Socket>();
    let closed = 0;
    const enough = Promise.withResolvers<void>();
    for (let n = 0; n < MOST + MORE; n++) {
      const socket = connect({ host: hostname.replace(/^\[|\]$/g, ''), port: Number(port) });
      open.add(socket);
      t.after(() => socket.destroy());
      socket
        .on('error', () => {})
        .once('close', () => {
          open.delete(socket);
          if (++closed === MORE) enough.resolve();
        });
      await Promise.race([once(socket, 'connect'), once(socket, 'close')]);
      socket.resume();
    }
    await enough.promise;
    assert.equal(open.size, MOST);
    // A connection that was only too slow to send a request would be closed as well, and answers nothing.
    const served = await Promise.all([...open].map((socket) => answers(socket)));
    assert.equal(served.filter(Boolean).length, MOST);
  });
