/** What the executor does for its callers, whatever they speak. HTTP routes call this; `walk/` stands behind it. */

import type { z } from 'zod';
import type { GateAnswer, gateSchema, IntentRequest, IntentStatus, intentStateSchema } from '../wire/executor.ts';
import type { IntentReceipt } from '../wire/intent-receipt.ts';
import type { IntentView } from '../wire/intent-view.ts';

export type { IntentView };

/** How an intent stands, as `GET /messages/async/{id}` says it. */
export type IntentState = Readonly<z.output<typeof intentStateSchema>>;

/** How one node of the plan stands. */
export type NodeState = IntentView['nodes'][number];

export type IntentEvent = {
  readonly type: 'gate.invoked' | 'intent.attest' | 'intent.fail' | 'intent.cancel';
  readonly intentId: string;
  readonly nodeId?: string;
};

/**
 * Each method is about the intents of one user; another user's are `not_found`. They throw ReveilleError.
 */
export type ExecutorRail = {
  /** Resolves when the intent is on disk. `conflict`: the key names another task. */
  submit(user: string, request: IntentRequest): Promise<{ intentId: string }>;
  state(user: string, intentId: string): IntentState;
  view(user: string, intentId: string): IntentView;
  /** Newest first. */
  list(user: string, options: { limit: number; status?: IntentStatus }): readonly IntentView[];
  gates(user: string, intentId: string): readonly z.output<typeof gateSchema>[];
  /**
   * `conflict` when the gate does not wait or the answer is about another call or question, `forbidden` when it is not
   * signed by an approver who stands; recorded in the receipt either way.
   */
  answer(user: string, intentId: string, nodeId: string, answer: GateAnswer): Promise<void>;
  /** `parked: false` when the intent is over, or nobody could wake the agent. */
  park(user: string, intentId: string, conversationId: string): Promise<{ status: IntentStatus; parked: boolean }>;
  /** `conflict` once the first escalate-class call has started. @param why for the receipt */
  cancel(user: string, intentId: string, why?: string): Promise<IntentState>;
  /** Asks the tools anew what became of calls whose outcome is unknown. */
  reconcile(user: string, intentId: string): Promise<IntentState>;
  receipt(user: string, intentId: string): IntentReceipt;
  /** @returns ends the subscription */
  subscribe(user: string, intentId: string, listener: (event: IntentEvent) => void): () => void;
  /** Takes up what an earlier process left. */
  start(): void;
  /** Begins nothing new, waits for calls under way for so long, and leaves the rest to the next process. */
  close(drainMs: number): Promise<void>;
};
