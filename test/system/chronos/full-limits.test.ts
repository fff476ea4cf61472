/** Work and bytes, at the documented limits of what others send: they do not grow with the number of requests. */
import assert from 'node:assert/strict';
import { statSync } from 'node:fs';
import { join } from 'node:path';
import { type TestContext, test } from 'node:test';
import type { AlarmState } from '../../../src/chronos/alarm/alarm.ts';
import { EVENTS_WAITING_MAX, eventStateOf, waitingEvents } from '../../../src/chronos/alarm/events.ts';
import { hookPathOf, TIMELESS_EVENT, UNNAMED_EVENT, withHookSecret } from '../../../src/chronos/alarm/hook.ts';
import { parseChronosConfig } from '../../../src/chronos/config.ts';
import { startChronos } from '../../../src/chronos/daemon.ts';
import { KNOWN_EVENTS } from '../../../src/chronos/store/event-rows.ts';
import { openSqliteStore } from '../../../src/chronos/store/sqlite/store.ts';
import type { AlarmStore } from '../../../src/chronos/store/store.ts';
import { systemClock } from '../../../src/kit/clock/clock.ts';
import { silentLogger } from '../../../src/kit/log/log.ts';
import type { AlarmCreate } from '../../../src/wire/alarm.ts';
import { arrivalFor, createWaiting, eventOf } from '../../contract/store/events.ts';
import { ADA, NOW } from '../../contract/store/fixtures.ts';
import { atEnd, temporaryFolder } from '../../support/temporary.ts';

const SECRET = 'whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw';
const kindOf = (fields: object) => ({ kind: 'event', ...fields }) as Partial<AlarmCreate>;
const path = (fields: object = {}) =>
  kindOf({ event: { source: 'webhook', verify: 'path', repeat: 'always', ...fields } });
const heartbeat = kindOf({ expect: { every: 'P1D' } });

const openIn = (folder: string) =>
  openSqliteStore({ path: join(folder, 'chronos.db'), clock: systemClock, log: silentLogger });

/** Events that are over as soon as they came, a second apart. */
async function pass(store: AlarmStore, { alarm }: AlarmState, count: number, idOf: (n: number) => string) {
  for (let from = 0; from < count; from += 500) {
    const events = Array.from({ length: 500 }, (_, n) =>
      eventOf(from + n, { id: idOf(from + n), receivedAt: NOW + (from + n) * 1000 }),
    );
    await store.recordEvents(arrivalFor({ alarm } as AlarmState, events));
    await store.dropEvents(ADA, alarm.id, Number.MAX_SAFE_INTEGER);
  }
}

/** What senders may repeat without end, and the ids that their events get. */
const SENDERS: readonly [what: string, fields: Partial<AlarmCreate>, idOf: (n: number) => string][] = [
  ['calls of a heartbeat', heartbeat, (n) => `${UNNAMED_EVENT}${n}`],
  ['calls of a heartbeat with ids', heartbeat, (n) => `path:${n}`],
  ['events without ids at a secret address', path({ batch_up_to: 1000 }), (n) => `${UNNAMED_EVENT}${n}`],
  ['signed events', path({ batch_up_to: 1000 }), (n) => `standard:${n}`],
  ['events of GitHub', path({ batch_up_to: 1000 }), (n) => `${TIMELESS_EVENT}${n}`],
];

for (const [what, fields, idOf] of SENDERS)
  test(`the disk space of ${what} does not grow with their number`, async (t) => {
    const sizes: number[] = [];
    for (const count of [4500, 9000]) {
      const folder = temporaryFolder(t);
      const store = openIn(folder);
      await pass(store, await createWaiting(store, fields), count, idOf);
      await store.close();
      sizes.push(statSync(join(folder, 'chronos.db')).size);
    }
    assert.ok(sizes[1]! < sizes[0]! * 1.2, sizes.join(' '));
  });

/** A chronosd whose alarm has as many events as may wait, and as many ids as are known. */
async function startFull(t: TestContext) {
  const folder = temporaryFolder(t);
  const store = openIn(folder);
  const secret = <S extends AlarmState>(state: S): S => ({ ...state, alarm: withHookSecret(state.alarm, SECRET, '') });
  const waiting = await createWaiting(store, path({ quiet_for: 'P1D' }));
  const beating = await createWaiting(store, heartbeat);
  for (const { alarm } of [waiting, beating]) await store.update(ADA, alarm.id, secret);
  await pass(store, waiting, KNOWN_EVENTS, (n) => `known-${n}`);
  for (
    let from = waitingEvents(eventStateOf((await store.get(ADA, waiting.alarm.id))!.alarm));
    from < EVENTS_WAITING_MAX;
    from += 500
  )
    await store.recordEvents(
      arrivalFor(
        waiting,
        Array.from({ length: 500 }, (_, n) => eventOf(from + n, { id: `w-${from + n}` })),
      ),
    );
  const pathOf = async ({ alarm }: AlarmState) => hookPathOf((await store.get(ADA, alarm.id))!.alarm)!;
  const paths = { full: await pathOf(waiting), heartbeat: await pathOf(beating) };
  await store.close();
  const config = parseChronosConfig({
    CHRONOS_PORT: '0',
    CHRONOS_DATA_DIR: folder,
    CHRONOS_DEV: '1',
    CHRONOS_DISPATCH: '0',
  });
  const chronos = await startChronos({ config, clock: systemClock, log: silentLogger });
  atEnd(t, () => chronos.close());
  return { url: chronos.url, paths };
}

test('beside requests to an alarm that is full, chronosd answers, and its memory does not grow', async (t) => {
  const { url, paths } = await startFull(t);
  const send = async (address: string) => (await fetch(url + address, { method: 'POST', body: '{}' })).status;
  const heap = process.memoryUsage().heapUsed;
  for (let round = 0; round < 20; round++) {
    const [healthy, ...statuses] = await Promise.all([
      fetch(`${url}/healthz`).then(({ status }) => status),
      ...Array.from({ length: 10 }, () => send(paths.full)),
      ...Array.from({ length: 10 }, () => send(paths.heartbeat)),
    ]);
    assert.equal(healthy, 200);
    assert.deepEqual([...new Set(statuses.slice(0, 10))], [429]);
    assert.deepEqual([...new Set(statuses.slice(10))], [200]);
  }
  assert.ok(process.memoryUsage().heapUsed - heap < 128 * 1024 * 1024);
});
