/** One envelope of a receipt: what is signed, and what its hash is over (docs/receipts.md). Pure. */
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

/** What a gate's answer is bound to: the tool and the very arguments. */
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
 * What is signed: the pre-authentication encoding of DSSE (protocol.md of secure-systems-lab/dsse), whose lengths in
 * bytes keep type and text from running into one another.
 */
export function preAuthEncoding(unsigned: string): string {
  return `DSSEv1 ${TYPE_LENGTH} ${RECEIPT_PAYLOAD_TYPE} ${Buffer.byteLength(unsigned)} ${unsigned}`;
}

/** An escape in canonical JSON, of which only those of halves of surrogate pairs begin with `\ud`. */
const HALF = /\\(?:\\|(ud[89a-f][0-9a-f]{2}))/g;

/** Whether a canonical JSON text holds no half of a surrogate pair; such text has no UTF-8 form (RFC 8785 §3.2.2.2). */
export function isUnicode(canonical: string): boolean {
  if (!canonical.includes('\\ud')) return true;
  return ![...canonical.matchAll(HALF)].some(([, half]) => half !== undefined);
}

/** The canonical JSON of the same value with U+FFFD in the place of each half of a surrogate pair. */
export function inUnicode(canonical: string): string {
  if (isUnicode(canonical)) return canonical;
  // Taken in anew: with other characters in their names, members may sort in another order.
  return canonicalJson(JSON.parse(canonical.replace(HALF, (same, half) => (half === undefined ? same : '\ufffd'))));
}

/** How deep objects and arrays may stand in one another in a receipt. */
export const RECEIPT_DEPTH_MAX = 256;

/** Whether a value has more levels than these. */
export function isDeeperThan(value: unknown, levels: number): boolean {
  if (typeof value !== 'object' || value === null) return false;
  return levels === 0 || Object.values(value).some((member) => isDeeperThan(member, levels - 1));
}
