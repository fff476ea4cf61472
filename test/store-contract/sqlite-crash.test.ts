import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { type TestContext, test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { openSqliteStore } from '../../src/chronos/store/sqlite/store.ts';
import type { AlarmStore } from '../../src/chronos/store/store.ts';
import { systemClock } from '../../src/clock/clock.ts';
import { silentLogger } from '../../src/log/log.ts';
import { alarmDue } from './fixtures.ts';

const ROUNDS = 20;

type Acknowledged = { created: Set<string>; completed: Set<string> };

/** Lets a child work on the store until it has acknowledged so much, then kills it in the middle of whatever it does. */
async function workUntilKilled(
  context: TestContext,
  path: string,
  owner: string,
  lines: number,
): Promise<Acknowledged> {
  const script = fileURLToPath(new URL('./create-endlessly.ts', import.meta.url));
  const child = spawn(process.execPath, [script, path, owner], { stdio: ['ignore', 'pipe', 'inherit'] });
  context.after(() => child.kill('SIGKILL'));
  const closed = once(child, 'close');
  const acknowledged: Acknowledged = { created: new Set(), completed: new Set() };
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
  return acknowledged;
}

/** All alarms of an owner, by id. */
async function allOf(store: AlarmStore, owner: string) {
  const states = new Map();
  for (let before: string | undefined; ; ) {
    const page = await store.list(owner, { limit: 500, ...(before && { before }) });
    if (page.length === 0) return states;
    for (const state of page) states.set(state.alarm.id, state);
    before = page.at(-1)?.alarm.id;
  }
}

test(`nothing acknowledged is lost, and nothing is half done, in ${ROUNDS} kills at random moments`, async (t) => {
  const folder = mkdtempSync(join(tmpdir(), 'reveille-crash-'));
  t.after(() => rmSync(folder, { recursive: true }));
  const path = join(folder, 'chronos.db');
  let kept = 0;

  for (let round = 0; round < ROUNDS; round++) {
    const owner = `owner-${round}`;
    const { created, completed } = await workUntilKilled(t, path, owner, 1 + Math.floor(Math.random() * 300));

    const store = openSqliteStore({ path, clock: systemClock, log: silentLogger });
    try {
      const states = await allOf(store, owner);
      for (const id of created) assert.ok(states.has(id), `round ${round}: ${id} was acknowledged and is gone`);
      let open = 0;
      for (const [id, { alarm, occurrences }] of states) {
        const attempts = await store.attempts(alarm.owner, id, { limit: 10 });
        const fired = alarm.status === 'fired';
        assert.ok(fired || !completed.has(id), `round ${round}: the outcome of ${id} was acknowledged and is gone`);
        assert.equal(occurrences.length, fired ? 0 : 1);
        assert.equal(attempts.length, fired ? 1 : 0);
        if (!fired) open++;
      }
      const refused = await store.create(alarmDue(0, { owner }), { maxActive: 0 });
      assert.deepEqual(refused, { result: 'too_many', active: open });
      kept += created.size;
    } finally {
      await store.close();
    }
  }
  t.diagnostic(`${kept} acknowledged alarms, 0 lost in ${ROUNDS} kills`);
});
