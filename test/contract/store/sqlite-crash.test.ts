import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { type TestContext, test } from 'node:test';
import { fileURLToPath } from 'node:url';
import type { AlarmState } from '../../../src/chronos/alarm/alarm.ts';
import { openSqliteStore } from '../../../src/chronos/store/sqlite/store.ts';
import type { AlarmStore } from '../../../src/chronos/store/store.ts';
import { systemClock } from '../../../src/kit/clock/clock.ts';
import { silentLogger } from '../../../src/kit/log/log.ts';
import { diceOf, rounds } from '../../support/random/random.ts';
import { ADA, alarmDue } from './fixtures.ts';

const ROUNDS = rounds(6, 20);

/** Ids of acknowledged alarms, over all rounds. */
type Acknowledged = { created: Set<string>; completed: Set<string> };

/** Runs a child on the store until it has acknowledged a number of operations, then kills it at any point. */
async function workUntilKilled(context: TestContext, path: string, lines: number, acknowledged: Acknowledged) {
  const script = fileURLToPath(new URL('./create-endlessly.ts', import.meta.url));
  const child = spawn(process.execPath, [script, path], { stdio: ['ignore', 'pipe', 'inherit'] });
  context.after(() => child.kill('SIGKILL'));
  const closed = once(child, 'close');
  let seen = 0;
  for await (const line of createInterface({ input: child.stdout })) {
    // The last line may have been cut off.
    if (!line.endsWith('}')) continue;
    const { created, completed } = JSON.parse(line);
    if (created) acknowledged.created.add(created);
    if (completed) acknowledged.completed.add(completed);
    if (++seen === lines) child.kill('SIGKILL');
  }
  await closed;
  assert.equal(child.signalCode, 'SIGKILL');
}

async function allAlarms(store: AlarmStore): Promise<Map<string, AlarmState>> {
  const states = new Map<string, AlarmState>();
  for (let before: string | undefined; ; ) {
    const page = await store.list(ADA, { limit: 500, ...(before && { before }) });
    if (page.length === 0) return states;
    for (const state of page) states.set(state.alarm.id, state);
    before = page.at(-1)?.alarm.id;
  }
}

async function check(store: AlarmStore, { created, completed }: Acknowledged): Promise<void> {
  const states = await allAlarms(store);
  for (const id of created) assert.ok(states.has(id), `${id} was acknowledged and is lost`);
  let open = 0;
  for (const [id, { alarm, occurrences }] of states) {
    const fired = alarm.status === 'fired';
    assert.ok(fired || !completed.has(id), `the outcome of ${id} was acknowledged and is lost`);
    assert.equal(occurrences.length, fired ? 0 : 1);
    assert.equal((await store.attempts(ADA, id, { limit: 10 })).length, fired ? 1 : 0);
    if (!fired) open++;
  }
  assert.deepEqual(await store.create(alarmDue(0), { maxActive: 0 }), { result: 'too_many', active: open });
}

test(`nothing acknowledged is lost and nothing is half done, in ${ROUNDS} kills at random moments`, async (t) => {
  const dice = diceOf(t);
  const folder = mkdtempSync(join(tmpdir(), 'reveille-crash-'));
  t.after(() => rmSync(folder, { recursive: true }));
  const path = join(folder, 'chronos.db');
  const acknowledged: Acknowledged = { created: new Set(), completed: new Set() };

  for (let round = 0; round < ROUNDS; round++) {
    await workUntilKilled(t, path, 1 + dice(300), acknowledged);
    const store = openSqliteStore({ path, clock: systemClock, log: silentLogger });
    try {
      await check(store, acknowledged);
    } finally {
      await store.close();
    }
  }
  const { created, completed } = acknowledged;
  t.diagnostic(`${ROUNDS} kills: 0 of ${created.size} acknowledged alarms lost, 0 of ${completed.size} outcomes`);
});
