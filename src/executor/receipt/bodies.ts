/**
 * The body of each kind of envelope (docs/reference/receipts.md describes the same for other implementations). All values survive
 * canonical JSON: numbers are exact, hashes are 64 lower-case hex digits.
 */
import type { ContextPiece } from '../../wire/executor.ts';
import type { Intent } from '../../wire/intent.ts';
import type { ReceiptKind, SIGNED_APPROVALS } from '../../wire/intent-receipt.ts';
import type { PasskeySignature } from '../../wire/passkey.ts';
import type { PlanReference, ResolvedValue } from '../intent/reference.ts';

/** Instants are in UTC, with milliseconds: `2026-06-15T08:10:00.000Z`. */
type At = { readonly at: string };
type OfCall = At & { readonly node_id: string };

/** A call as it is bound to its approval: `call_sha256` hashes the canonical JSON of `{"args":…,"tool":…}`. */
export type BoundCall = {
  readonly tool: string;
  readonly args: Readonly<Record<string, unknown>>;
  readonly call_sha256: string;
  /** Over the canonical JSON of `args` alone. */
  readonly args_sha256: string;
  /** Of the tool's definition: name, description, schemas, annotations. */
  readonly definition_sha256: string;
};

/** An answer of a tool as it was received. */
export type Received = {
  /** SHA-256 and length of the answer's message, byte for byte as it came; absent where none came. */
  readonly response_sha256?: string;
  readonly response_bytes?: number;
  /** The text of the answer, cut to a length that fits a receipt. */
  readonly text?: string;
};

/** A read during the compilation of the intent. */
export type CompileRead = Received & {
  readonly tool: string;
  readonly args: Readonly<Record<string, unknown>>;
  readonly args_sha256: string;
  readonly is_error: boolean;
};

/** Where a value of a call's arguments comes from. */
export type ValueSource = {
  readonly node_id: string;
  /** JSON Pointer into the arguments. */
  readonly place: string;
  readonly value: string;
  readonly from: string;
  /** The tool that was read while the intent was compiled. */
  readonly tool?: string;
};

/** The outcome of a call. `not_run`: it certainly never started; `unknown`: the outcome cannot be determined. */
export type CallStatus = 'succeeded' | 'failed' | 'not_run' | 'unknown';

export type ReceiptBodies = {
  'intent.accepted': At & {
    readonly intent_id: string;
    readonly principal: {
      readonly user: string;
      readonly conversation_id?: string;
      readonly origin: 'chronos' | 'person';
    };
    readonly idempotency_key?: string;
    /** The submitted task, verbatim: one of the two. `intent` is the JSON source text. */
    readonly prose?: string;
    readonly intent?: string;
    /** The origins of the conversation's pieces, and the hash over the canonical JSON of all of them. */
    readonly context?: { readonly pieces: readonly ContextPiece['from'][]; readonly sha256: string };
    readonly manifest_sha256: string;
    readonly policy_sha256: string;
    /** The version of the rules for reading the receipt; absent in receipts from before answers were signed. */
    readonly rules?: typeof SIGNED_APPROVALS;
  };
  'intent.compiled': At & {
    readonly intent: Intent;
    /** The model that compiled it; `none` for an intent that was submitted as JSON. */
    readonly compiler: string;
    readonly reads: readonly CompileRead[];
    /** Each tool of the plan and the definition that its arguments were checked against. */
    readonly tools: Readonly<Record<string, string>>;
    /**
     * The origin of each value of its calls, as the questions show it; absent for an intent that was submitted as JSON.
     */
    readonly provenance?: readonly ValueSource[];
    /**
     * The references in the arguments of its calls. Without this member an object with `$ref` is data, as it was before
     * references existed.
     */
    readonly references?: readonly PlanReference[];
  };
  'intent.clarify': At & {
    readonly question: string;
    readonly compiler: string;
    readonly reads: readonly CompileRead[];
  };
  'intent.parked': At & { readonly conversation_id: string };
  /** The decision of the policy about a call. */
  'call.decided': OfCall & {
    readonly call: BoundCall;
    readonly surface: 'natural' | 'escalate';
    readonly effect: 'allow' | 'ask' | 'deny';
    readonly rule: string;
    readonly reason: string;
    readonly policy_sha256: string;
    readonly amount?: { readonly value: string; readonly currency: string };
    /** The value in `call` for each reference of the node, in the order of `references`. */
    readonly resolved?: readonly ResolvedValue[];
  };
  /** A dry run whose result the question shows. */
  'call.tried': OfCall &
    Received & {
      readonly tool: string;
      readonly args: Readonly<Record<string, unknown>>;
      readonly args_sha256: string;
      readonly status: CallStatus;
    };
  'gate.asked': OfCall & {
    readonly call_sha256: string;
    /** The full text of the question. */
    readonly displayed: string;
    readonly displayed_sha256: string;
    readonly expires_at: string;
  };
  'gate.answered': OfCall & {
    readonly call_sha256: string;
    readonly approved: boolean;
    /** The user of the intent. */
    readonly by: string;
    readonly answer?: string;
    /**
     * All present or all absent: the answered question, and the key with its signature (`wire/approver.ts`) or the
     * passkey with its assertion (`wire/passkey.ts`).
     */
    readonly displayed_sha256?: string;
    readonly approver?: string;
    readonly expires_at?: string;
    readonly signature?: string;
    readonly passkey?: PasskeySignature;
    /** The name of the key in the executor's roster. */
    readonly name?: string;
  };
  /** A refused answer: by the wrong user, about another call, or a second one. */
  'gate.refused': OfCall & {
    readonly by: string;
    readonly reason: string;
    readonly call_sha256?: string;
    readonly approver?: string;
  };
  'gate.expired': OfCall & { readonly call_sha256: string };
  /** Written before the call is made. A started call without `call.finished` may or may not have been made. */
  'call.started': OfCall & {
    readonly call: BoundCall;
    readonly surface: 'natural' | 'escalate';
    readonly idempotency_key?: string;
  };
  'call.finished': OfCall &
    Received & {
      readonly status: CallStatus;
      readonly reason?: string;
      /** Identifiers of what the tool created, by the pointers that the manifest names. */
      readonly references?: Readonly<Record<string, unknown>>;
      /** The structured result, if there is one and it is short enough. */
      readonly result?: unknown;
      /**
       * The result as the JSON text that the tool wrote, with all digits; present if another call refers to it and it
       * is short enough.
       */
      readonly result_text?: string;
    };
  /** The answer of the tool's status call about a call whose answer was lost. */
  'call.reconciled': OfCall &
    Received & {
      readonly tool: string;
      readonly args_sha256: string;
      readonly status: CallStatus;
      readonly reason: string;
    };
  'call.read_back': OfCall &
    Received & { readonly tool: string; readonly args_sha256: string; readonly status: CallStatus };
  'wait.started': OfCall & { readonly until: string };
  'wait.finished': OfCall;
  /** The journal was changed by another program; envelopes after `good_seq` do not count. */
  'journal.broken': At & { readonly good_seq: number; readonly reason: string };
  'intent.completed': At & { readonly result?: unknown };
  'intent.failed': At & { readonly code: string; readonly reason: string };
  'intent.cancelled': At & { readonly by: string; readonly reason: string };
  /** A person has to check the calls in `nodes`; `reason` says how. */
  'intent.unknown': At & { readonly reason: string; readonly nodes: readonly string[] };
};

/** An envelope before it is signed. */
export type ReceiptEntry = {
  [Kind in ReceiptKind]: { readonly kind: Kind; readonly body: ReceiptBodies[Kind] };
}[ReceiptKind];
