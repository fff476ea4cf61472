/** Tracks possible approvers: the people or programs that follow Neo's events now. */
import { type Clock, wait } from '../../../kit/clock/clock.ts';

export type Approvers = {
  /**
   * Counts a stream of the events of a conversation, or of all when none is named.
   *
   * @returns ends it; no effect when called again
   */
  addStream(conversationId: string | undefined): () => void;
  /** Whether a stream of this conversation is open. */
  isPresent(conversationId: string): boolean;
  /** Whether a stream is open or opens within a time: a broken stream is opened again after a second. */
  waitFor(conversationId: string, withinMs: number, signal: AbortSignal): Promise<boolean>;
};

export function createApprovers(clock: Clock): Approvers {
  const streams = new Set<{ readonly conversationId: string | undefined }>();
  const waiters = new Set<() => void>();
  const isPresent = (conversationId: string) =>
    [...streams].some((one) => one.conversationId === undefined || one.conversationId === conversationId);

  return {
    isPresent,

    addStream(conversationId) {
      const one = { conversationId };
      streams.add(one);
      for (const tell of [...waiters]) tell();
      return () => void streams.delete(one);
    },

    async waitFor(conversationId, withinMs, signal) {
      if (isPresent(conversationId)) return true;
      const found = new AbortController();
      const check = () => {
        if (isPresent(conversationId)) found.abort();
      };
      waiters.add(check);
      await wait(clock, withinMs, AbortSignal.any([found.signal, signal]));
      waiters.delete(check);
      return isPresent(conversationId);
    },
  };
}
