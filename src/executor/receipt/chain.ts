/**
 * The key that signs a chain, and the next envelope of a chain. The caller stores an envelope in one transaction with
 * the change that it records.
 */
import { hash } from 'node:crypto';
import { type AgentKey, loadOrCreateKey } from '../../kit/identity/keys.ts';
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

/** The last envelope of a chain, as far as the next one depends on it. */
export type ChainHead = { readonly seq: number; readonly hash: string };

/** The head of a chain that has no envelope yet. */
export const EMPTY_CHAIN: ChainHead = { seq: 0, hash: NO_HASH };

export type Sealed = {
  readonly envelope: ReceiptEnvelope;
  /** Its canonical JSON, which is hashed and stored. */
  readonly text: string;
  /** The chain's new head. */
  readonly head: ChainHead;
};

type Addition = { readonly head: ChainHead; readonly entry: ReceiptEntry; readonly key: SigningKey };

/**
 * Signs an entry as the next envelope of a chain. Members that are `undefined` are omitted; lone surrogates, which have
 * no UTF-8 form, become U+FFFD.
 *
 * @throws TypeError when the body holds what JSON cannot carry, or is nested more than 253 deep
 */
export function nextEnvelope({ head, entry, key }: Addition): Sealed {
  const { kind } = entry;
  // The receipt, its list and the envelope are three levels around the body.
  if (isDeeperThan(entry.body, RECEIPT_DEPTH_MAX - 3))
    throw new TypeError(`the body of ${kind} is nested more than ${RECEIPT_DEPTH_MAX - 3} deep`);
  const fields = { seq: head.seq + 1, kind, prev_hash: head.hash, key_id: key.keyId };
  const unsigned = inUnicode(unsignedText({ ...fields, body: entry.body }));
  const text = signedText(unsigned, key.sign(preAuthEncoding(unsigned)));
  // Parse the signed text: the caller's object may contain `undefined` and may change later.
  const envelope = JSON.parse(text) as ReceiptEnvelope;
  return { envelope, text, head: { seq: fields.seq, hash: sha256Hex(text) } };
}

/** The key that an executor signs receipts with: `executor.key` in its data folder. */
export type SigningKey = {
  /** SHA-256 of the public key's 32 bytes; part of every envelope. */
  readonly keyId: string;
  /** 64 hex digits. */
  readonly publicKeyHex: string;
  /** Signs a text's UTF-8 form; 128 hex digits. */
  sign(message: string): string;
};

/** @param publicKeyHex 64 hex digits */
export function keyIdOf(publicKeyHex: string): string {
  return hash('sha256', Buffer.from(publicKeyHex, 'hex'));
}

export function signingKey(key: AgentKey): SigningKey {
  const { publicKeyHex } = key;
  return { keyId: keyIdOf(publicKeyHex), publicKeyHex, sign: (message) => key.sign(message) };
}

/**
 * Reads the key file, or creates it with mode 0600.
 *
 * @throws ReveilleError `forbidden` when others can read the file, `invalid_request` when it contains no seed,
 *   `unavailable` when it cannot be read or created
 */
export function loadSigningKey(path: string): SigningKey {
  return signingKey(loadOrCreateKey(path));
}
