/** Replicas that die, freeze, are cut off from their row, or whose clock jumps: who holds which claim. */
import assert from 'node:assert/strict';
import { after, before, describe, type TestContext, test } from 'node:test';
import pg from 'pg';
import { openPostgresStore } from '../../../src/chronos/store/postgres/store.ts';
import type { AlarmStore } from '../../../src/chronos/store/store.ts';
import { type Clock, systemClock } from '../../../src/kit/clock/clock.ts';
import { silentLogger } from '../../../src/kit/log/log.ts';
import { ADA, again, claim as claimAt, createDue, delivered, keyOf, withCode } from '../../contract/store/fixtures.ts';
import { pause } from '../../support/cluster/processes.ts';
import { eventually } from '../../support/eventually.ts';
import { type PostgresServer, startPostgres } from '../../support/postgres/server.ts';

/** A claim is repeated within two seconds after its process died; a busy computer needs longer. */
const LIMIT_MS = 10_000;

let server: PostgresServer;
before(async () => {
  server = await startPostgres();
});
after(() => server.remove());

/** A clock whose timers can be stopped, as those of a frozen process, and whose wall time can jump. */
class UnsteadyClock implements Clock {
  jumpMs = 0;
  #frozen = false;
  readonly #due: (() => void)[] = [];

