import assert from 'node:assert/strict';
import { DatabaseSync } from 'node:sqlite';
import { test } from 'node:test';
import { diceOf } from '../../../../test/support/random/random.ts';
import { systemClock } from '../../../kit/clock/clock.ts';
import { Undo } from '../../../kit/sqlite/group-commit.ts';
import { migrate, readMigrations } from '../../../kit/sqlite/migrations.ts';
import type { ClaimRow } from './claims.ts';
import { type Due, prepareDueQueue } from './due-queue.ts';
import { MIGRATIONS } from './store.ts';

const OWNERS = 6;
const STEPS = 3000;
/** So small that every limit is reached often. */
const BOUNDS = { ofOneOwner: 4, readAtOnce: 8, longest: 16 };

const nameOf = ({ alarm, scheduledFor }: Pick<Due, 'alarm' | 'scheduledFor'>) => `${alarm}@${scheduledFor}`;

test('claims and next due times are as if the whole queue were in memory', (t) => {
  const dice = diceOf(t);
  const db = new DatabaseSync(':memory:', { enableForeignKeyConstraints: false });
  t.after(() => db.close());
  migrate(db, readMigrations(MIGRATIONS), ':memory:', systemClock);
  // Even numbers are occurrences of schedules, odd ones are triggers.
  const schedule =
    db.prepare(`INSERT INTO progress (alarm, scheduled_for, owner, due_at, status, failure_count, updated_at, fire_count,
    scheduled_fires, nominal, attempt, fence, missed_count) VALUES (?, ?, ?, ?, 'active', 0, 0, 0, 0, 0, 0, 0, 0)`);
  const trigger =
    db.prepare(`INSERT INTO triggers (alarm, scheduled_for, owner, due_at, nominal, attempt, fence, missed_count)
    VALUES (?, ?, ?, ?, 0, 0, 0, 0)`);
  const tableOf = ({ alarm }: Due) => (alarm % 2 === 0 ? 'progress' : 'triggers');
  const insert = (due: Due) =>
    (tableOf(due) === 'progress' ? schedule : trigger).run(due.alarm, due.scheduledFor, due.owner, due.dueAt);
  const remove = (due: Due) => db.prepare(`DELETE FROM ${tableOf(due)} WHERE alarm = ?`).run(due.alarm);

  const free = new Map<string, Due>();
  const claimed = new Map<string, Due>();
  const claims = {
    at: (alarm: number, scheduledFor: number) =>
      claimed.has(nameOf({ alarm, scheduledFor })) ? ({} as ClaimRow) : undefined,
  };
  const undo = new Undo();
  const line = prepareDueQueue(db, claims, undo, BOUNDS);
  const whole = () => [...free.values()].sort((a, b) => a.dueAt - b.dueAt || a.owner - b.owner || a.alarm - b.alarm);
  const any = (items: Map<string, Due>) => [...items.values()][dice(items.size)];

  let made = 0;
  const steps = {
    come() {
      // One owner has most of the items.
      const owner = dice(3) === 0 ? 1 + dice(OWNERS) : 1;
      const due: Due = { dueAt: dice(200), owner, alarm: ++made, scheduledFor: made };
      insert(due);
      free.set(nameOf(due), due);
      line.add(due);
    },
    go() {
      const due = any(free);
      if (!due) return;
      remove(due);
      free.delete(nameOf(due));
      line.remove(due);
    },
    letGo() {
      const due = any(claimed);
      if (!due) return;
      claimed.delete(nameOf(due));
      if (dice(2) === 0) {
        remove(due);
        return;
      }
      free.set(nameOf(due), due);
      line.add(due);
    },
    take() {
      const request = { now: dice(220), limit: 1 + dice(12), perOwner: 1 + dice(8) };
      const inFlight = new Map([[1, dice(6)]]);
      const slots = new Map<number, number>();
      const expected = whole()
        .filter(({ dueAt, owner }) => {
          if (dueAt > request.now) return false;
          const left = slots.get(owner) ?? request.perOwner - (inFlight.get(owner) ?? 0);
          slots.set(owner, left - 1);
          return left > 0;
        })
        .slice(0, request.limit);
      assert.deepEqual(line.take(request, inFlight), expected);
      for (const due of expected) {
        free.delete(nameOf(due));
        claimed.set(nameOf(due), due);
      }
    },
    look() {
      const saturated = new Set([1, 1 + dice(OWNERS)].slice(dice(3)));
      assert.equal(line.next(saturated), whole().find(({ owner }) => !saturated.has(owner))?.dueAt);
    },
    undone: () => undo.backTo(0),
  };
  const often = [steps.come, steps.come, steps.come, steps.go, steps.letGo, steps.letGo, steps.take, steps.look];
  for (let step = 0; step < STEPS; step++) (dice(50) === 0 ? steps.undone : often[dice(often.length)]!)();
});
