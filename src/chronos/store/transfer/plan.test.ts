import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { TargetPhase, TargetState } from '../postgres/transfer-state.ts';
import type { SourcePhase, SourceState } from '../sqlite/departure.ts';
import { planOf } from './plan.ts';

const FILE = 'this file';
const MOVE = 'this move';

function fileSays(state: SourcePhase): SourceState {
  const away = state === 'home' ? { transfer: null, target: null } : { transfer: MOVE, target: 'db:5432/there' };
  return { source: FILE, state, since: 0, ...away };
}

function databaseSays(state: TargetPhase, change: Partial<TargetState> = {}): TargetState {
  return { source: FILE, transfer: MOVE, state, step: 3, progress: '{}', since: 0, ...change };
}

function planFor(
  departure: SourceState | undefined,
  arrival: TargetState | undefined,
  empty = arrival === undefined,
): string {
  try {
    return planOf({ path: 'chronos.db', sourceState: departure, name: 'db:5432/there', targetState: arrival, empty });
  } catch (error) {
    return (error as Error).message;
  }
}

test('a file without a move begins in an empty database, and restarts where its former move was given up', () => {
  for (const departure of [undefined, fileSays('home')]) {
    assert.equal(planFor(departure, undefined), 'begin');
    assert.match(planFor(departure, undefined, false), /contains alarms or keys already.*empty database$/);
    assert.match(planFor(departure, databaseSays('arrived')), /has been in use since alarms moved into it/);
    const other = { source: 'another' };
    assert.match(planFor(departure, databaseSays('arriving', other)), /another SQLite file into .* is not finished/);
    assert.match(planFor(departure, databaseSays('abandoned', other)), /contains rows of another SQLite file/);
  }
  assert.equal(planFor(fileSays('home'), databaseSays('arriving')), 'restart');
  assert.equal(planFor(fileSays('home'), databaseSays('abandoned')), 'restart');
});

test('a file with a move continues its own move, and no other', () => {
  const cases: [SourcePhase, TargetPhase, RegExp][] = [
    ['moving', 'arriving', /^resume$/],
    ['verified', 'arriving', /^resume$/],
    ['verified', 'arrived', /^finish$/],
    ['moved', 'arrived', /^done$/],
    ['moved', 'arriving', /^resume$/],
    ['verified', 'abandoned', /is being given up; finish that/],
    ['moved', 'abandoned', /is being given up; finish that/],
  ];
  for (const [file, database, wanted] of cases)
    assert.match(planFor(fileSays(file), databaseSays(database)), wanted, `${file}, ${database}`);
  for (const state of ['moving', 'verified'] as const)
    for (const arrival of [undefined, databaseSays('arriving', { transfer: 'another' })])
      assert.match(
        planFor(fileSays(state), arrival),
        /a move of chronos.db into .* is not finished; continue with that/,
      );
  assert.match(planFor(fileSays('moved'), undefined), /moved to .* on 1970-01-01T00:00:00.000Z; they are not in/);
});
