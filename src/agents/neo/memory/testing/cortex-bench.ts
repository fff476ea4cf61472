import { join } from 'node:path';
import type { TestContext } from 'node:test';
import { temporaryFolder } from '../../../../../test/support/temporary.ts';
import { ManualClock } from '../../../../kit/clock/testing/manual-clock.ts';
import type { Turn } from '../../../../turns/turn.ts';
import { openCortex } from '../cortex.ts';
import type { NewMemory, Source } from '../memory.ts';

export const CLOCK_START = Date.UTC(2026, 5, 15, 8, 10);

/** A new memory; a fact of medium salience by default. */
export function note(text: string, members: Partial<NewMemory> = {}): NewMemory {
  return { kind: 'fact', text, salience: 0.5, ...members };
}

/** A fact with a claim about the person. */
export function claimed(attribute: string, value: string, text = `The user's ${attribute} is ${value}.`): NewMemory {
  return note(text, { claim: { subject: 'user', attribute, value } });
}

export function from(turnId: string, at = CLOCK_START): Source {
  return { turnId, conversationId: 'c1', at };
}

/** A done turn. */
export function doneTurn(id: string, members: Partial<Turn> = {}): Turn {
  return {
    id,
    conversationId: 'c1',
    seq: 1,
    origin: 'user',
    message: `message of ${id}`,
    reply: `reply of ${id}`,
    status: 'done',
    attempts: 1,
    retries: 0,
    createdAt: CLOCK_START,
    ...members,
  };
}

/** A file, opened as often as a test requests. */
export function cortexBench(t: TestContext) {
  const dataDir = temporaryFolder(t);
  const path = join(dataDir, 'cortex.db');
  const clock = new ManualClock(CLOCK_START);
  const open = () => {
    const cortex = openCortex({ path, clock });
    t.after(() => cortex.close());
    return cortex;
  };
  return { dataDir, path, clock, open, cortex: open() };
}
