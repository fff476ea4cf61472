/**
 * The receipt of an intent: a chain of signed envelopes, one for each thing that happened (docs/receipts.md). The
 * executor's journal is this chain; what an intent's state is follows from it.
 */
import { z } from 'zod';

export const RECEIPT_FORMAT = 'reveille-receipt/1';
/** The payload type of the DSSE pre-authentication encoding that is signed. */
export const RECEIPT_PAYLOAD_TYPE = 'application/vnd.reveille.receipt+json';
/**
 * What `rules` of an intent's first envelope says since answers are signed by the key of whoever gives them. Without
 * the member the receipt is of an executor that took any answer of its user's; the first envelope is signed, so that a
 * newer one cannot pass for such.
 */
export const SIGNED_APPROVALS = 2;
/** Stands for the envelope before the first. */
export const NO_HASH = '0'.repeat(64);

/**
 * What can happen to an intent. `intent.completed`, `.failed`, `.cancelled` and `.unknown` end it, but for what a
 * reconciliation adds.
 */
export const RECEIPT_KINDS = [
  ...(['intent.accepted', 'intent.compiled', 'intent.clarify', 'intent.parked'] as const),
  ...(['call.decided', 'call.tried', 'gate.asked', 'gate.answered', 'gate.refused', 'gate.expired'] as const),
  ...(['call.started', 'call.finished', 'call.reconciled', 'call.read_back'] as const),
  ...(['wait.started', 'wait.finished', 'journal.broken'] as const),
  ...(['intent.completed', 'intent.failed', 'intent.cancelled', 'intent.unknown'] as const),
] as const;
export type ReceiptKind = (typeof RECEIPT_KINDS)[number];

const sha256 = z.string().regex(/^[0-9a-f]{64}$/, 'must be 64 lower-case hex digits');

export const receiptEnvelopeSchema = z.strictObject({
  /** From 1, without gaps. */
  seq: z.int().min(1),
  kind: z.enum(RECEIPT_KINDS),
  body: z.record(z.string(), z.unknown()),
  /** SHA-256 of the canonical JSON of the envelope before, signature included. */
  prev_hash: sha256,
  /** SHA-256 of the public key's 32 bytes. */
  key_id: sha256,
  /** Ed25519 over the pre-authentication encoding of the canonical JSON of the other members, 128 hex digits. */
  signature: z.string().regex(/^[0-9a-f]{128}$/, 'must be 128 lower-case hex digits'),
});
export type ReceiptEnvelope = z.output<typeof receiptEnvelopeSchema>;

/** `GET /intents/{id}/receipt`, and the file that `reveille receipt verify` reads. */
export const intentReceiptSchema = z.strictObject({
  format: z.literal(RECEIPT_FORMAT),
  intent_id: z.string(),
  /** Says which key the envelopes claim; whether to trust it is the reader's business. 64 hex digits. */
  public_key: sha256,
  envelopes: z.array(receiptEnvelopeSchema),
});
export type IntentReceipt = z.output<typeof intentReceiptSchema>;
