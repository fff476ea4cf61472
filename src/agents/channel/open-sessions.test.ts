import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { existsSync, readdirSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { type TestContext, test } from 'node:test';
import { setImmediate as turn } from 'node:timers/promises';
import { temporaryFolder } from '../../../test/support/temporary.ts';
import { ManualClock } from '../../kit/clock/testing/manual-clock.ts';
import { processInfo } from '../../kit/process/process-info.ts';
import { OFFER_MS, OpenSessions, SessionChannel } from './open-sessions.ts';

const SELF = { pid: process.pid, started: processInfo(process.pid)?.started ?? '' };
const isLinux = { skip: process.platform !== 'linux' && 'the system reports no processes' };
const never = new AbortController().signal;

function open(t: TestContext) {
  const folder = join(temporaryFolder(t), 'channels');
  const clock = new ManualClock();
  return { folder, clock, sessions: new OpenSessions(folder, clock), channel: new SessionChannel(folder, SELF) };
}

test('a session is open while its client runs and its channel says so', isLinux, (t) => {
  const { folder, sessions, channel } = open(t);
  assert.equal(sessions.has('s'), false);
  channel.look('s');
  assert.equal(sessions.has('s'), true);
  assert.equal(statSync(folder).mode & 0o777, 0o700);
  assert.equal(statSync(join(folder, readdirSync(folder)[0]!)).mode & 0o777, 0o600);
  channel.look('other');
  assert.deepEqual([sessions.has('s'), sessions.has('other')], [false, true]);
  channel.look(undefined);
  assert.equal(sessions.has('other'), false);
  new SessionChannel(folder, { ...SELF, started: 'an earlier process' }).look('s');
  assert.equal(sessions.has('s'), false, 'its client has ended without removing the file');
});

test('a wake is taken once, by the session that it is for', isLinux, (t) => {
  const { folder, sessions, channel } = open(t);
  const other = new SessionChannel(folder, { ...SELF, started: 'another' });
  const id = randomUUID();
  channel.look('s');
  void sessions.offer(id, { session: 's', text: 'the message' }, never);
  assert.deepEqual(other.look('other'), []);
  assert.equal(other.take(id), undefined, 'it was not announced there');
  assert.deepEqual(channel.look('s'), [id]);
  assert.deepEqual(channel.look('s'), [], 'it is announced once');
  assert.equal(channel.take(id), 'the message');
  assert.equal(channel.take(id), undefined);
  assert.equal(sessions.settle(id), 'taken');
  sessions.remove(id);
  assert.deepEqual(
    readdirSync(folder).filter((name) => name.startsWith(id)),
    [],
  );
});

test('of a take and a withdrawal at the same time exactly one succeeds', isLinux, async (t) => {
  const { sessions, clock, channel } = open(t);
  channel.look('s');
  const seen = new Set<boolean>();
  for (let round = 0; round < 200; round++) {
    const id = randomUUID();
    const offered = sessions.offer(id, { session: 's', text: 'x' }, never);
    channel.look('s');
    const takes = async () => {
      for (let step = 0; step < round % 16; step++) await turn();
      return channel.take(id);
    };
    clock.jump(OFFER_MS);
    const [isTaken, text] = await Promise.all([offered, takes(), clock.advance(100)]);
    assert.equal(isTaken, text !== undefined);
    assert.equal(sessions.wasWithdrawn(id), !isTaken);
    seen.add(isTaken);
  }
  assert.equal(seen.size, 2, 'either side has won some rounds');
});

test('an offer that an earlier router left is withdrawn, unless it was taken', isLinux, (t) => {
  const { folder, sessions, channel } = open(t);
  channel.look('s');
  const [left, gone] = [randomUUID(), randomUUID()];
  for (const id of [left, gone]) void sessions.offer(id, { session: 's', text: id }, never);
  channel.look('s');
  assert.equal(channel.take(gone), gone);
  const next = new OpenSessions(folder, new ManualClock());
  assert.deepEqual(
    [next.settle(left), next.settle(gone), next.settle(randomUUID())],
    ['withdrawn', 'taken', undefined],
  );
  assert.equal(channel.take(left), undefined);
});

test('an id that could leave the folder, and a damaged offer, are ignored', isLinux, (t) => {
  const { folder, channel } = open(t);
  channel.look('s');
  const [damaged, foreign] = [randomUUID(), '..%2f'];
  writeFileSync(join(folder, `${damaged}.offer`), '{"session":"s"');
  writeFileSync(join(folder, `${foreign}.offer`), '{"session":"s","text":"x"}');
  assert.deepEqual(channel.look('s'), []);
  for (const id of ['../secret', `${damaged}/../x`, '', foreign, damaged]) assert.equal(channel.take(id), undefined);
  assert.ok(existsSync(join(folder, `${damaged}.offer`)));
});
