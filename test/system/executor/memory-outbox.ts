/** An outbox in memory, for tests of its delivery. */
import assert from 'node:assert/strict';
import type { OutboxMessage } from '../../../src/executor/outbox/outbox.ts';
import type { OutboxStore } from '../../../src/kit/outbox/outbox.ts';

export type MemoryOutbox = OutboxStore<OutboxMessage> & {
  readonly ended: { id: string; how: 'done' | 'dropped'; reason?: string }[];
  readonly postponed: { id: string; at: number; error: string }[];
  put(message: OutboxMessage, at: number): void;
  /** Makes the next record of a message's outcome fail. */
  failNextRecord: boolean;
};

export function memoryOutbox(): MemoryOutbox {
  const entries = new Map<string, { message: OutboxMessage; at: number }>();
  const listeners = new Set<() => void>();
  const soonest = () => [...entries.values()].sort((one, other) => one.at - other.at);
  const record = () => {
    if (!outbox.failNextRecord) return;
    outbox.failNextRecord = false;
    throw new Error('the disk is full');
  };
  const end = (id: string, how: 'done' | 'dropped', reason?: string) => {
    record();
    entries.delete(id);
    outbox.ended.push({ id, how, ...(reason === undefined ? {} : { reason }) });
  };
  const outbox: MemoryOutbox = {
    ended: [],
    postponed: [],
    failNextRecord: false,
    due: (now, limit) =>
      soonest()
        .filter(({ at }) => at <= now)
        .slice(0, limit)
        .map(({ message }) => message),
    nextDue: () => soonest()[0]?.at,
    done: (id) => end(id, 'done'),
    drop: (id, reason) => end(id, 'dropped', reason),
    later(id, at, error) {
      // The journal stores whole milliseconds and nothing else.
      assert.ok(Number.isInteger(at), `${at}`);
      record();
      const { message } = entries.get(id)!;
      entries.set(id, { message: { ...message, attempts: message.attempts + 1 }, at });
      outbox.postponed.push({ id, at, error });
    },
    onNew(listener) {
      listeners.add(listener);
      return () => void listeners.delete(listener);
    },
    put(message, at) {
      entries.set(message.id, { message, at });
      for (const listener of listeners) listener();
    },
  };
  return outbox;
}
