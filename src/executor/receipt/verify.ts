/**
 * Checking that a chain is the one that was written, on nobody's word: shapes, numbers, hashes and signatures of its
 * envelopes (docs/receipts.md, "The chain"). Whether what they tell can have happened is another matter:
 * `verify-receipt.ts`. Pure, but for the threads that signatures may be checked on.
 */
import { createPublicKey, type KeyObject, verify } from 'node:crypto';
import { promisify } from 'node:util';
import { type ReceiptEnvelope, receiptEnvelopeSchema } from '../../wire/intent-receipt.ts';
import { checkInput } from '../../wire/validate.ts';
import { type ChainHead, EMPTY_CHAIN } from './chain.ts';
import { isUnicode, preAuthEncoding, sha256Hex, signedText, unsignedText } from './envelope.ts';
import type { InvariantRule } from './invariants.ts';
import { keyIdOf } from './signing-key.ts';

/**
 * What of an envelope does not hold. `malformed`: its shape; `digest`: a hash in its body; `story`: it contradicts what
 * stands before it; `key`: the receipt is by another key than the one that was expected; `approver`: a call was started
 * without the approval of whom the reader has named.
 */
export type BrokenProperty =
  | ('malformed' | 'key' | 'seq' | 'key_id' | 'prev_hash' | 'signature' | 'digest' | 'story')
  | 'approver';

/** The first thing that is wrong. */
export type BrokenLink = {
  /** Which envelope, counted from 1; 0 for the receipt around them. */
  readonly seq: number;
  readonly property: BrokenProperty;
  /** Of `story`: the rule, by its name in docs/receipts.md. */
  readonly rule?: InvariantRule;
  readonly message: string;
  readonly expected?: string;
  readonly found?: string;
};

/** A chain up to its first broken link. */
export type ChainReport = {
  /** The last envelope that holds, with all before it. */
  readonly head: ChainHead;
  readonly broken: BrokenLink | undefined;
};

/** What stands before the 32 bytes of a public key in SPKI DER (RFC 8410 §4). */
const SPKI_PREFIX = Buffer.from('302a300506032b6570032100', 'hex');

const verifyInThread = promisify(verify);

function importKey(publicKeyHex: string): KeyObject | undefined {
  try {
    const der = Buffer.concat([SPKI_PREFIX, Buffer.from(publicKeyHex, 'hex')]);
    return createPublicKey({ key: der, format: 'der', type: 'spki' });
  } catch {
    // 32 bytes that are no point of the curve: no signature is valid under them.
    return undefined;
  }
}

/**
 * An envelope by itself. What is malformed of one that has an `envelope` is its text, which counts when its links hold.
 */
export type ParsedEnvelope =
  | { readonly envelope: ReceiptEnvelope; readonly unsigned: string }
  | { readonly envelope?: ReceiptEnvelope; readonly malformed: string };

/** Looks at an envelope by itself: its shape, and the text that is signed. */
export function parseEnvelope(value: unknown): ParsedEnvelope {
  const checked = checkInput(receiptEnvelopeSchema, value);
  if ('problems' in checked) return { malformed: checked.problems[0]!.sentence };
  // What was read is checked, not what the schema makes of it: a member that it would drop must count.
  const envelope = value as ReceiptEnvelope;
  let unsigned: string;
  try {
    unsigned = unsignedText(envelope);
  } catch (thrown) {
    if (!(thrown instanceof TypeError || thrown instanceof RangeError)) throw thrown;
    return { envelope, malformed: `its body has no canonical form: ${thrown.message}` };
  }
  if (!isUnicode(unsigned)) return { envelope, malformed: 'a text in its body holds half of a surrogate pair' };
  return { envelope, unsigned };
}

/** Takes in a chain, envelope by envelope. */
export class ChainReader {
  readonly #keyId: string;
  readonly #key: KeyObject | undefined;
  /** Of what was taken in. */
  head = EMPTY_CHAIN;

  /** @param publicKey the signer's, 64 hex digits */
  constructor(publicKey: string) {
    this.#keyId = keyIdOf(publicKey);
    this.#key = importKey(publicKey);
  }

  /** Whether an envelope bears the signer's signature, whatever stands before it. */
  isSigned(loose: ParsedEnvelope): boolean {
    if (!('unsigned' in loose) || !this.#key) return false;
    const { envelope, unsigned } = loose;
    return verify(null, Buffer.from(preAuthEncoding(unsigned)), this.#key, Buffer.from(envelope.signature, 'hex'));
  }

  /** As {@link isSigned}, on another thread. */
  async isSignedInThread(loose: ParsedEnvelope): Promise<boolean> {
    if (!('unsigned' in loose) || !this.#key) return false;
    const { envelope, unsigned } = loose;
    const signature = Buffer.from(envelope.signature, 'hex');
    return await verifyInThread(null, Buffer.from(preAuthEncoding(unsigned)), this.#key, signature);
  }

  /**
   * @param isSigned what {@link isSigned} says of it
   * @returns what is wrong with it; it is then not taken in
   */
  add(loose: ParsedEnvelope, isSigned = this.isSigned(loose)): BrokenLink | undefined {
    const seq = this.head.seq + 1;
    const link = loose.envelope && this.#linkOf(loose.envelope, seq);
    if (link) return link;
    if ('malformed' in loose) return { seq, property: 'malformed', message: loose.malformed };
    const { envelope, unsigned } = loose;
    if (!isSigned) {
      const message =
        'the signature is not one of the key over this envelope: a member of it was changed, or somebody else signed';
      return { seq, property: 'signature', message, found: envelope.signature };
    }
    this.head = { seq, hash: sha256Hex(signedText(unsigned, envelope.signature)) };
    return undefined;
  }

  #linkOf(envelope: ReceiptEnvelope, seq: number): BrokenLink | undefined {
    const { seq: found, key_id: keyId, prev_hash: prevHash } = envelope;
    if (found !== seq) {
      const message = `its number is ${found}, and ${seq} comes here: an envelope is missing, was put in, or changed its place`;
      return { seq, property: 'seq', message, expected: String(seq), found: String(found) };
    }
    if (keyId !== this.#keyId) {
      const message = 'it names another key than the receipt';
      return { seq, property: 'key_id', message, expected: this.#keyId, found: keyId };
    }
    if (prevHash === this.head.hash) return undefined;
    const message = 'it does not follow the envelope before it: that one, or this one, is not the one that was written';
    return { seq, property: 'prev_hash', message, expected: this.head.hash, found: prevHash };
  }
}

/**
 * Checks a chain up to its first broken link.
 *
 * @param envelopes in their order, as `JSON.parse` gives them
 * @param chain the signer's public key, 64 hex digits
 */
export function verifyChain(envelopes: Iterable<unknown>, { publicKey }: { readonly publicKey: string }): ChainReport {
  const reader = new ChainReader(publicKey);
  for (const envelope of envelopes) {
    const broken = reader.add(parseEnvelope(envelope));
    if (broken) return { head: reader.head, broken };
  }
  return { head: reader.head, broken: undefined };
}
