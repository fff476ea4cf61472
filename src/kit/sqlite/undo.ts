/**
 * What is done in memory beside a transaction, so that it can be undone with it: whoever keeps rows in memory as well
 * notes with each change how to take it back.
 */
export class Undo {
  #steps: (() => void)[] = [];

  /** Notes how to take a change back that has just been made. */
  note(step: () => void): void {
    this.#steps.push(step);
  }

  /** Names the present, for {@link backTo}. */
  mark(): number {
    return this.#steps.length;
  }

  /** Takes back what was noted since a mark, the latest first. */
  backTo(mark: number): void {
    for (const step of this.#steps.splice(mark).reverse()) step();
  }

  /** What was noted stays done. */
  keep(): void {
    if (this.#steps.length > 0) this.#steps = [];
  }
}
