/** chronosd and a router in this process, connected to each other, for the tests of turn reports. */

import assert from 'node:assert/strict';
import { mkdirSync, realpathSync } from 'node:fs';
import { join } from 'node:path';
import type { TestContext } from 'node:test';
import { openAgentHost } from '../../src/agents/host.ts';
import {
  type AlarmCreateBody,
  createChronosClient,
  holdPrincipal,
  type PersonProver,
} from '../../src/chronos/client.ts';
import { parseChronosConfig } from '../../src/chronos/config.ts';
import { type RunningChronos, startChronos } from '../../src/chronos/daemon.ts';
import { systemClock } from '../../src/kit/clock/clock.ts';
import { agentIdentity } from '../../src/kit/identity/agent.ts';
import { generateKey } from '../../src/kit/identity/keys.ts';
import { silentLogger } from '../../src/kit/log/log.ts';
import type { Sandbox } from '../../src/kit/process/isolation.ts';
import { parseRouterConfig } from '../../src/router/config.ts';
import { startRouter } from '../../src/router/daemon.ts';
import type { ServicesOf } from '../../src/router/public/listener.ts';
import { ADMIN_TOKEN, clientOf, WAKE_TOKEN } from '../../src/router/testing/bench.ts';
import type { FireView } from '../../src/wire/alarm.ts';
import { ReveilleError } from '../../src/wire/errors.ts';
import { eventually } from '../support/eventually.ts';
import { reservePort } from '../support/ports.ts';
import { atEnd, temporaryFolder } from '../support/temporary.ts';

const TRANSPORT = 'transport-token-of-the-tests';
export const USER = 'alice';

export type ChronosdWithRouter = Awaited<ReturnType<typeof openChronosdWithRouter>>;

/**
 * @param environment of the router; processes get the allow-listed part
 * @param settings additional settings of chronosd
 * @param router additional settings of the router, and the sandbox of its machines
 */
export async function openChronosdWithRouter(
  t: TestContext,
  environment: NodeJS.ProcessEnv = process.env,
  settings: Readonly<Record<string, string>> = {},
  {
    routerSettings = {},
    sandbox,
    servicesOf,
  }: {
    routerSettings?: Readonly<Record<string, string>>;
    sandbox?: Sandbox;
    servicesOf?: ServicesOf;
  } = {},
) {
  const folder = realpathSync(temporaryFolder(t));
  let chronos: RunningChronos | undefined;
  let chronosUrl: string | undefined;
  const router = await startRouter({
    openAgents: openAgentHost,
    config: parseRouterConfig({
      ...{
        ROUTER_PORT: '0',
        ROUTER_PUBLIC_PORT: '0',
        ROUTER_DATA_DIR: join(folder, 'router'),
        ROUTER_ORPHAN_SECONDS: '0',
      },
      ...{ ROUTER_WAKE_TOKEN: WAKE_TOKEN, ROUTER_ADMIN_TOKEN: ADMIN_TOKEN, ...routerSettings },
    }),
    sandbox,
    ...{ clock: systemClock, log: silentLogger, version: '0.0.0', environment, servicesOf },
    chronosUrl: () => chronosUrl,
  });
  const chronosPort = await reservePort();
  const openChronos = async () => {
    chronos = await startChronos({
      config: parseChronosConfig({
        CHRONOS_PORT: String(chronosPort),
        CHRONOS_DATA_DIR: join(folder, 'chronos'),
        ...{ CHRONOS_TOKEN: TRANSPORT, CHRONOS_WAKE_TOKEN: WAKE_TOKEN, CHRONOS_DEV: '1' },
        CHRONOS_AGENT_AUTH_SECRET: 'a secret for principals, kept over restarts',
        CHRONOS_ROUTER_WAKE_URL: `${router.url}/internal/wake`,
        ...settings,
      }),
      ...{ clock: systemClock, log: silentLogger },
    });
    chronosUrl = chronos.url;
  };
  await openChronos();
  atEnd(t, () => router.close());
  atEnd(t, () => chronos?.close());
  const identity = agentIdentity(USER, generateKey());
  // One proof for all queries: a test polls often, and proofs are limited per minute.
  const principal = holdPrincipal();
  const client = (person?: PersonProver) =>
    createChronosClient({ url: chronosUrl!, token: TRANSPORT, identity, principal, person });
  const fires = async (alarmId: string) => (await client().listFires(alarmId)).fires;
  mkdirSync(join(folder, 'work'));

  return {
    ...clientOf(router.url),
    folder,
    work: join(folder, 'work'),
    routerUrl: router.url,
    publicUrl: router.public.url,
    get chronosUrl() {
      return chronosUrl!;
    },
    closeChronos: () => chronos!.close(),
    openChronos,
    client,
    /** Sets an alarm that fires in a second, in its own conversation. @param more other fields */
    async setAlarm(more: Partial<AlarmCreateBody> = {}): Promise<string> {
      const { id } = await client().createAlarm({ kind: 'once', wake_message: 'go on', delay_seconds: 1, ...more });
      return id;
    },
    fires,
    /** The first line of an alarm's ledger, once it has the expected content. */
    fire: (alarmId: string, what: string, fits: (fire: FireView) => boolean): Promise<FireView> =>
      eventually(what, async () => {
        const [fire] = await fires(alarmId).catch((error: unknown) => {
          // A connection that was kept to the previous chronosd.
          if (error instanceof ReveilleError && error.retryable) return [];
          throw error;
        });
        return fire !== undefined && fits(fire) && fire;
      }),
    finished(alarmId: string): Promise<FireView> {
      return this.fire(alarmId, 'the turn is reported finished', ({ reached }) => reached === 'turn_finished');
    },
  };
}

/** Checks the order of a fire's events: each follows its cause. */
export function assertInOrder(fire: FireView): void {
  const { started_at, machine_ready_at, accepted_at, turn } = fire;
  const instants = [fire.scheduled_for, started_at, machine_ready_at, turn?.started_at, turn?.finished_at]
    .filter((instant) => instant !== undefined)
    .map((instant) => Date.parse(instant));
  // The machine's clock is this computer's; a millisecond may pass between two readings.
  for (const [n, instant] of instants.entries())
    assert.ok(n === 0 || instant >= instants[n - 1]! - 1, JSON.stringify(fire));
  assert.ok(accepted_at === undefined || machine_ready_at === undefined || accepted_at >= machine_ready_at);
}
