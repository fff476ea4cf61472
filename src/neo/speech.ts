/** Gathers the pieces of a reply into `say` events, so that a fast model does not cause a write per word. */
import type { Clock } from '../kit/clock/clock.ts';

/** How long pieces are gathered. */
const GATHER_MS = 50;

/** A piece of this many UTF-16 units is not held back any longer. */
const GATHER_CHARACTERS = 4096;

/**
 * Starts a reply.
 *
 * @param write stores a piece that begins at `offset`; it must not throw
 */
export function beginSpeech(clock: Clock, write: (offset: number, text: string) => void) {
  let said = '';
  let pending = '';
  let over = false;
  let cancel = () => {};

  function flush(): void {
    cancel();
    cancel = () => {};
    if (pending === '') return;
    const offset = said.length;
    const text = pending;
    said += text;
    pending = '';
    write(offset, text);
  }

  return {
    /** Adds a piece; a model that goes on after the end is not heard. */
    add(piece: string): void {
      if (over) return;
      if (pending === '') cancel = clock.after(GATHER_MS, flush);
      pending += piece;
      if (pending.length >= GATHER_CHARACTERS) flush();
    },

    /** What has been said stands; what follows is said in its place, from the beginning. */
    nextStep(): void {
      flush();
      said = '';
    },

    /** What has been said is void; the reply begins anew. */
    restart(): void {
      cancel();
      said = '';
      pending = '';
    },

    /** Writes what is left. @returns all that has been said */
    end(): string {
      flush();
      over = true;
      return said;
    },
  };
}
