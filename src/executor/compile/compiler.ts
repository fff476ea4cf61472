/** The port from prose to an intent. */
import type { ContextPiece } from '../../wire/executor.ts';
import type { Intent } from '../../wire/intent.ts';
import type { CompileRead } from '../receipt/bodies.ts';
import type { Provenance } from './grounding.ts';

export type Draft = {
  readonly prose: string;
  /** What was said and read before, oldest first. */
  readonly context: readonly ContextPiece[];
  readonly now: number;
  readonly signal: AbortSignal;
  /** Whose task it is, and whether nobody is there: for the policy about lookups. */
  readonly user?: string;
  readonly unattended?: boolean;
  /** The conversation that the task comes from: an alarm can wake the agent in it. */
  readonly conversationId?: string | undefined;
};

export type Compiled =
  | {
      readonly outcome: 'intent';
      readonly intent: Intent;
      readonly compiler: string;
      readonly reads: readonly CompileRead[];
      /** Where each value of its calls comes from, for the questions about them. */
      readonly provenance?: readonly Provenance[];
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
  /** Why it makes nothing of words, ever; a task in words is refused with it when it is handed over. */
  readonly unable?: string;
  /** Rejects only when the signal aborts, or with a retryable ReveilleError when the model does not answer. */
  compile(draft: Draft): Promise<Compiled>;
};

const REASON =
  'this executor has no model, so it cannot make a plan from a task in words: set EXECUTOR_MODEL and EXECUTOR_MODEL_BASE_URL (under "reveille up" NEO_MODEL and NEO_MODEL_BASE_URL will do), or submit an intent with its plan as JSON instead, which needs no model';

export const offlineCompiler: Compiler = {
  unable: REASON,
  async compile({ signal }) {
    signal.throwIfAborted();
    return { outcome: 'refused', code: 'unavailable', reason: REASON };
  },
};
