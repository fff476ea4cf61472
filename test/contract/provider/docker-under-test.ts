/** The provider `docker` on a fake engine, behind a real Unix socket. */
import { join } from 'node:path';
import { Agent } from 'undici';
import { createDockerProvider, type DockerSpec } from '../../../src/router/providers/docker.ts';
import { createHealthProbe } from '../../../src/router/providers/health.ts';
import { loadAgents } from '../../../src/router/providers/provider-api.ts';
import { ShiftingClock } from '../../../src/router/testing/shifting-clock.ts';
import { type FakeContainer, type FakeDocker, startFakeDocker } from '../../support/stand-ins/fake-docker.ts';
import { ABOUT, keepingLog, type ProviderUnderTest } from './provider-under-test.ts';
import { openRecords } from './router-records.ts';

const SECRET = 'canary-variable-of-the-container-0123';
export const PORT = 8080;

export type DockerUnderTest = ProviderUnderTest & { engine: FakeDocker; container: FakeContainer };

export async function openDockerUnderTest(
  sleep?: DockerSpec['sleep'],
  { tcp = false }: { tcp?: boolean } = {},
): Promise<DockerUnderTest> {
  const records = openRecords();
  const socketPath = join(records.folder, 'docker.sock');
  const listen = tcp ? { host: '127.0.0.1', port: 0 } : { path: socketPath };
  const engine = await startFakeDocker({ listen, containers: ['neo', 'other'], port: PORT });
  const container = engine.container('neo');
  const other = engine.container('other');
  container.env.push(`MODEL_API_KEY=${SECRET}`);
  const clock = new ShiftingClock();
  const queries = new Agent({ connections: 4 });
  const { log, logged } = keepingLog();
  const openAgent = await loadAgents();
  const open = () =>
    createDockerProvider({
      dockerHost: tcp ? engine.url.replace('http:', 'tcp:') : `unix://${socketPath}`,
      awake: records.awake('docker', log),
      probe: createHealthProbe(queries, clock, 20),
      clock,
      log,
      openAgent,
    });
  let provider = open();
  const machine = {
    ...ABOUT,
    provider: 'docker' as const,
    spec: { container: 'neo', port: PORT, ...(sleep ? { sleep } : {}) },
  };
  return {
    engine,
    container,
    clock,
    provider,
    machine,
    changed: { ...machine, spec: { ...machine.spec, container: 'other' } },
    canaries: [ABOUT.token, SECRET],
    logged,
    starts: () => container.starts + other.starts,
    running: () => [container, other].filter(({ status }) => status === 'running').length,
    setHealthy(healthy) {
      container.daemon.healthStatus = healthy ? 200 : 500;
    },
    failNext(text) {
      container.diesAtOnce = { code: 3, says: text };
    },
    async crash() {
      container.exitCode = 137;
      await engine.set('neo', 'exited');
    },
    async startElsewhere() {
      container.starts++;
      await engine.set('neo', 'running');
    },
    async beginElsewhere() {
      container.starts++;
      await engine.set('neo', 'restarting');
      return () => engine.set('neo', 'running');
    },
    hang: () => engine.hold('*'),
    reopen() {
      provider.close();
      records.reopen();
      provider = open();
      return provider;
    },
    async close() {
      provider.close();
      await engine.close();
      await queries.destroy();
      await records.close();
    },
  };
}
