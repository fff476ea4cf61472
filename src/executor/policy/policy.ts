/** The port to the operator's policy: calls that are allowed, need an approval, or are denied. */

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

/** A call to be judged. */
export type PolicyRequest = {
  readonly user: string;
  /** `<alias>/<tool>` */
  readonly tool: string;
  readonly args: Readonly<Record<string, unknown>>;
  readonly surface: 'natural' | 'escalate';
  /** The amount by the manifest; `undefined` when the manifest declares none. */
  readonly amount: { readonly value: string; readonly currency: string } | undefined;
  /** The manifest declares an amount, but it cannot be read. */
  readonly amountUnreadable?: boolean;
  /** The person may be absent: an alarm began the turn. */
  readonly unattended: boolean;
  /** Spending of this user in the last 48 hours, including calls with an unknown outcome. */
  readonly spends: readonly Spend[];
  readonly now: number;
};

export type Decision = {
  readonly effect: Effect;
  /** The name of the deciding rule; `default` when none decided. */
  readonly rule: string;
  /** A sentence for the question and the receipt. */
  readonly reason: string;
};

export type Policy = {
  /** SHA-256 of the file's text; without a file, of the empty text. */
  readonly sha256: string;
  /** How long a question waits for its answer. */
  readonly approvalTimeoutMs: number;
  decide(request: PolicyRequest): Decision;
};
