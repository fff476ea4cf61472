/**
 * The keys by which plans set alarms: one for each user, and enrolled at chronosd for that user alone. None of them signs
 * receipts, and none speaks for anybody else, so one that leaks is one user's alarms and is revoked by itself.
 */
import { mkdirSync } from 'node:fs';
import { join } from 'node:path';
import { loadOrCreateKey } from '../kit/identity/keys.ts';
import { labelSchema, ownerOf } from '../wire/did.ts';

/**
 * The public key of a user, whose file is made when there is none; an operator may put one there before.
 *
 * @returns 64 hex digits; `undefined` for a user whose name cannot stand in an identity, and who has no alarms
 * @throws ReveilleError when the folder or the file cannot be used
 */
export function agentKeyOf(folder: string, user: string): string | undefined {
  if (!labelSchema.safeParse(user).success) return undefined;
  mkdirSync(folder, { recursive: true, mode: 0o700 });
  return loadOrCreateKey(join(folder, `${ownerOf(user)}.key`)).publicKeyHex;
}
