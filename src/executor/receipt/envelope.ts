/** One envelope of a receipt: its signed text and its hashed text (test/contract/receipt-vectors/README.md). Pure. */
import { hash } from 'node:crypto';
import { canonicalJson } from '../../wire/canonical-json.ts';
import { RECEIPT_PAYLOAD_TYPE, type ReceiptEnvelope } from '../../wire/intent-receipt.ts';

/** An envelope without its signature. */
export type UnsignedEnvelope = Omit<ReceiptEnvelope, 'signature'>;

const TYPE_LENGTH = Buffer.byteLength(RECEIPT_PAYLOAD_TYPE);

/** SHA-256 of a text's UTF-8 form, 64 hex digits. */
export function sha256Hex(text: string): string {
  return hash('sha256', text, 'hex');
}

/** SHA-256 of a value's canonical JSON. @throws TypeError for what JSON cannot carry */
export function digestOf(value: unknown): string {
  return sha256Hex(canonicalJson(value));
}

/** The digest that an answer is bound to: over the tool and its exact arguments. */
export function callSha256(tool: string, args: Readonly<Record<string, unknown>>): string {
  return digestOf({ tool, args });
}

/** The canonical JSON of an envelope without its signature. @throws TypeError for what JSON cannot carry */
export function unsignedText({ seq, kind, body, prev_hash, key_id }: UnsignedEnvelope): string {
  return canonicalJson({ seq, kind, body, prev_hash, key_id });
}

/** The canonical JSON of the whole envelope: `signature` sorts behind all other members. */
export function signedText(unsigned: string, signature: string): string {
  return `${unsigned.slice(0, -1)},"signature":"${signature}"}`;
}

/**
 * The text that is signed: the pre-authentication encoding of DSSE (protocol.md of secure-systems-lab/dsse), whose byte
 * lengths separate type and text unambiguously.
 */
export function preAuthEncoding(unsigned: string): string {
  return `DSSEv1 ${TYPE_LENGTH} ${RECEIPT_PAYLOAD_TYPE} ${Buffer.byteLength(unsigned)} ${unsigned}`;
}

/** An escape in canonical JSON; only escapes of lone surrogates begin with `\ud`. */
const HALF = /\\(?:\\|(ud[89a-f][0-9a-f]{2}))/g;

/** Whether a canonical JSON text contains no lone surrogate; a text with one has no UTF-8 form (RFC 8785 §3.2.2.2). */
export function isUnicode(canonical: string): boolean {
  if (!canonical.includes('\\ud')) return true;
  return ![...canonical.matchAll(HALF)].some(([, half]) => half !== undefined);
}

/** The canonical JSON of the same value with U+FFFD for each lone surrogate. */
export function inUnicode(canonical: string): string {
  if (isUnicode(canonical)) return canonical;
  // Canonicalize again: renamed members may sort in another order.
  return canonicalJson(JSON.parse(canonical.replace(HALF, (same, half) => (half === undefined ? same : '\ufffd'))));
}

/** Maximum nesting depth of a receipt. */
export const RECEIPT_DEPTH_MAX = 256;

/** Whether a value is nested deeper than `levels`. */
export function isDeeperThan(value: unknown, levels: number): boolean {
  if (typeof value !== 'object' || value === null) return false;
  return levels === 0 || Object.values(value).some((member) => isDeeperThan(member, levels - 1));
}
