/** An agent's identity on the wire: `did:matrix:<label>:<keyfp>` (docs/reference/api.md, "Identity of an agent"). */
import { z } from 'zod';
import { NAME_PATTERN, nameSchema } from './identifier.ts';

const LABEL_MAX = 64;
const DID = new RegExp(`^did:matrix:(${NAME_PATTERN}):([0-9a-f]{16})$`);
const DID_MAX = 'did:matrix:'.length + LABEL_MAX + 17;
const UUID = /^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$/i;

/** Length of a fingerprint: leading hex digits of the public key. */
export const FINGERPRINT_LENGTH = 16;

/** The parts of a DID. `owner` is the normalised label under which alarms are stored. */
export type AgentDid = { label: string; fingerprint: string; owner: string };

/** The owner of a label: UUIDs are case-insensitive, other labels are case-sensitive. */
export function ownerOf(label: string): string {
  return UUID.test(label) ? label.toLowerCase() : label;
}

/** Builds the DID of a label and an ed25519 public key in hex. */
export function didOf(label: string, publicKeyHex: string): string {
  return `did:matrix:${label}:${publicKeyHex.slice(0, FINGERPRINT_LENGTH)}`;
}

/** Parses a DID; `undefined` if the text is not one. */
export function parseDid(did: string): AgentDid | undefined {
  const match = DID.exec(did);
  if (!match || did.length > DID_MAX) return undefined;
  const [, label, fingerprint] = match;
  return { label: label!, fingerprint: fingerprint!, owner: ownerOf(label!) };
}

/** A user's label: the first half of a DID, and the `user_id` of machines and wakes. */
export const labelSchema = nameSchema(LABEL_MAX);

const DID_FORM = 'must look like did:matrix:<label>:<16 hex digits>';
/** A DID on the wire. */
export const didSchema = z.string().max(DID_MAX, DID_FORM).regex(DID, DID_FORM);
