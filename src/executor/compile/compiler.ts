/** The port from prose to an intent. */
import type { ContextPiece } from '../../wire/executor.ts';
import type { Intent } from '../../wire/intent.ts';
import type { CompileRead } from '../receipt/bodies.ts';

export type Draft = {
  readonly prose: string;
  /** What was said and read before, oldest first. */
  readonly context: readonly ContextPiece[];
  readonly now: number;
  readonly signal: AbortSignal;
};

export type Compiled =
  | {
      readonly outcome: 'intent';
      readonly intent: Intent;
      readonly compiler: string;
      readonly reads: readonly CompileRead[];
    }
  /** Something is missing or ambiguous; nothing was guessed. */
  | {
      readonly outcome: 'clarify';
      readonly question: string;
      readonly compiler: string;
      readonly reads: readonly CompileRead[];
    }
  /** It cannot be compiled: `reason` says what stands in the way. */
  | { readonly outcome: 'refused'; readonly code: string; readonly reason: string };

export type Compiler = {
  /** Rejects only when the signal aborts, or with a retryable ReveilleError when the model does not answer. */
  compile(draft: Draft): Promise<Compiled>;
};
