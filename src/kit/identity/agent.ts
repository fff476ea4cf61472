/** An agent's identity: a label and a signing key (docs/reference/api.md, "Identity of an agent"). */
import { didOf, labelSchema, ownerOf } from '../../wire/did.ts';
import { ReveilleError } from '../../wire/errors.ts';
import { showValue } from '../../wire/validate.ts';
import type { AgentKey } from './keys.ts';

export type AgentIdentity = {
  readonly label: string;
  /** The owner of its alarms: the label, in lower case if it is a UUID. */
  readonly owner: string;
  readonly did: string;
  readonly publicKeyHex: string;
  /** Signs a text's UTF-8 form; 128 hex digits. */
  sign(message: string): string;
};

/** Combines a label and a key. @throws ReveilleError `invalid_request` if the label is not valid in a DID */
export function agentIdentity(label: string, key: AgentKey): AgentIdentity {
  if (!labelSchema.safeParse(label).success) {
    const message = `the label of an agent must be 1 to 64 of A-Z a-z 0-9 . _ -, and not dots alone (got ${showValue(label)})`;
    throw new ReveilleError('invalid_request', message);
  }
  return Object.freeze({
    label,
    owner: ownerOf(label),
    did: didOf(label, key.publicKeyHex),
    publicKeyHex: key.publicKeyHex,
    sign: (message: string) => key.sign(message),
  });
}
