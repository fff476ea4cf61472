/** The port from prose to an intent. */
import type { ContextPiece } from '../../wire/executor.ts';
import type { Intent } from '../../wire/intent.ts';
import type { CompileRead } from '../receipt/bodies.ts';
import type { Provenance } from './grounding.ts';

export type Draft = {
  readonly prose: string;
  /** The preceding conversation, oldest first. */
  readonly context: readonly ContextPiece[];
  readonly now: number;
  readonly signal: AbortSignal;
  /** The user of the task, and whether the person may be absent; for the policy about lookups. */
  readonly user?: string;
  readonly unattended?: boolean;
  /** The conversation of the task; an alarm can wake the agent in it. */
  readonly conversationId?: string | undefined;
};

export type Compiled =
  | {
      readonly outcome: 'intent';
      readonly intent: Intent;
      readonly compiler: string;
      readonly reads: readonly CompileRead[];
      /** The origin of each value of its calls, for the questions. */
      readonly provenance?: readonly Provenance[];
    }
  /** Something is missing or ambiguous; nothing was guessed. */
  | {
      readonly outcome: 'clarify';
      readonly question: string;
      readonly compiler: string;
      readonly reads: readonly CompileRead[];
    }
  /** It cannot be compiled; `reason` says why. */
  | { readonly outcome: 'refused'; readonly code: string; readonly reason: string };

export type Compiler = {
  /** Why it can never compile prose; a task in prose is refused with this message when it is submitted. */
  readonly unable?: string;
  /** Rejects only when the signal aborts, or with a retryable ReveilleError when the model does not answer. */
  compile(draft: Draft): Promise<Compiled>;
};

const REASON =
  'this executor has no model and cannot compile a task in prose. Set EXECUTOR_MODEL and EXECUTOR_MODEL_BASE_URL (under "reveille up" NEO_MODEL and NEO_MODEL_BASE_URL suffice), or submit an intent with its plan as JSON, which needs no model';

export const offlineCompiler: Compiler = {
  unable: REASON,
  async compile({ signal }) {
    signal.throwIfAborted();
    return { outcome: 'refused', code: 'unavailable', reason: REASON };
  },
};
