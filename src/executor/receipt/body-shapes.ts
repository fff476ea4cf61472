/** The schema of each kind of body. Unknown members are accepted: they are signed like the others. */
import { z } from 'zod';
import { intentSchema } from '../../wire/intent.ts';
import { type ReceiptKind, SIGNED_APPROVALS } from '../../wire/intent-receipt.ts';
import { isWrittenInstant } from '../../wire/rfc3339.ts';
import type { ReceiptBodies } from './bodies.ts';

const text = z.string();
const sha256 = z.string().regex(/^[0-9a-f]{64}$/, 'must be 64 lower-case hex digits');
const signature = z.string().regex(/^[0-9a-f]{128}$/, 'must be 128 lower-case hex digits');
const hex = z.string().regex(/^(?:[0-9a-f]{2})+$/, 'must be lower-case hex digits, two for each byte');
const UTC = 'must be an instant in UTC with milliseconds, such as 2026-06-15T08:10:00.000Z';

const instant = z.string().refine(isWrittenInstant, UTC);
const args = z.record(z.string(), z.unknown());
// A record's schema would let a member of the name __proto__ pass, whatever its value is.
const hashes = z.custom<Readonly<Record<string, string>>>(
  (value) =>
    args.safeParse(value).success && Object.values(value as object).every((hash) => sha256.safeParse(hash).success),
  'must be an object whose values are 64 lower-case hex digits each',
);
const surface = z.enum(['natural', 'escalate']);
const status = z.enum(['succeeded', 'failed', 'not_run', 'unknown']);
const at = { at: instant };
const ofCall = { ...at, node_id: text };
const received = {
  response_sha256: sha256.exactOptional(),
  response_bytes: z.int().min(0).exactOptional(),
  text: text.exactOptional(),
};
const boundCall = z.looseObject({
  tool: text,
  args,
  call_sha256: sha256,
  args_sha256: sha256,
  definition_sha256: sha256,
});
const read = z.looseObject({ ...received, tool: text, args, args_sha256: sha256, is_error: z.boolean() });

const valueSource = z.looseObject({
  ...{ node_id: text, place: text, value: text, from: text },
  tool: text.exactOptional(),
});

const planReference = z.looseObject({ node_id: text, place: text, from: text, pointer: text });
const resolvedValue = z.looseObject({ place: text, ref: text, json: text });

const passkey = z.looseObject({
  ...{ credential_id: hex, origin: text, public_key: hex, rp_id: text },
  ...{ authenticator_data: hex, client_data: text, signature: hex },
});

export const BODY_SHAPES: { readonly [Kind in ReceiptKind]: z.ZodType<ReceiptBodies[Kind]> } = {
  'intent.accepted': z.looseObject({
    ...at,
    intent_id: text,
    principal: z.looseObject({
      user: text,
      conversation_id: text.exactOptional(),
      origin: z.enum(['chronos', 'person']),
    }),
    idempotency_key: text.exactOptional(),
    prose: text.exactOptional(),
    intent: text.exactOptional(),
    context: z.looseObject({ pieces: z.array(z.enum(['person', 'alarm', 'tool'])), sha256 }).exactOptional(),
    manifest_sha256: sha256,
    policy_sha256: sha256,
    rules: z.literal(SIGNED_APPROVALS).exactOptional(),
  }),
  'intent.compiled': z.looseObject({
    ...at,
    intent: intentSchema,
    compiler: text,
    reads: z.array(read),
    tools: hashes,
    provenance: z.array(valueSource).exactOptional(),
    references: z.array(planReference).exactOptional(),
  }),
  'intent.clarify': z.looseObject({ ...at, question: text, compiler: text, reads: z.array(read) }),
  'intent.parked': z.looseObject({ ...at, conversation_id: text }),
  'call.decided': z.looseObject({
    ...ofCall,
    call: boundCall,
    surface,
    effect: z.enum(['allow', 'ask', 'deny']),
    rule: text,
    reason: text,
    policy_sha256: sha256,
    amount: z.looseObject({ value: text, currency: text }).exactOptional(),
    resolved: z.array(resolvedValue).exactOptional(),
  }),
  'call.tried': z.looseObject({ ...ofCall, ...received, tool: text, args, args_sha256: sha256, status }),
  'gate.asked': z.looseObject({
    ...ofCall,
    call_sha256: sha256,
    displayed: text,
    displayed_sha256: sha256,
    expires_at: instant,
  }),
  'gate.answered': z.looseObject({
    ...ofCall,
    call_sha256: sha256,
    approved: z.boolean(),
    by: text,
    answer: text.exactOptional(),
    displayed_sha256: sha256.exactOptional(),
    approver: sha256.exactOptional(),
    name: text.exactOptional(),
    expires_at: instant.exactOptional(),
    signature: signature.exactOptional(),
    passkey: passkey.exactOptional(),
  }),
  'gate.refused': z.looseObject({
    ...ofCall,
    by: text,
    reason: text,
    call_sha256: text.exactOptional(),
    approver: text.exactOptional(),
  }),
  'gate.expired': z.looseObject({ ...ofCall, call_sha256: sha256 }),
  'call.started': z.looseObject({ ...ofCall, call: boundCall, surface, idempotency_key: text.exactOptional() }),
  'call.finished': z.looseObject({
    ...ofCall,
    ...received,
    status,
    reason: text.exactOptional(),
    references: args.exactOptional(),
    result: z.unknown().optional(),
    result_text: text.exactOptional(),
  }),
  'call.reconciled': z.looseObject({
    ...ofCall,
    ...received,
    tool: text,
    args_sha256: sha256,
    status,
    reason: text,
  }),
  'call.read_back': z.looseObject({ ...ofCall, ...received, tool: text, args_sha256: sha256, status }),
  'wait.started': z.looseObject({ ...ofCall, until: instant }),
  'wait.finished': z.looseObject(ofCall),
  'journal.broken': z.looseObject({ ...at, good_seq: z.int().min(0), reason: text }),
  'intent.completed': z.looseObject({ ...at, result: z.unknown().optional() }),
  'intent.failed': z.looseObject({ ...at, code: text, reason: text }),
  'intent.cancelled': z.looseObject({ ...at, by: text, reason: text }),
  'intent.unknown': z.looseObject({ ...at, reason: text, nodes: z.array(text) }),
};
