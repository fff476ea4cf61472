/**
 * The receipt of an intent: a chain of signed envelopes, one per event (test/contract/receipt-vectors/README.md). The executor's journal is
 * this chain, and an intent's state is derived from it.
 */
import { z } from 'zod';
import { hexDigits } from './text.ts';

export const RECEIPT_FORMAT = 'reveille-receipt/1';
/** Payload type in the signed DSSE pre-authentication encoding. */
export const RECEIPT_PAYLOAD_TYPE = 'application/vnd.reveille.receipt+json';
/**
 * Value of `rules` in an intent's first envelope, since the approver's key signs answers. A receipt without the member
 * is from an older executor that accepted any answer of the user. The first envelope is signed, so a newer receipt
 * cannot pass for an older one.
 */
export const SIGNED_APPROVALS = 2;
/** `prev_hash` of the first envelope. */
export const NO_HASH = '0'.repeat(64);

/**
 * Events of an intent. `intent.completed`, `.failed`, `.cancelled` and `.unknown` end it; only a reconciliation may
 * follow.
 */
export const RECEIPT_KINDS = [
  ...(['intent.accepted', 'intent.compiled', 'intent.clarify', 'intent.parked'] as const),
  ...(['call.decided', 'call.tried', 'gate.asked', 'gate.answered', 'gate.refused', 'gate.expired'] as const),
  ...(['call.started', 'call.finished', 'call.reconciled', 'call.read_back'] as const),
  ...(['wait.started', 'wait.finished', 'journal.broken'] as const),
  ...(['intent.completed', 'intent.failed', 'intent.cancelled', 'intent.unknown'] as const),
] as const;
export type ReceiptKind = (typeof RECEIPT_KINDS)[number];

const sha256 = hexDigits(64);

export const receiptEnvelopeSchema = z.strictObject({
  /** From 1, without gaps. */
  seq: z.int().min(1),
  kind: z.enum(RECEIPT_KINDS),
  body: z.record(z.string(), z.unknown()),
  /** SHA-256 of the canonical JSON of the previous envelope, signature included. */
  prev_hash: sha256,
  /** SHA-256 of the public key's 32 bytes. */
  key_id: sha256,
  /** Ed25519 over the pre-authentication encoding of the canonical JSON of the other members, 128 hex digits. */
  signature: hexDigits(128),
});
export type ReceiptEnvelope = z.output<typeof receiptEnvelopeSchema>;

/** `GET /intents/{id}/receipt`, and the file that `reveille receipt verify` reads. */
export const intentReceiptSchema = z.strictObject({
  format: z.literal(RECEIPT_FORMAT),
  intent_id: z.string(),
  /** The key that the envelopes claim, 64 hex digits. The reader decides whether to trust it. */
  public_key: sha256,
  envelopes: z.array(receiptEnvelopeSchema),
});
export type IntentReceipt = z.output<typeof intentReceiptSchema>;