  now = () => systemClock.now() + this.jumpMs;
  monotonic = () => systemClock.monotonic();
  after: Clock['after'] = (delayMs, callback) =>
    systemClock.after(delayMs, () => (this.#frozen ? void this.#due.push(callback) : callback()));

  freeze(): void {
    this.#frozen = true;
  }

  thaw(): void {
    this.#frozen = false;
    for (const callback of this.#due.splice(0)) callback();
  }
}

type Member = { store: AlarmStore; clock: UnsteadyClock; dues: number[] };

/** Opens stores on one database; each has proved that it runs. */
async function openReplicas(t: TestContext, count: number): Promise<{ members: Member[]; database: string }> {
  const database = await server.createDatabase();
  const members: Member[] = [];
  t.after(async () => {
    await server.run('DROP TRIGGER IF EXISTS refuse ON replicas', database);
    for (const { clock, store } of members) {
      clock.thaw();
      await store.close();
    }
  });
  for (let n = 0; n < count; n++) {
    const [clock, dues] = [new UnsteadyClock(), [] as number[]];
    const options = { uri: server.uri(database), clock, log: silentLogger, poolSize: 4 };
    const store = await openPostgresStore({ ...options, onRemoteDue: (dueAt) => dues.push(dueAt) });
    members.push({ store, clock, dues });
    await store.endOrphanedClaims(store.now());
  }
  return { members, database };
}

const claim = (store: AlarmStore) => claimAt(store, { now: store.now() });

/** Claims a new alarm that is due now. */
async function claimNew({ store }: Member) {
  const { alarm } = await createDue(store, store.now() - 1);
  const claims = await eventually('it is claimed', async () => {
    // A replica that was given up claims again after its next proof.
    const found = await claim(store).catch((error: unknown) => {
      if (withCode('unavailable')(error)) return [];
      throw error;
    });
    return found.length > 0 && found;
  });
  assert.deepEqual(
    claims.map((one) => one.alarm.id),
    [alarm.id],
  );
  return claims[0]!;
}

const outcomesOf = async ({ store }: Member, id: string) =>
  (await store.attempts(ADA, id, { limit: 9 })).map(({ outcome }) => outcome);

/** Makes every proof of life fail, of one replica or of all. */
async function refuseProofs(database: string, holder?: number): Promise<void> {
  await server.run(
    `CREATE OR REPLACE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql AS $$
     BEGIN IF NEW.given_up_at IS NULL THEN RAISE 'not now'; END IF; RETURN NEW; END $$;
     CREATE TRIGGER refuse BEFORE UPDATE ON replicas FOR EACH ROW
     ${holder === undefined ? '' : `WHEN (OLD.holder = ${holder})`} EXECUTE FUNCTION refuse()`,
    database,
  );
}

const allowProofs = (database: string) => server.run('DROP TRIGGER refuse ON replicas', database);

async function holderOf(database: string): Promise<number> {
  const { rows } = await server.run('SELECT holder FROM occurrences WHERE holder IS NOT NULL', database);
  return Number((rows[0] as { holder: string }).holder);
}

test('claims of a dead replica go out again soon, and only those', async (t) => {
  const { members, database } = await openReplicas(t, 3);
  const [dead, one, other] = members as [Member, Member, Member];
  const lost = await claimNew(dead);
  // All have the same name here: host and process.
  const { rows } = await server.run('SELECT name, holder FROM replicas', database);
  assert.deepEqual(
    [new Set(rows.map(({ name }) => name)).size, new Set(rows.map(({ holder }) => holder)).size],
    [1, 3],
  );
  const kept = await claimNew(one);
  await pause(1000);
  dead.clock.freeze();
  const died = performance.now();
  const [repeated] = await eventually('another replica has it', async () => {
    const found = [...(await claim(one.store)), ...(await claim(other.store))];
    return found.length > 0 && found;
  });
  const tookMs = performance.now() - died;
  t.diagnostic(`${Math.round(tookMs)} ms`);
  assert.ok(tookMs < LIMIT_MS, `it took ${tookMs} ms`);
  assert.equal(repeated?.alarm.id, lost.alarm.id);
  assert.equal(repeated.occurrence.attempt, 2);
  assert.ok(one.dues.length + other.dues.length > 0, 'a sleeping dispatcher is woken');
  // The dead one comes back: it changes nothing, and goes on as another.
  dead.clock.thaw();
  assert.deepEqual(await dead.store.complete([delivered(lost)]), ['lost_claim']);
  assert.deepEqual(await one.store.complete([delivered(kept)]), ['applied']);
  assert.deepEqual(await outcomesOf(one, lost.alarm.id), ['unknown']);
  await dead.store.complete([delivered(await claimNew(dead))]);
});

test('a replica that ends in order leaves its claims to others at once', async (t) => {
  const { members } = await openReplicas(t, 2);
  const [ending, other] = members as [Member, Member];
  const left = await claimNew(ending);
  const began = performance.now();
  await ending.store.close();
  members.shift();
  const [repeated] = await eventually('the other has it', async () => {
    const found = await claim(other.store);
    return found.length > 0 && found;
  });
  assert.equal(repeated?.alarm.id, left.alarm.id);
  assert.ok(performance.now() - began < 1500);
});

test('a replica that cannot renew its row claims nothing, finishes what it has in time, and later goes on', async (t) => {
  const { members, database } = await openReplicas(t, 2);
  const [cut, other] = members as [Member, Member];
  const quick = await claimNew(cut);
  const slow = await claimNew(cut);
  await refuseProofs(database, await holderOf(database));
  await createDue(other.store, other.store.now() + 60_000);
  await pause(1000);
  assert.deepEqual(await cut.store.complete([delivered(quick)]), ['applied']);
  const [repeated] = await eventually('the other has it', async () => {
    const found = await claim(other.store);
    return found.length > 0 && found;
  });
  assert.equal(repeated?.alarm.id, slow.alarm.id);
  assert.deepEqual(await cut.store.complete([delivered(slow)]), ['lost_claim']);
  assert.deepEqual(await other.store.complete([delivered(repeated)]), ['applied']);
  // Others have given it up, so it draws a new row, which nothing refuses.
  assert.deepEqual(await cut.store.complete([delivered(await claimNew(cut))]), ['applied']);
});

test('a replica that cannot know whether it was given up refuses to claim', async (t) => {
  const { members, database } = await openReplicas(t, 1);
  const [alone] = members as [Member];
  const running = await claimNew(alone);
  await refuseProofs(database);
  await createDue(alone.store, alone.store.now() - 1);
  await pause(2500);
  await assert.rejects(claim(alone.store), withCode('unavailable'));
  assert.deepEqual(await alone.store.complete([delivered(running)]), ['applied']);
  await allowProofs(database);
  await eventually('it claims again', async () => (await claim(alone.store).catch(() => [])).length === 1);
});

test('when no replica could prove anything for a while, none is given up', async (t) => {
  const { members, database } = await openReplicas(t, 3);
  const claims = [];
  for (const member of members) claims.push(await claimNew(member));
  await refuseProofs(database);
  await pause(3500);
  await allowProofs(database);
  await pause(2500);
  for (const [n, { store }] of members.entries())
    assert.deepEqual(await store.complete([delivered(claims[n]!)]), ['applied']);
  const { rows } = await server.run('SELECT holder FROM replicas WHERE given_up_at IS NOT NULL', database);
  assert.deepEqual(rows, []);
});

test("a jump of a replica's own clock gives no replica up and fires nothing early", async (t) => {
  const { members } = await openReplicas(t, 2);
  const [jumping, steady] = members as [Member, Member];
  for (const jumpMs of [3_600_000, -3_600_000]) {
    const claims = [await claimNew(jumping), await claimNew(steady)];
    jumping.clock.jumpMs = jumpMs;
    const later = await createDue(steady.store, steady.store.now() + 60_000);
    await pause(3000);
    for (const { store } of members) assert.deepEqual(await claim(store), []);
    assert.deepEqual(await jumping.store.complete([delivered(claims[0]!)]), ['applied']);
    assert.deepEqual(await steady.store.complete([delivered(claims[1]!)]), ['applied']);
    await steady.store.update(ADA, later.alarm.id, ({ alarm }) => ({
      alarm: { ...alarm, status: 'fired' },
      occurrences: [],
    }));
  }
});

test('a claim whose answer comes after its replica was given up is not delivered', async (t) => {
  const { members } = await openReplicas(t, 2);
  const [late, other] = members as [Member, Member];
  const { alarm } = await createDue(late.store, late.store.now() - 1);
  const query = pg.Client.prototype.query as (...given: unknown[]) => Promise<unknown>;
  const mock = t.mock.method(pg.Client.prototype, 'query', async function (this: pg.Client, ...given: unknown[]) {
    const isClaim = (given[0] as { name?: string }).name === 'chronos_claim';
    if (isClaim) mock.mock.restore();
    const answer = await query.apply(this, given);
    if (isClaim) await pause(3000);
    return answer;
  });
  const answer = claim(late.store);
  late.clock.freeze();
  const [repeated] = await eventually('the other has it', async () => {
    const found = await claim(other.store);
    return found.length > 0 && found;
  });
  assert.equal(repeated?.alarm.id, alarm.id);
  await pause(1500);
  late.clock.thaw();
  assert.deepEqual(await answer, []);
  assert.deepEqual(await other.store.complete([delivered(repeated)]), ['applied']);
});

describe('a claim whose answer does not arrive', () => {
  /** The next answer to a claim is lost, after its statement took effect. */
  function loseClaim(t: TestContext): void {
    const query = pg.Client.prototype.query as (...given: unknown[]) => Promise<unknown>;
    const mock = t.mock.method(pg.Client.prototype, 'query', async function (this: pg.Client, ...given: unknown[]) {
      const answer = await query.apply(this, given);
      if ((given[0] as { name?: string }).name !== 'chronos_claim') return answer;
      mock.mock.restore();
      throw new Error('the connection was lost');
    });
  }

  test('is ended by its own replica, which keeps its other claims', async (t) => {
    const { members } = await openReplicas(t, 1);
    const [{ store }] = members as [Member];
    const running = await claimNew(members[0]!);
    const { alarm } = await createDue(store, store.now() - 1);
    loseClaim(t);
    await assert.rejects(claim(store), withCode('unavailable'));
    assert.notEqual((await store.get(ADA, alarm.id))?.occurrences[0]?.claimedAt, null);
    const began = performance.now();
    const [repeated] = await eventually('it is claimed again', async () => {
      const found = await claim(store);
      return found.length > 0 && found;
    });
    assert.ok(performance.now() - began < 5000);
    assert.equal(repeated?.alarm.id, alarm.id);
    assert.deepEqual(await outcomesOf(members[0]!, alarm.id), ['unknown']);
    assert.deepEqual(await store.complete([delivered(running), delivered(repeated)]), ['applied', 'applied']);
  });

  test('ends no claim of a retry that came in between', async (t) => {
    const { members } = await openReplicas(t, 1);
    const [{ store }] = members as [Member];
    const first = await claimNew(members[0]!);
    loseClaim(t);
    await createDue(store, store.now() - 1);
    await assert.rejects(claim(store), withCode('unavailable'));
    await store.complete([{ key: keyOf(first), attempt: null, settle: again(first.occurrence.fireId, store.now()) }]);
    const [second] = await claim(store);
    assert.equal(second?.occurrence.fireId, first.occurrence.fireId);
    await pause(4000);
    assert.deepEqual(await store.complete([delivered(second)]), ['applied']);
  });
});

test('the row of a replica that is gone stays while a statement of it may still be running', async (t) => {
  const { members, database } = await openReplicas(t, 1);
  await server.run(
    'INSERT INTO replicas (holder, name, alive_until, claims_to, given_up_at) VALUES (7, $$before$$, 1, 1, 1)',
    database,
  );
  assert.equal(members.length, 1);
  await pause(3000);
  const there = async () => (await server.run('SELECT 1 FROM replicas WHERE holder = 7', database)).rows.length > 0;
  assert.equal(await there(), true);
});
