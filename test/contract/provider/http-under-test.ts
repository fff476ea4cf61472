/** The provider `http`, with a daemon that is always on. */
import { Agent } from 'undici';
import { createHealthProbe } from '../../../src/router/providers/health.ts';
import { createHttpProvider } from '../../../src/router/providers/http.ts';
import { ShiftingClock } from '../../../src/router/testing/shifting-clock.ts';
import { createFakeDaemon } from '../../support/stand-ins/fake-daemon.ts';
import { ABOUT, keepingLog, type ProviderUnderTest } from './provider-under-test.ts';

export async function openHttpUnderTest(): Promise<ProviderUnderTest> {
  const daemon = createFakeDaemon({ host: '127.0.0.1', samePort: true });
  await daemon.up();
  const clock = new ShiftingClock();
  const queries = new Agent({ connections: 4 });
  const open = () => createHttpProvider(createHealthProbe(queries, clock, 20));
  const url = `http://127.0.0.1:${daemon.port}`;
  const machine = { ...ABOUT, provider: 'http' as const, spec: { url } };
  return {
    clock,
    provider: open(),
    machine,
    changed: { ...machine, spec: { url: `${url}/elsewhere` } },
    canaries: [ABOUT.token],
    logged: keepingLog().logged,
    starts: () => 0,
    running: () => (daemon.isUp ? 1 : 0),
    setHealthy(healthy) {
      daemon.healthStatus = healthy ? 200 : 500;
    },
    failNext() {
      daemon.healthStatus = 500;
    },
    crash: () => daemon.down(),
    hang() {
      daemon.freeze();
      return () => void daemon.up();
    },
    reopen: open,
    async close() {
      await daemon.down();
      await queries.destroy();
    },
  };
}
