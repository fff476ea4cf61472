/**
 * The body of each kind of envelope: its schema, and the type that follows from it (test/contract/receipt-vectors/README.md describes
 * the same for other implementations). All values survive canonical JSON: numbers are exact, hashes are 64 lower-case
 * hex digits.
 */
import { z } from 'zod';
import { intentSchema } from '../../wire/intent.ts';
import { type ReceiptKind, SIGNED_APPROVALS } from '../../wire/intent-receipt.ts';
import { isWrittenInstant } from '../../wire/rfc3339.ts';
import { hexDigits } from '../../wire/text.ts';

/** An object. Unknown members are accepted, because they are signed like the others; the type has only the known ones. */
const open = <Shape extends z.ZodRawShape>(shape: Shape) =>
  z.looseObject(shape) as unknown as z.ZodType<Readonly<z.output<z.ZodObject<Shape>>>>;

const list = <Item extends z.ZodType>(item: Item) => z.array(item) as unknown as z.ZodType<readonly z.output<Item>[]>;

const text = z.string();
const sha256 = hexDigits(64);
const signature = hexDigits(128);
const hex = z.string().regex(/^(?:[0-9a-f]{2})+$/, 'must be lower-case hex digits, two for each byte');
const UTC = 'must be an instant in UTC with milliseconds, such as 2026-06-15T08:10:00.000Z';
const instant = z.string().refine(isWrittenInstant, UTC);
const args = z.record(z.string(), z.unknown()) as z.ZodType<Readonly<Record<string, unknown>>>;
// A record schema accepts a member named __proto__ with any value.
const hashes = z.custom<Readonly<Record<string, string>>>(
  (value) =>
    args.safeParse(value).success && Object.values(value as object).every((hash) => sha256.safeParse(hash).success),
  'must be an object whose values are 64 lower-case hex digits each',
);
const surface = z.enum(['natural', 'escalate']);
/** The outcome of a call. `not_run`: it certainly never started; `unknown`: the outcome cannot be determined. */
const status = z.enum(['succeeded', 'failed', 'not_run', 'unknown']);
export type CallStatus = z.output<typeof status>;

const at = { at: instant };
const ofCall = { ...at, node_id: text };

/** An answer of a tool as it was received. */
const received = {
  /** SHA-256 and length of the answer's message, byte for byte as it came; absent where none came. */
  response_sha256: sha256.exactOptional(),
  response_bytes: z.int().min(0).exactOptional(),
  /** The text of the answer, cut to a length that fits a receipt. */
  text: text.exactOptional(),
};
export type Received = Readonly<z.output<z.ZodObject<typeof received>>>;

/** A call as it is bound to its approval: `call_sha256` hashes the canonical JSON of `{"args":…,"tool":…}`. */
const boundCall = open({
  tool: text,
  args,
  call_sha256: sha256,
  /** Over the canonical JSON of `args` alone. */
  args_sha256: sha256,
  /** Of the tool's definition: name, description, schemas, annotations. */
  definition_sha256: sha256,
});
export type BoundCall = z.output<typeof boundCall>;

/** A read during the compilation of the intent. */
const read = open({ ...received, tool: text, args, args_sha256: sha256, is_error: z.boolean() });
export type CompileRead = z.output<typeof read>;

/** Where a value of a call's arguments comes from. */
const valueSource = open({
  node_id: text,
  /** JSON Pointer into the arguments. */
  place: text,
  value: text,
  from: text,
  /** The tool that was read while the intent was compiled. */
  tool: text.exactOptional(),
});
/** A reference of a plan: `place` in the arguments of `node_id` takes the value at `pointer` in the result of `from`. */
const planReference = open({
  node_id: text,
  /** JSON Pointer into the arguments; never the arguments as a whole. */
  place: text,
  /** The node of the call with the result. */
  from: text,
  /** JSON Pointer (RFC 6901) into that result; empty for all of it. */
  pointer: text,
});
export type PlanReference = z.output<typeof planReference>;
/** The value of a reference: its JSON text `json`, character for character as the tool wrote it. */
const resolvedValue = open({ place: text, ref: text, json: text });
export type ResolvedValue = z.output<typeof resolvedValue>;
const passkey = open({
  ...{ credential_id: hex, origin: text, public_key: hex, rp_id: text },
  ...{ authenticator_data: hex, client_data: text, signature: hex },
});

