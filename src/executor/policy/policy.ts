/** The port to the rules of whoever runs the executor: what goes without asking, what is asked, what is refused. */

export type Effect = 'allow' | 'ask' | 'deny';

/** An amount that a call has moved or may have moved. */
export type Spend = {
  readonly tool: string;
  /** A decimal number as text; money is not rounded. */
  readonly value: string;
  readonly currency: string;
  /** Milliseconds since the epoch. */
  readonly at: number;
};

/** What is to be judged. */
export type PolicyRequest = {
  readonly user: string;
  /** `<alias>/<tool>` */
  readonly tool: string;
  readonly args: Readonly<Record<string, unknown>>;
  readonly surface: 'natural' | 'escalate';
  /** What is at stake by the manifest's word; `undefined` where it does not say. */
  readonly amount: { readonly value: string; readonly currency: string } | undefined;
  /** The manifest says where the amount stands, but there is none that can be read there. */
  readonly amountUnreadable?: boolean;
  /** Nobody is there: an alarm began the turn. */
  readonly unattended: boolean;
  /** What this user has spent in the last 48 hours, calls with an unknown outcome included. */
  readonly spends: readonly Spend[];
  readonly now: number;
};

export type Decision = {
  readonly effect: Effect;
  /** The name of the rule that decided; `default` where none did. */
  readonly rule: string;
  /** A sentence for the question and the receipt. */
  readonly reason: string;
};

export type Policy = {
  /** SHA-256 of the file's text; of the empty text without one. */
  readonly sha256: string;
  /** How long a question waits for its answer. */
  readonly approvalTimeoutMs: number;
  decide(request: PolicyRequest): Decision;
};
