/** Joins lines to calls and wakes: each beginning with its end, if there is one. */
import { ReveilleError } from '../../../src/wire/errors.ts';
import type { Call, ClientLine, ReceiverLine, Turn, Wake } from './history.ts';

/** A line that contradicts earlier ones. `index` counts from 0. */
export class Misfit extends ReveilleError {
  readonly index: number;

  constructor(index: number, what: string) {
    super('invalid_request', what);
    this.index = index;
  }
}

/** The calls, in the order of sending. A call without an answer counts as lost. */
export function foldClient(lines: readonly ClientLine[]): Call[] {
  const calls = new Map<number, Call>();
  lines.forEach((line, index) => {
    const known = calls.get(line.call);
    if (line.event === 'invoked') {
      if (known) throw new Misfit(index, `call ${line.call} was invoked before`);
      const { user, operation, at } = line;
      const answer = { answer: 'lost', reason: 'the log ends before the answer' } as const;
      calls.set(line.call, { user, operation, invokedAt: at, answeredAt: null, answer });
    } else {
      if (!known) throw new Misfit(index, `call ${line.call} was never invoked, but is answered`);
      if (known.answeredAt !== null) throw new Misfit(index, `call ${line.call} was answered before`);
      known.answeredAt = line.at;
      known.answer = line.answer;
    }
  });
  return [...calls.values()];
}

/** The wakes and the turns, in the order of arrival. */
export function foldReceiver(lines: readonly ReceiverLine[]): { wakes: Wake[]; turns: Turn[] } {
  const wakes = new Map<number, Wake>();
  const turns: Turn[] = [];
  lines.forEach((line, index) => {
    if (line.event === 'turn') {
      const { event: _, ...turn } = line;
      turns.push(turn);
      return;
    }
    const known = wakes.get(line.wake);
    if (line.event === 'woken') {
      if (known) throw new Misfit(index, `wake ${line.wake} arrived before`);
      const { fireId, user, conversation, message, payload, attempt = null, missedCount = null, at } = line;
      const content = { fireId, user, conversation, message, payload, attempt, missedCount };
      wakes.set(line.wake, { ...content, receivedAt: at, answeredAt: null, status: null });
    } else {
      if (!known) throw new Misfit(index, `wake ${line.wake} never arrived, but is answered`);
      if (known.answeredAt !== null) throw new Misfit(index, `wake ${line.wake} was answered before`);
      known.answeredAt = line.at;
      known.status = line.status;
    }
  });
  return { wakes: [...wakes.values()], turns };
}
