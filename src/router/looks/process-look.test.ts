import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { test } from 'node:test';
import { birthOf } from '../providers/process-table.ts';
import { lookAtProcess } from './process-look.ts';

/** Processes with a birth and a user, by pid. */
function lookAmong(table: Record<number, [birth: string, user: number]>, user: number | undefined = 7) {
  const processes = { birthOf: (pid: number) => table[pid]?.[0], userOf: (pid: number) => table[pid]?.[1] };
  return (pid: number, seen?: string) => lookAtProcess(pid, { user, now: 0, processes }, seen);
}

test('the end of a process is reported once, also when another has its pid', () => {
  const first = lookAmong({ 30: ['boot:1', 7] })(30);
  assert.deepEqual(first.events, []);
  assert.deepEqual(lookAmong({ 30: ['boot:1', 7] })(30, first.seen), { events: [], seen: first.seen });
  const gone = lookAmong({})(30, first.seen);
  const reused = lookAmong({ 30: ['boot:2', 7] })(30, first.seen);
  const ofAnother = lookAmong({ 30: ['boot:2', 0] })(30, first.seen);
  assert.deepEqual(reused, gone);
  assert.deepEqual(ofAnother, gone);
  assert.equal(gone.ends, true);
  assert.deepEqual(JSON.parse(gone.events[0]!.data), {
    change: 'exited',
    pid: 30,
    seen_at: '1970-01-01T00:00:00.000Z',
  });
  for (const table of [{}, { 30: ['boot:1', 7] }, { 30: ['boot:3', 7] }] as Record<number, [string, number]>[])
    assert.deepEqual(lookAmong(table)(30, gone.seen).events, [], 'it has ended, whatever runs now');
});

test('a process that does not run, or of another user, is refused', () => {
  assert.throws(() => lookAmong({})(30), /no process 30 runs/);
  assert.throws(() => lookAmong({ 30: ['boot:1', 0] })(30), /belongs to another user/);
  assert.throws(() => lookAmong({})(30, 'no state'), /no process 30 runs/);
  const other = lookAmong({ 31: ['boot:1', 7] })(31).seen;
  assert.throws(() => lookAmong({})(30, other), /no process 30 runs/);
});

test('a real process', async () => {
  const child = spawn('sleep', ['60']);
  await once(child, 'spawn');
  const look = (seen?: string) =>
    lookAtProcess(child.pid!, { user: undefined, now: 0, processes: { birthOf, userOf: () => undefined } }, seen);
  const { seen } = look();
  assert.deepEqual(look(seen).events, []);
  child.kill('SIGKILL');
  await once(child, 'exit');
  assert.equal(look(seen).events.length, 1);
});
