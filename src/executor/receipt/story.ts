/** What a chain tells: how an intent and each of its calls came along. */
import type { ReceiptKind } from '../../wire/intent-receipt.ts';
import type { BoundCall, CallStatus, ReceiptBodies } from './bodies.ts';

/** The rules that a story can break, by their names in docs/receipts.md. */
export type StoryRule =
  | (
      | 'begin'
      | 'intent'
      | 'task'
      | 'compiled'
      | 'node'
      | 'plan'
      | 'order'
      | 'decision'
      | 'question'
      | 'answer'
      | 'approver'
      | 'consent'
    )
  | ('once' | 'started' | 'deadline' | 'wait' | 'end' | 'outcome' | 'journal');

type Decision = ReceiptBodies['call.decided'];
type Answer = {
  readonly by: string;
  readonly at: string;
  readonly approved: boolean;
  /** The key that signed it, and what the executor calls it; absent in receipts of before answers were signed. */
  readonly approver: string | undefined;
  readonly name: string | undefined;
};

export type Question = {
  readonly callSha256: string;
  readonly displayedSha256: string;
  readonly definitionSha256: string;
  readonly expiresAt: string;
  answer: Answer | undefined;
  expired: boolean;
};

/** How one call of the plan came along. */
export type CallStory = {
  readonly nodeId: string;
  /** What was to be called: of the last decision, or of the start. */
  call: BoundCall | undefined;
  surface: 'natural' | 'escalate' | undefined;
  decision: Decision | undefined;
  /** The last answer that counted. */
  answer: Answer | undefined;
  /** The last question was not answered in time. */
  expired: boolean;
  startedAt: string | undefined;
  /** `started`: nothing says yet what became of it. */
  status: CallStatus | 'started' | undefined;
  reason: string | undefined;
  references: Readonly<Record<string, unknown>> | undefined;
};

/** A call while its chain is read. */
export type CallState = CallStory & {
  /** The last one since consent was last used up. */
  question: Question | undefined;
  /** The decision has come since consent was last used up. */
  fresh: boolean;
  /** It was started as `escalate` once; it stays one, whatever its tool is said to be later. */
  escalated: boolean;
};

/** The kind of an envelope that ends an intent, and when. */
export type Ending = {
  readonly kind: 'intent.completed' | 'intent.failed' | 'intent.cancelled' | 'intent.unknown';
  readonly at: string;
  readonly reason: string | undefined;
  /** Why it failed, for programs. */
  readonly code?: string;
};

export type Story = {
  readonly accepted: ReceiptBodies['intent.accepted'] | undefined;
  readonly compiled: ReceiptBodies['intent.compiled'] | undefined;
  readonly clarify: string | undefined;
  readonly calls: readonly CallStory[];
  readonly refusedAnswers: number;
  /** The journal was found changed, once or more. */
  readonly broken: boolean;
  /** `undefined` while the intent has not come to its end. */
  readonly ending: Ending | undefined;
  readonly lastKind: ReceiptKind | undefined;
};
