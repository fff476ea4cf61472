/** A call of a tool as the loop would make it, for tests of its implementation. */

import type { Turn } from '../../../turns/turn.ts';
import type { ToolAnswer, ToolCallContext, ToolNotice } from '../tools/surface.ts';

export const CONVERSATION = 'conversation-1';

export const TURN: Turn = {
  id: '0197f5a0-0000-7000-8000-00000000000a',
  conversationId: CONVERSATION,
  seq: 1,
  origin: 'user',
  message: 'do it',
  createdAt: 0,
  status: 'running',
  attempts: 1,
  retries: 0,
};

export type TestCall = ToolCallContext & {
  /** The notices of the call so far. */
  readonly notices: ToolNotice[];
  readonly abort: (reason: unknown) => void;
  /** The first matching notice, past or future. */
  until(fits: (notice: ToolNotice) => boolean): Promise<ToolNotice>;
};

export function testCall(callId = 'call-1', turn: Turn = TURN): TestCall {
  const controller = new AbortController();
  const notices: ToolNotice[] = [];
  const listeners = new Set<() => void>();
  return {
    turn,
    callId,
    signal: controller.signal,
    notices,
    abort: (reason) => controller.abort(reason),
    notify(notice) {
      notices.push(notice);
      for (const listener of [...listeners]) listener();
    },
    until: (fits) =>
      new Promise((resolve) => {
        const check = () => {
          const found = notices.find(fits);
          if (!found) return;
          listeners.delete(check);
          resolve(found);
        };
        listeners.add(check);
        check();
      }),
  };
}

/** The texts of an answer, one below the other. */
export function textOf({ content }: ToolAnswer): string {
  return content.map((part) => (part.type === 'text' ? part.text : `<${part.mediaType}>`)).join('\n');
}
