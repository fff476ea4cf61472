/** Appending to a chain. Pure: the caller keeps what comes out, in one transaction with what it stands for. */
import { NO_HASH, type ReceiptEnvelope } from '../../wire/intent-receipt.ts';
import type { ReceiptEntry } from './bodies.ts';
import {
  inUnicode,
  isDeeperThan,
  preAuthEncoding,
  RECEIPT_DEPTH_MAX,
  sha256Hex,
  signedText,
  unsignedText,
} from './envelope.ts';
import type { SigningKey } from './signing-key.ts';

/** The last envelope of a chain, as far as the next one depends on it. */
export type ChainHead = { readonly seq: number; readonly hash: string };

/** The head of a chain that has no envelope yet. */
export const EMPTY_CHAIN: ChainHead = { seq: 0, hash: NO_HASH };

export type Sealed = {
  readonly envelope: ReceiptEnvelope;
  /** Its canonical JSON: what its hash is over, and what is to be stored. */
  readonly text: string;
  /** The chain's head with it. */
  readonly head: ChainHead;
};

/**
 * Signs what happened as the next envelope of a chain. Members of the body that are `undefined` are left out; halves of
 * surrogate pairs, which no signature could carry, become U+FFFD.
 *
 * @throws TypeError when the body holds what JSON cannot carry, or is nested more than 253 deep
 */
export function nextEnvelope({
  head,
  entry,
  key,
}: {
  readonly head: ChainHead;
  readonly entry: ReceiptEntry;
  readonly key: SigningKey;
}): Sealed {
  const { kind } = entry;
  // The receipt, its list and the envelope stand around the body.
  if (isDeeperThan(entry.body, RECEIPT_DEPTH_MAX - 3))
    throw new TypeError(`the body of ${kind} is nested more than ${RECEIPT_DEPTH_MAX - 3} deep`);
  const fields = { seq: head.seq + 1, kind, prev_hash: head.hash, key_id: key.keyId };
  const unsigned = inUnicode(unsignedText({ ...fields, body: entry.body }));
  const text = signedText(unsigned, key.sign(preAuthEncoding(unsigned)));
  // Read back from what was signed: the caller's object may hold `undefined`, and may be changed later.
  const envelope = JSON.parse(text) as ReceiptEnvelope;
  return { envelope, text, head: { seq: fields.seq, hash: sha256Hex(text) } };
}
