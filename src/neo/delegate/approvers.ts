/** Tracks possible approvers: the people or programs that follow Neo's events now. */
import { type Clock, wait } from '../../kit/clock/clock.ts';

export type Approvers = {
  /**
   * Counts a stream of the events of a conversation, or of all when none is named.
   *
   * @returns ends it; no effect when called again
   */
  enter(conversationId: string | undefined): () => void;
  /** Whether a stream of this conversation is open. */
  present(conversationId: string): boolean;
  /** Whether a stream is open or opens within a time: a broken stream is opened again after a second. */
  expect(conversationId: string, withinMs: number, signal: AbortSignal): Promise<boolean>;
};

export function createApprovers(clock: Clock): Approvers {
  const followed = new Set<{ readonly conversationId: string | undefined }>();
  const arrivals = new Set<() => void>();
  const present = (conversationId: string) =>
    [...followed].some((one) => one.conversationId === undefined || one.conversationId === conversationId);

  return {
    present,

    enter(conversationId) {
      const one = { conversationId };
      followed.add(one);
      for (const tell of [...arrivals]) tell();
      return () => void followed.delete(one);
    },

    async expect(conversationId, withinMs, signal) {
      if (present(conversationId)) return true;
      const enough = new AbortController();
      const look = () => {
        if (present(conversationId)) enough.abort();
      };
      arrivals.add(look);
      await wait(clock, withinMs, AbortSignal.any([enough.signal, signal]));
      arrivals.delete(look);
      return present(conversationId);
    },
  };
}
