/** The provider `fly` on a fake Machines API. */
import { Agent } from 'undici';
import { createFlyProvider, type FlySpec } from '../../../src/router/providers/fly.ts';
import { createHealthProbe } from '../../../src/router/providers/health.ts';
import { loadAgents } from '../../../src/router/providers/provider-api.ts';
import { ShiftingClock } from '../../../src/router/testing/shifting-clock.ts';
import { type FakeFly, startFakeFly } from '../../support/stand-ins/fake-fly.ts';
import { ABOUT, keepingLog, type ProviderUnderTest } from './provider-under-test.ts';
import { openRecords } from './router-records.ts';

const APP = 'agents';
const MACHINE_ID = '148ed1234567';
const TOKEN = 'FlyV1 fm2_canaryAAAAAAAAAA,fm2_canaryBBBBBBBBBB';

export type FlyUnderTest = ProviderUnderTest & { fly: FakeFly };

export async function openFlyUnderTest(
  more: Partial<FlySpec> = {},
  apiToken: string | undefined = TOKEN,
): Promise<FlyUnderTest> {
  const records = openRecords();
  const clock = new ShiftingClock();
  const fly = await startFakeFly({ clock, app: APP, machineId: MACHINE_ID, token: TOKEN });
  const queries = new Agent({ connections: 4 });
  const { log, logged } = keepingLog();
  const openAgent = await loadAgents();
  const open = () =>
    createFlyProvider({
      apiToken: apiToken === '' ? undefined : apiToken,
      apiUrl: fly.url,
      awake: records.awake('fly', log),
      probe: createHealthProbe(queries, clock, 20),
      clock,
      log,
      openAgent,
    });
  let provider = open();
  const machine = {
    ...ABOUT,
    provider: 'fly' as const,
    spec: { app: APP, machine_id: MACHINE_ID, port: fly.machine.daemon.port, ...more },
  };
  return {
    fly,
    clock,
    provider,
    machine,
    changed: { ...machine, spec: { ...machine.spec, health_path: '/another' } },
    canaries: [ABOUT.token, TOKEN, 'fm2_canaryAAAAAAAAAA', 'fm2_canaryBBBBBBBBBB'],
    logged,
    starts: () => fly.machine.starts,
    running: () => (fly.machine.state === 'started' ? 1 : 0),
    setHealthy(healthy) {
      fly.machine.daemon.healthStatus = healthy ? 200 : 500;
    },
    failNext(text) {
      fly.next('start', { status: 422, body: { error: text } });
    },
    crash: () => fly.set('stopped'),
    async startElsewhere() {
      fly.machine.starts++;
      await fly.set('started');
    },
    async beginElsewhere() {
      fly.machine.starts++;
      await fly.set('starting');
      return () => fly.set('started');
    },
    hang: () => fly.hold('*'),
    reopen() {
      provider.close();
      records.reopen();
      provider = open();
      return provider;
    },
    async close() {
      provider.close();
      await fly.close();
      await queries.destroy();
      await records.close();
    },
  };
}
