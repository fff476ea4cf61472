/** The agent's identity on the wire: `did:matrix:<label>:<keyfp>` (docs/contracts.md §1). */
import { z } from 'zod';

const DID = /^did:matrix:([A-Za-z0-9._-]{1,64}):([0-9a-f]{16})$/;
const UUID = /^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$/i;

/** Characters of the public key's hex that the DID carries. */
export const FINGERPRINT_LENGTH = 16;

/** A DID taken apart. `owner` is the label as alarms are filed under it. */
export type AgentDid = { label: string; fingerprint: string; owner: string };

/** The owner that a label stands for: UUIDs are compared without regard to case, other labels with it. */
export function ownerOf(label: string): string {
  return UUID.test(label) ? label.toLowerCase() : label;
}

/** Builds the DID of a label and an ed25519 public key in hex. */
export function didOf(label: string, publicKeyHex: string): string {
  return `did:matrix:${label}:${publicKeyHex.slice(0, FINGERPRINT_LENGTH)}`;
}

/** Takes a DID apart, or gives `undefined` when it is none. */
export function parseDid(did: string): AgentDid | undefined {
  const match = DID.exec(did);
  if (!match) return undefined;
  const [, label, fingerprint] = match;
  return { label: label!, fingerprint: fingerprint!, owner: ownerOf(label!) };
}

/** A user's label: the first half of a DID, and the `user_id` of machines and wakes. */
export const labelSchema = z.string().regex(/^[A-Za-z0-9._-]{1,64}$/, 'must be 1 to 64 of A-Z a-z 0-9 . _ -');

/** A DID on the wire. */
export const didSchema = z.string().regex(DID, 'must look like did:matrix:<label>:<16 hex digits>');
