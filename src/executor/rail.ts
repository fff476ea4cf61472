/** The executor's operations, independent of the transport. The HTTP routes call them; `execution/` implements them. */
import type { z } from 'zod';
import type { GateAnswer, gateSchema, IntentRequest, IntentStatus, intentStateSchema } from '../wire/executor.ts';
import type { IntentReceipt } from '../wire/intent-receipt.ts';
import type { IntentView } from '../wire/intent-view.ts';

export type { IntentView };

/** The state of an intent, as `GET /messages/async/{id}` returns it. */
export type IntentState = Readonly<z.output<typeof intentStateSchema>>;

export type NodeState = IntentView['nodes'][number];

/**
 * Each method operates on the intents of one user; intents of other users are `not_found`. The methods throw
 * ReveilleError.
 */
export type ExecutorRail = {
  /** Resolves when the intent is on disk. `conflict`: the key belongs to another task. */
  submit(user: string, request: IntentRequest): Promise<{ intentId: string }>;
  state(user: string, intentId: string): IntentState;
  view(user: string, intentId: string): IntentView;
  /** Newest first. */
  list(user: string, options: { limit: number; status?: IntentStatus }): readonly IntentView[];
  gates(user: string, intentId: string): readonly z.output<typeof gateSchema>[];
  /**
   * `conflict` when the gate is not pending or the answer is about another call or question; `forbidden` when no active
   * approver signed it. The receipt records both.
   */
  answer(user: string, intentId: string, nodeId: string, answer: GateAnswer): Promise<void>;
  /** `parked: false` when the intent is final or agents cannot be woken. */
  park(user: string, intentId: string, conversationId: string): Promise<{ status: IntentStatus; parked: boolean }>;
  /** `conflict` once the first escalate-class call has started. @param why for the receipt */
  cancel(user: string, intentId: string, why?: string): Promise<IntentState>;
  /** Queries the tools again for the outcome of calls whose outcome is unknown. */
  reconcile(user: string, intentId: string): Promise<IntentState>;
  receipt(user: string, intentId: string): IntentReceipt;
  /** Resumes the intents that an earlier process left open. */
  start(): void;
  /** Starts nothing new, waits up to `drainMs` for calls in progress, and leaves the rest to the next process. */
  close(drainMs: number): Promise<void>;
};
