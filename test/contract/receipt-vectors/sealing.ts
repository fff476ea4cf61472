/** Receipts of stories, signed by publicly known keys. */
import type { ReceiptEntry } from '../../../src/executor/receipt/bodies.ts';
import { EMPTY_CHAIN, nextEnvelope, type SigningKey, signingKey } from '../../../src/executor/receipt/chain.ts';
import { AgentKey } from '../../../src/kit/identity/keys.ts';
import { type IntentReceipt, RECEIPT_FORMAT, type ReceiptEnvelope } from '../../../src/wire/intent-receipt.ts';
import { INTENT_ID } from './stories.ts';

/** The seeds of the first two tests of RFC 8032 §7.1. */
export const KEY = signingKey(new AgentKey('9d61b19deffd5a60ba844af492ec2cc44449c5697b326919703bac031cae7f60'));
export const OTHER_KEY = signingKey(new AgentKey('4ccd089b28ff96da9db6c346ec114e0f5b8a319f35aba624da8cf6ed4fb8a6fb'));

export function seal(entries: readonly ReceiptEntry[], key: SigningKey = KEY): ReceiptEnvelope[] {
  let head = EMPTY_CHAIN;
  return entries.map((entry) => {
    const sealed = nextEnvelope({ head, entry, key });
    head = sealed.head;
    return sealed.envelope;
  });
}

export function receiptOf(envelopes: readonly ReceiptEnvelope[], key: SigningKey = KEY): IntentReceipt {
  return { format: RECEIPT_FORMAT, intent_id: INTENT_ID, public_key: key.publicKeyHex, envelopes: [...envelopes] };
}
