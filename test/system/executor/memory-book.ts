/** A book of errands in memory, for tests of those who carry them out. */
import assert from 'node:assert/strict';
import type { Errand, ErrandBook } from '../../../src/executor/errands/errands.ts';

export type MemoryBook = ErrandBook & {
  readonly ended: { id: string; how: 'done' | 'dropped'; reason?: string }[];
  readonly postponed: { id: string; at: number; error: string }[];
  put(errand: Errand, at: number): void;
  /** Makes the next record of what became of an errand fail. */
  failNextRecord: boolean;
};

export function memoryBook(): MemoryBook {
  const entries = new Map<string, { errand: Errand; at: number }>();
  const listeners = new Set<() => void>();
  const soonest = () => [...entries.values()].sort((one, other) => one.at - other.at);
  const record = () => {
    if (!book.failNextRecord) return;
    book.failNextRecord = false;
    throw new Error('the disk is full');
  };
  const end = (id: string, how: 'done' | 'dropped', reason?: string) => {
    record();
    entries.delete(id);
    book.ended.push({ id, how, ...(reason === undefined ? {} : { reason }) });
  };
  const book: MemoryBook = {
    ended: [],
    postponed: [],
    failNextRecord: false,
    due: (now, limit) =>
      soonest()
        .filter(({ at }) => at <= now)
        .slice(0, limit)
        .map(({ errand }) => errand),
    nextDue: () => soonest()[0]?.at,
    done: (id) => end(id, 'done'),
    drop: (id, reason) => end(id, 'dropped', reason),
    later(id, at, error) {
      // The journal stores whole milliseconds and nothing else.
      assert.ok(Number.isInteger(at), `${at}`);
      record();
      const { errand } = entries.get(id)!;
      entries.set(id, { errand: { ...errand, attempts: errand.attempts + 1 }, at });
      book.postponed.push({ id, at, error });
    },
    onNew(listener) {
      listeners.add(listener);
      return () => void listeners.delete(listener);
    },
    put(errand, at) {
      entries.set(errand.id, { errand, at });
      for (const listener of listeners) listener();
    },
  };
  return book;
}
