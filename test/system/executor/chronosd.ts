/** A real chronosd with required enrolment, whose alarms wake no target. */
import type { TestContext } from 'node:test';
import { createChronosClient, holdPrincipal } from '../../../src/chronos/client.ts';
import { parseChronosConfig } from '../../../src/chronos/config.ts';
import { type RunningChronos, startChronos } from '../../../src/chronos/daemon.ts';
import { systemClock } from '../../../src/kit/clock/clock.ts';
import { agentIdentity } from '../../../src/kit/identity/agent.ts';
import { generateKey } from '../../../src/kit/identity/keys.ts';
import { silentLogger } from '../../../src/kit/log/log.ts';
import { temporaryFolder } from '../../support/temporary.ts';

const SECRETS = {
  CHRONOS_TOKEN: 'a-token-of-chronosd',
  CHRONOS_AGENT_AUTH_SECRET: 'an-auth-secret-of-chronosd',
  CHRONOS_ADMIN_TOKEN: 'an-admin-token-of-chronosd',
  CHRONOS_WAKE_TOKEN: 'a-wake-token-of-chronosd',
};

/** @param user whose agent is enrolled; every other key must be enrolled first */
export async function chronosd(t: TestContext, user: string) {
  const folder = temporaryFolder(t);
  const open = (port: number): Promise<RunningChronos> =>
    startChronos({
      config: parseChronosConfig({
        ...SECRETS,
        ...{ CHRONOS_PORT: String(port), CHRONOS_DATA_DIR: folder, CHRONOS_ENROLLMENT: 'required' },
        CHRONOS_ROUTER_WAKE_URL: 'http://127.0.0.1:9/internal/wake',
      }),
      clock: systemClock,
      log: silentLogger,
    });
  let latest = await open(0);
  t.after(() => latest.close());
  const { url, port } = latest;
  const admin = createChronosClient({ url, token: SECRETS.CHRONOS_TOKEN, adminToken: SECRETS.CHRONOS_ADMIN_TOKEN });
  const agent = generateKey();
  await admin.enrollAgent({ label: user, public_key: agent.publicKeyHex });
  const client = createChronosClient({
    ...{ url, token: SECRETS.CHRONOS_TOKEN },
    ...{ identity: agentIdentity(user, agent), principal: holdPrincipal() },
  });
  return {
    chronos: { url, token: SECRETS.CHRONOS_TOKEN },
    enrol: (publicKey: string) => admin.enrollAgent({ label: user, public_key: publicKey }),
    alarms: async () => (await client.listAlarms()).alarms,
    close: () => latest.close(),
    async reopen() {
      latest = await open(port);
    },
  };
}