export const BODY_SHAPES = {
  'intent.accepted': open({
    ...at,
    intent_id: text,
    principal: open({
      user: text,
      conversation_id: text.exactOptional(),
      origin: z.enum(['chronos', 'person']),
    }),
    idempotency_key: text.exactOptional(),
    /** The submitted task, verbatim: one of the two. `intent` is the JSON source text. */
    prose: text.exactOptional(),
    intent: text.exactOptional(),
    /** The origins of the conversation's pieces, and the hash over the canonical JSON of all of them. */
    context: open({ pieces: list(z.enum(['person', 'alarm', 'tool'])), sha256 }).exactOptional(),
    manifest_sha256: sha256,
    policy_sha256: sha256,
    /** The version of the rules for reading the receipt; absent in receipts from before answers were signed. */
    rules: z.literal(SIGNED_APPROVALS).exactOptional(),
  }),
  'intent.compiled': open({
    ...at,
    intent: intentSchema,
    /** The model that compiled it; `none` for an intent that was submitted as JSON. */
    compiler: text,
    reads: list(read),
    /** Each tool of the plan and the definition that its arguments were checked against. */
    tools: hashes,
    /**
     * The origin of each value of its calls, as the questions show it; absent for an intent that was submitted as JSON.
     */
    provenance: list(valueSource).exactOptional(),
    /**
     * The references in the arguments of its calls. Without this member an object with `$ref` is data, as it was before
     * references existed.
     */
    references: list(planReference).exactOptional(),
  }),
  'intent.clarify': open({ ...at, question: text, compiler: text, reads: list(read) }),
  'intent.parked': open({ ...at, conversation_id: text }),
  /** The decision of the policy about a call. */
  'call.decided': open({
    ...ofCall,
    call: boundCall,
    surface,
    effect: z.enum(['allow', 'ask', 'deny']),
    rule: text,
    reason: text,
    policy_sha256: sha256,
    amount: open({ value: text, currency: text }).exactOptional(),
    /** The value in `call` for each reference of the node, in the order of `references`. */
    resolved: list(resolvedValue).exactOptional(),
  }),
  /** A dry run whose result the question shows. */
  'call.tried': open({ ...ofCall, ...received, tool: text, args, args_sha256: sha256, status }),
  'gate.asked': open({
    ...ofCall,
    call_sha256: sha256,
    /** The full text of the question. */
    displayed: text,
    displayed_sha256: sha256,
    expires_at: instant,
  }),
  'gate.answered': open({
    ...ofCall,
    call_sha256: sha256,
    approved: z.boolean(),
    /** The user of the intent. */
    by: text,
    answer: text.exactOptional(),
    /**
     * All present or all absent, besides `name`: the answered question, and the key with its signature (`wire/approver.ts`) or the
     * passkey with its assertion (`wire/passkey.ts`).
     */
    displayed_sha256: sha256.exactOptional(),
    approver: sha256.exactOptional(),
    /** The name of the key in the executor's roster; the signature does not cover it. */
    name: text.exactOptional(),
    expires_at: instant.exactOptional(),
    signature: signature.exactOptional(),
    passkey: passkey.exactOptional(),
  }),
  /** A refused answer: by the wrong user, about another call, or a second one. */
  'gate.refused': open({
    ...ofCall,
    by: text,
    reason: text,
    call_sha256: text.exactOptional(),
    approver: text.exactOptional(),
  }),
  'gate.expired': open({ ...ofCall, call_sha256: sha256 }),
  /** Written before the call is made. A started call without `call.finished` may or may not have been made. */
  'call.started': open({ ...ofCall, call: boundCall, surface, idempotency_key: text.exactOptional() }),
  'call.finished': open({
    ...ofCall,
    ...received,
    status,
    reason: text.exactOptional(),
    /** Identifiers of what the tool created, by the pointers that the manifest names. */
    references: args.exactOptional(),
    /** The structured result, if there is one and it is short enough. */
    result: z.unknown().optional(),
    /**
     * The result as the JSON text that the tool wrote, with all digits; present if another call refers to it and it is
     * short enough.
     */
    result_text: text.exactOptional(),
  }),
  /** The answer of the tool's status call about a call whose answer was lost. */
  'call.reconciled': open({ ...ofCall, ...received, tool: text, args_sha256: sha256, status, reason: text }),
  'call.read_back': open({ ...ofCall, ...received, tool: text, args_sha256: sha256, status }),
  'wait.started': open({ ...ofCall, until: instant }),
  'wait.finished': open(ofCall),
  /** The journal was changed by another program; envelopes after `good_seq` do not count. */
  'journal.broken': open({ ...at, good_seq: z.int().min(0), reason: text }),
  'intent.completed': open({ ...at, result: z.unknown().optional() }),
  'intent.failed': open({ ...at, code: text, reason: text }),
  'intent.cancelled': open({ ...at, by: text, reason: text }),
  /** A person has to check the calls in `nodes`; `reason` says how. */
  'intent.unknown': open({ ...at, reason: text, nodes: list(text) }),
} as const satisfies { readonly [Kind in ReceiptKind]: z.ZodType };

export type ReceiptBodies = { readonly [Kind in ReceiptKind]: z.output<(typeof BODY_SHAPES)[Kind]> };

/** An envelope before it is signed. */
export type ReceiptEntry = {
  [Kind in ReceiptKind]: { readonly kind: Kind; readonly body: ReceiptBodies[Kind] };
}[ReceiptKind];
