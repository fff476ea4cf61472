import assert from 'node:assert/strict';
import { realpathSync } from 'node:fs';
import { join } from 'node:path';
import { type TestContext, test } from 'node:test';
import { Agent } from 'undici';
import { LocalAgentHost as Targets } from '../../../src/agents/host.ts';
import { silentLogger } from '../../../src/kit/log/log.ts';
import type { CommandMachine } from '../../../src/router/machines/machine.ts';
import type { CommandSpec } from '../../../src/router/providers/command.ts';
import { Isolation } from '../../../src/router/providers/isolation.ts';
import { wakeBody } from '../../../src/router/testing/bench.ts';
import { ShiftingClock } from '../../../src/router/testing/shifting-clock.ts';
import type { TurnStage } from '../../../src/turns/turn-view.ts';
import { parseOrThrow } from '../../../src/wire/validate.ts';
import { type Wake, wakeRequestSchema } from '../../../src/wire/wake.ts';
import { eventually } from '../../support/eventually.ts';
import { behave, callsIn, endAgents, installAgent } from '../../support/stand-ins/agents/executable.ts';
import { answer, startHttpAgent } from '../../support/stand-ins/http-agent.ts';
import { atEnd, temporaryFolder } from '../../support/temporary.ts';

function start(t: TestContext) {
  const home = realpathSync(temporaryFolder(t));
  for (const name of ['claude', 'codex'] as const) installAgent(join(home, 'bin'), name);
  const stages: TurnStage[] = [];
  const clock = new ShiftingClock();
  const dispatcher = new Agent();
  let machine: CommandMachine | undefined;
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
    onStage: (stage) => stages.push(stage),
  });
  targets.recover();
  atEnd(t, () => endAgents(home));
  atEnd(t, () => dispatcher.destroy());
  atEnd(t, () => targets.close());
  const wake = (spec: CommandSpec) => {
    const about = { idleSeconds: null, budget: null, token: 'token-of-the-target', createdAt: 0, updatedAt: 0 };
    machine = { userId: 'alice', state: 'active', provider: 'command', spec, ...about };
    return targets.wake(
      machine,
      parseOrThrow(wakeRequestSchema, wakeBody('alice')) as Wake,
      new AbortController().signal,
    );
  };
  const until = (stage: TurnStage['stage']) => eventually(stage, () => stages.some((report) => report.stage === stage));
  const waits = () => eventually('it waits', () => targets.store.unfinished().some((turn) => turn.waits !== undefined));
  return { home, stages, clock, wake, until, waits };
}

test('a turn is reported when it is accepted, when it has begun, and with its outcome when it has ended', async (t) => {
  const { home, stages, wake, until } = start(t);
  assert.equal((await wake({ preset: 'claude', cwd: home })).status, 202);
  await until('turn_finished');
  assert.deepEqual(
    stages.map(({ stage }) => stage),
    ['accepted', 'turn_started', 'turn_finished'],
  );
  const [accepted, started, finished] = stages;
  assert.ok(accepted!.at <= started!.at && started!.at <= finished!.at);
  assert.ok(finished?.stage === 'turn_finished' && finished.ok === true);
  assert.match(finished.result ?? '', /^heard/);
  assert.equal(new Set(stages.map(({ fire_id, turn_id }) => `${fire_id} ${turn_id}`)).size, 1);
});

test('a turn that waits for a busy target is not reported as begun', async (t) => {
  const { home, stages, clock, wake, until, waits } = start(t);
  behave(home, { mode: 'writer', times: 1 });
  await wake({ preset: 'codex', cwd: home });
  await waits();
  assert.equal(callsIn(home).length, 1);
  await eventually('it is tried again', () => {
    clock.advance(1_000);
    return callsIn(home).length === 2;
  });
  await until('turn_finished');
  assert.deepEqual(
    stages.map(({ stage }) => stage),
    ['accepted', 'turn_started', 'turn_finished'],
  );
});

test('a long turn is reported as begun while it runs', async (t) => {
  const { home, stages, clock, wake, until } = start(t);
  behave(home, { mode: 'hang' });
  await wake({ preset: 'claude', cwd: home });
  await eventually('it runs', () => callsIn(home).length === 1);
  clock.advance(5_000);
  await until('turn_started');
  assert.equal(stages.length, 2);
});

test('a turn that is handed over is reported as accepted and no more', async (t) => {
  const { stages, wake } = start(t);
  const receiver = await startHttpAgent((_, response) => answer(response, 200, {}));
  atEnd(t, () => receiver.close());
  assert.equal((await wake({ preset: 'webhook', url: receiver.url, allow_private: true })).status, 202);
  assert.deepEqual(
    stages.map(({ stage }) => stage),
    ['accepted'],
  );
});
