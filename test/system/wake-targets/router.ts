/** A router with the stand-in agents on its PATH, for the tests of wake targets. */
import assert from 'node:assert/strict';
import { mkdirSync, realpathSync } from 'node:fs';
import { join } from 'node:path';
import type { TestContext } from 'node:test';
import { type Bench, startBench } from '../../../src/router/testing/bench.ts';
import { ShiftingClock } from '../../../src/router/testing/shifting-clock.ts';
import type { MachineTurnList, MachineTurnView } from '../../../src/wire/machine-turn.ts';
import { eventually } from '../../support/eventually.ts';
import { endAgents, installAgent } from '../../support/stand-ins/agents/executable.ts';
import { atEnd, temporaryFolder } from '../../support/temporary.ts';

export type TargetBench = Bench & {
  clock: ShiftingClock;
  /** HOME of the agents: their sessions, calls and modes. */
  home: string;
  /** Their working folder. */
  work: string;
  /** The folder of a user's own presets. */
  presets: string;
  dataDir: string;
  environment: NodeJS.ProcessEnv;
  turns(userId: string, query?: string): Promise<MachineTurnList>;
  /** The turn of a wake, when it has entered a state. */
  turn(userId: string, turnId: string, status: MachineTurnView['status'] | 'over'): Promise<MachineTurnView>;
  /** Wakes and waits for the end of the turn. */
  wakeToEnd(userId: string, more?: object): Promise<MachineTurnView>;
};

const OVER = new Set<string>(['accepted', 'done', 'failed', 'unknown']);

/** @param again starts another router on the data of an earlier one */
export async function startTargetBench(
  t: TestContext,
  again?: Pick<TargetBench, 'home' | 'dataDir'>,
): Promise<TargetBench> {
  const home = again?.home ?? realpathSync(temporaryFolder(t));
  const bin = join(home, 'bin');
  const work = join(home, 'work');
  const presets = join(home, 'presets');
  if (!again) {
    for (const folder of [work, presets]) mkdirSync(folder);
    for (const name of ['claude', 'codex', 'gemini', 'plain'] as const) installAgent(bin, name);
  }
  const environment = {
    PATH: `${bin}:/usr/bin:/bin`,
    HOME: home,
    ROUTER_WAKE_TOKEN: 'canary-of-the-house',
    LANG: 'C.UTF-8',
  };
  const clock = new ShiftingClock();
  // After the router has closed.
  atEnd(t, () => endAgents(home));
  const settings = { REVEILLE_HOME: home, ...(again ? { ROUTER_DATA_DIR: again.dataDir } : {}) };
  const bench = await startBench(t, { clock, environment, settings });
  const turns = async (userId: string, query = '') => {
    const answer = await bench.admin('GET', `/${userId}/turns${query}`);
    assert.equal(answer.status, 200, answer.text);
    return answer.json.data as unknown as MachineTurnList;
  };
  const turn: TargetBench['turn'] = (userId, turnId, status) =>
    eventually(`turn ${turnId} is ${status}`, async () => {
      const found = (await turns(userId)).turns.find(({ id }) => id === turnId);
      const there = status === 'over' ? OVER.has(found?.status ?? '') : found?.status === status;
      if (!there && OVER.has(found?.status ?? '')) assert.fail(`the turn has ended: ${JSON.stringify(found)}`);
      return there && found;
    });
  return {
    ...bench,
    ...{ clock, home, work, presets, environment, turns, turn },
    async wakeToEnd(userId, more = {}) {
      const answer = await bench.wake(userId, more);
      assert.ok(answer.status === 202, `${answer.status} ${answer.text}`);
      return await turn(userId, answer.json.data.turn_id!, 'over');
    },
  };
}
