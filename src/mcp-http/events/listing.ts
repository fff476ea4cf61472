/** Reads the subscriptions in a router's folder for the operator, also while the router runs. */
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { storageError } from '../../kit/sqlite/sqlite-error.ts';
import { formatInstant } from '../../wire/rfc3339.ts';
import { EVENTS_FILE } from './names.ts';

const BUSY_MS = 5000;

/** A subscription without its secret, and with the host in place of the whole address. */
export type SubscriptionView = {
  id: string;
  user_id: string;
  client_id: string;
  event: string;
  arguments: Record<string, unknown>;
  host: string;
  status: 'active' | 'failing' | 'ended';
  /** Why the subscription has ended, or why its callback fails. */
  reason?: string;
  created_at: string;
  expires_at?: string;
  last_delivery_at?: string;
  ended_at?: string;
};

type Row = {
  id: string;
  user_id: string;
  client_id: string;
  name: string;
  arguments: string;
  url: string;
  created_at: number;
  expires_at: number | null;
  failed_since: number | null;
  last_delivery_at: number | null;
  last_error: string | null;
  ended_at: number | null;
  end_reason: string | null;
};

const at = <Name extends string>(name: Name, instant: number | null) =>
  (instant === null ? {} : { [name]: formatInstant(instant) }) as { [name in Name]?: string };

function viewOf(row: Row): SubscriptionView {
  const isFailing = row.failed_since !== null;
  const status = row.ended_at !== null ? 'ended' : isFailing ? 'failing' : 'active';
  const failing = isFailing ? `${row.last_error} since ${formatInstant(row.failed_since!)}` : undefined;
  const reason = row.end_reason ?? failing;
  return {
    ...{ id: row.id, user_id: row.user_id, client_id: row.client_id, event: row.name },
    ...{ arguments: JSON.parse(row.arguments), host: new URL(row.url).host, status },
    ...(reason !== undefined && { reason }),
    created_at: formatInstant(row.created_at),
    ...at('expires_at', row.expires_at),
    ...at('last_delivery_at', row.last_delivery_at),
    ...at('ended_at', row.ended_at),
  };
}

/**
 * The subscriptions of a router, newest first. Ended subscriptions are kept for seven days.
 *
 * @param user a user id; `undefined` for all users
 * @throws ReveilleError when the file cannot be read
 */
export function listSubscriptions(dataDir: string, user: string | undefined): SubscriptionView[] {
  const path = join(dataDir, EVENTS_FILE);
  if (!existsSync(path)) return [];
  try {
    const db = new DatabaseSync(path, { readOnly: true, timeout: BUSY_MS });
    try {
      const rows = db
        .prepare(
          `SELECT subscriptions.*, user_id, client_id FROM subscriptions
           JOIN principals ON principals.id = subscriptions.principal
           WHERE ?1 IS NULL OR user_id = ?1 ORDER BY created_at DESC, subscriptions.id`,
        )
        .all(user ?? null);
      return (rows as Row[]).map(viewOf);
    } finally {
      db.close();
    }
  } catch (thrown) {
    throw storageError(thrown);
  }
}
