/** The port to what the executor owes others: written with what caused it in one transaction, carried out at least once. */

/** `notify`: a question waits and nobody may be there. `wake`: an intent that was parked is over. */
export type ErrandKind = 'notify' | 'wake';

export type Errand = {
  /** Stands for it on every attempt: the receiver can tell a repetition by it. */
  readonly id: string;
  readonly kind: ErrandKind;
  readonly user: string;
  readonly intentId: string;
  /** Of a `notify`. */
  readonly nodeId: string | undefined;
  /** Of a `wake`: the conversation that the agent is woken in. */
  readonly conversationId: string | undefined;
  readonly attempts: number;
};

export type ErrandBook = {
  /** What is due now, oldest first, at most so many. */
  due(now: number, limit: number): readonly Errand[];
  /** When the next one is due; `undefined` when none is left. */
  nextDue(): number | undefined;
  done(id: string): void;
  /** It did not work; once more at `at`, whole milliseconds. */
  later(id: string, at: number, error: string): void;
  /** It will never work, or is not wanted any more. */
  drop(id: string, reason: string): void;
  /** Called when there is something new. @returns ends that */
  onNew(listener: () => void): () => void;
};
