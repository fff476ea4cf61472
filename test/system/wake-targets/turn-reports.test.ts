import assert from 'node:assert/strict';
import { once } from 'node:events';
import { realpathSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import { type TestContext, test } from 'node:test';
import { Agent } from 'undici';
import { LocalAgentHost as Targets } from '../../../src/agents/host.ts';
import { turnReportKey } from '../../../src/kit/identity/webhook-signature.ts';
import { silentLogger } from '../../../src/kit/log/log.ts';
import type { CommandMachine } from '../../../src/router/machines/machine.ts';
import { Isolation } from '../../../src/router/providers/isolation.ts';
import { wakeBody } from '../../../src/router/testing/bench.ts';
import { ShiftingClock } from '../../../src/router/testing/shifting-clock.ts';
import { parseOrThrow } from '../../../src/wire/validate.ts';
import { type Wake, wakeRequestSchema } from '../../../src/wire/wake.ts';
import { eventually } from '../../support/eventually.ts';
import { behave, callsIn, installAgent } from '../../support/stand-ins/agents/executable.ts';
import { atEnd, temporaryFolder } from '../../support/temporary.ts';

/** Accepts turn reports; returns them as `<stage> <ok>`. */
async function startReceiver(t: TestContext) {
  const taken: string[] = [];
  const server = createServer(async (request, response) => {
    const { receipts } = JSON.parse(await text(request)) as { receipts: { stage: string; ok?: boolean }[] };
    for (const { stage, ok } of receipts) taken.push(`${stage} ${ok}`);
    response.end('{"ok":true,"data":{}}');
  }).listen(0, '127.0.0.1');
  await once(server, 'listening');
  atEnd(t, () => {
    server.closeAllConnections();
    server.close();
  });
  return { taken, url: `http://127.0.0.1:${(server.address() as AddressInfo).port}` };
}

function startTargets(t: TestContext, home: string, url: () => string | undefined) {
  const clock = new ShiftingClock();
  const dispatcher = new Agent();
  const about = { idleSeconds: null, budget: null, token: 'token-of-the-target', createdAt: 0, updatedAt: 0 };
  const spec = { preset: 'claude', cwd: home };
  const machine: CommandMachine = { userId: 'alice', state: 'active', provider: 'command', spec, ...about };
  const targets = new Targets({
    ...{
      dataDir: join(home, 'router'),
      presetFolder: join(home, 'presets'),
      channelFolder: '/nowhere',
      dispatcher,
      clock,
      log: silentLogger,
    },
    environment: { PATH: `${join(home, 'bin')}:/usr/bin:/bin`, HOME: home },
    isolation: new Isolation({ machines: () => [] }),
    machineOf: () => machine,
    suspend: () => Promise.resolve(),
    turnReports: { url, keyOf: () => turnReportKey(machine.token) },
  });
  targets.recover();
  atEnd(t, () => dispatcher.destroy());
  atEnd(t, () => targets.close());
  const wake = () =>
    targets.wake(machine, parseOrThrow(wakeRequestSchema, wakeBody('alice')) as Wake, new AbortController().signal);
  return { targets, wake, clock };
}

function homeWithClaude(t: TestContext): string {
  const home = realpathSync(temporaryFolder(t));
  installAgent(join(home, 'bin'), 'claude');
  return home;
}

test('the next router delivers the turn reports that one router could not', async (t) => {
  const home = homeWithClaude(t);
  const firstRouter = startTargets(t, home, () => undefined);
  await firstRouter.wake();
  await eventually('the turn has ended', () => firstRouter.targets.store.counts('alice').done === 1);
  await firstRouter.targets.close();
  const { taken, url } = await startReceiver(t);
  startTargets(t, home, () => url);
  await eventually('both are reported', () => taken.length === 2);
  assert.deepEqual(taken, ['turn_started undefined', 'turn_finished true']);
});

test('a long turn is reported started before it ends', async (t) => {
  const home = homeWithClaude(t);
  behave(home, { mode: 'wait' });
  const { taken, url } = await startReceiver(t);
  const { wake, clock } = startTargets(t, home, () => url);
  await wake();
  await eventually('the program runs', () => callsIn(home).length === 1);
  await eventually('the start is certain', () => {
    clock.advance(6000);
    return taken.length > 0;
  });
  assert.deepEqual(taken, ['turn_started undefined']);
  writeFileSync(join(home, 'go'), '');
  await eventually('the end is reported', () => taken.includes('turn_finished true'));
});
