/**
 * Verifies that a chain is unchanged: shapes, numbers, hashes and signatures of its envelopes (test/contract/receipt-vectors/README.md, "The
 * chain"). `verify-receipt.ts` checks that their content is consistent. Pure, apart from the threads that may check
 * signatures.
 */
import { type KeyObject, verify } from 'node:crypto';
import { promisify } from 'node:util';
import { importPublicKey } from '../../kit/identity/keys.ts';
import { type ReceiptEnvelope, receiptEnvelopeSchema } from '../../wire/intent-receipt.ts';
import { checkInput } from '../../wire/validate.ts';
import { type ChainHead, EMPTY_CHAIN, keyIdOf } from './chain.ts';
import { isUnicode, preAuthEncoding, sha256Hex, signedText, unsignedText } from './envelope.ts';
import type { InvariantRule } from './invariants.ts';

/**
 * The invalid property of an envelope. `malformed` is its shape, `digest` a hash in its body, `story` a contradiction
 * to earlier envelopes. With `key`, another key than the expected one signed the receipt. With `approver`, no expected
 * approver approved a started call.
 */
export type BrokenProperty =
  | ('malformed' | 'key' | 'seq' | 'key_id' | 'prev_hash' | 'signature' | 'digest' | 'story')
  | 'approver';

/** The first defect. */
export type BrokenLink = {
  /** Which envelope, counted from 1; 0 for the receipt around them. */
  readonly seq: number;
  readonly property: BrokenProperty;
  /** Of `story`: the rule, by its name in test/contract/receipt-vectors/README.md. */
  readonly rule?: InvariantRule;
  readonly message: string;
  readonly expected?: string;
  readonly found?: string;
};

/** A chain up to its first broken link. */
export type ChainReport = {
  /** The last envelope that is valid together with all before it. */
  readonly head: ChainHead;
  readonly broken: BrokenLink | undefined;
};

const verifyInThread = promisify(verify);

/**
 * An envelope without its neighbours. If `malformed` comes with an `envelope`, only its text is malformed; this is
 * reported after its links have been checked.
 */
export type ParsedEnvelope =
  | { readonly envelope: ReceiptEnvelope; readonly unsigned: string }
  | { readonly envelope?: ReceiptEnvelope; readonly malformed: string };

/** Parses an envelope without its neighbours: its shape and its signed text. */
export function parseEnvelope(value: unknown): ParsedEnvelope {
  const checked = checkInput(receiptEnvelopeSchema, value);
  if ('problems' in checked) return { malformed: checked.problems[0]!.sentence };
  // Check the parsed value, not the schema's output: members that the schema drops must count.
  const envelope = value as ReceiptEnvelope;
  let unsigned: string;
  try {
    unsigned = unsignedText(envelope);
  } catch (thrown) {
    if (!(thrown instanceof TypeError || thrown instanceof RangeError)) throw thrown;
    return { envelope, malformed: `its body has no canonical form: ${thrown.message}` };
  }
  if (!isUnicode(unsigned)) return { envelope, malformed: 'a text in its body contains a lone surrogate' };
  return { envelope, unsigned };
}

/** Verifies a chain, envelope by envelope. */
export class ChainReader {
  readonly #keyId: string;
  readonly #key: KeyObject | undefined;
  /** The head of the envelopes that were added. */
  head = EMPTY_CHAIN;

  /** @param publicKey the signer's, 64 hex digits */
  constructor(publicKey: string) {
    this.#keyId = keyIdOf(publicKey);
    this.#key = importPublicKey(publicKey);
  }

  /** Whether an envelope has the signer's signature; independent of earlier envelopes. */
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
   * @param isSigned the result of {@link isSigned}
   * @returns its defect, in which case it is not added
   */
  add(loose: ParsedEnvelope, isSigned = this.isSigned(loose)): BrokenLink | undefined {
    const seq = this.head.seq + 1;
    const link = loose.envelope && this.#linkOf(loose.envelope, seq);
    if (link) return link;
    if ('malformed' in loose) return { seq, property: 'malformed', message: loose.malformed };
    const { envelope, unsigned } = loose;
    if (!isSigned) {
      const message =
        'the signature is not valid for the key and this envelope: the envelope was changed, or another key signed it';
      return { seq, property: 'signature', message, found: envelope.signature };
    }
    this.head = { seq, hash: sha256Hex(signedText(unsigned, envelope.signature)) };
    return undefined;
  }

  #linkOf(envelope: ReceiptEnvelope, seq: number): BrokenLink | undefined {
    const { seq: found, key_id: keyId, prev_hash: prevHash } = envelope;
    if (found !== seq) {
      const message = `its number is ${found} instead of ${seq}: an envelope is missing, was inserted or was moved`;
      return { seq, property: 'seq', message, expected: String(seq), found: String(found) };
    }
    if (keyId !== this.#keyId) {
      const message = 'it names another key than the receipt';
      return { seq, property: 'key_id', message, expected: this.#keyId, found: keyId };
    }
    if (prevHash === this.head.hash) return undefined;
    const message = 'it does not follow the envelope before it: one of the two was changed';
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
