/** One journal, one key: under another one every chain in it would look forged. */
import type { DatabaseSync } from 'node:sqlite';
import { ReveilleError } from '../../wire/errors.ts';

/** @throws ReveilleError `conflict` when another key has signed what stands in the journal */
export function claimJournal(db: DatabaseSync, keyId: string, path: string): void {
  db.prepare('INSERT INTO journal_key (only_row, key_id) VALUES (1, ?) ON CONFLICT DO NOTHING').run(keyId);
  const owner = db.prepare('SELECT key_id FROM journal_key').get()?.key_id as string;
  if (owner === keyId) return;
  const message = `${path} was signed with the key ${owner.slice(0, 16)}…, and executor.key is ${keyId.slice(0, 16)}…; put the old executor.key back, or move journal.db away to begin a new one`;
  throw new ReveilleError('conflict', message);
}
