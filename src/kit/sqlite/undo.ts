/**
 * Undo steps for changes in memory that accompany a transaction. Code that caches rows records a step for each change,
 * and a rollback runs the steps.
 */
export class Undo {
  #steps: (() => void)[] = [];

  /** Records how to undo a change that was just made. */
  note(step: () => void): void {
    this.#steps.push(step);
  }

  /** The current position, for {@link backTo}. */
  mark(): number {
    return this.#steps.length;
  }

  /** Undoes the changes since a position, latest first. */
  backTo(mark: number): void {
    for (const step of this.#steps.splice(mark).reverse()) step();
  }

  /** Makes the recorded changes permanent. */
  keep(): void {
    if (this.#steps.length > 0) this.#steps = [];
  }
}
