/** The provider `process`, with real processes. */
import { rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { Agent } from 'undici';
import { createHealthProbe } from '../../../src/router/providers/health.ts';
import { Isolation } from '../../../src/router/providers/isolation.ts';
import { ProcessProvider } from '../../../src/router/providers/process-provider.ts';
import { ProcessRecords } from '../../../src/router/providers/process-records.ts';
import { DAEMON_FIXTURE, eventsOf, isAlive } from '../../../src/router/testing/bench.ts';
import { ShiftingClock } from '../../../src/router/testing/shifting-clock.ts';
import { eventually } from '../../support/eventually.ts';
import { ABOUT, keepingLog, type ProviderUnderTest } from './provider-under-test.ts';
import { openRecords } from './router-records.ts';

const SECRET = 'canary-variable-of-the-process-0123456';

export async function openProcessUnderTest(): Promise<ProviderUnderTest> {
  const records = openRecords();
  const { folder } = records;
  const clock = new ShiftingClock();
  const queries = new Agent({ connections: 4 });
  const { log, logged } = keepingLog();
  const open = () =>
    new ProcessProvider({
      records: new ProcessRecords(records.registry.file, records.registry.commits),
      probe: createHealthProbe(queries, clock, 20),
      logFolder: join(folder, 'logs'),
      connections: 4,
      environment: { PATH: process.env.PATH },
      isolation: new Isolation({ machines: () => [] }),
      clock,
      log,
    });
  let provider = open();
  const flag = (name: string, on: boolean, text = '') => {
    if (on) writeFileSync(join(folder, name), text);
    else rmSync(join(folder, name), { force: true });
  };
  const spec = { command: [process.execPath, DAEMON_FIXTURE], env: { FIXTURE_DIR: folder, API_KEY: SECRET } };
  const machine = { ...ABOUT, provider: 'process' as const, spec };
  const pids = () => eventsOf(folder, 'start').map(({ pid }) => pid);
  return {
    clock,
    provider,
    machine,
    changed: { ...machine, spec: { ...spec, env: { ...spec.env, MORE: 'yes' } } },
    canaries: [ABOUT.token, SECRET],
    logged,
    starts: () => pids().length,
    running: () => pids().filter(isAlive).length,
    setHealthy: (healthy) => flag('sick', !healthy),
    failNext: (message) => flag('fail', true, message),
    async crash() {
      for (const pid of pids().filter(isAlive)) process.kill(pid, 'SIGKILL');
      await eventually('it is noticed', () => logged().includes('a process ended'));
    },
    reopen() {
      provider.close();
      records.reopen();
      provider = open();
      return provider;
    },
    async close() {
      await provider.stop(machine);
      provider.close();
      for (const pid of pids().filter(isAlive)) process.kill(pid, 'SIGKILL');
      await queries.destroy();
      await records.close();
    },
  };
}
