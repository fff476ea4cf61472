/**
 * Checks the claims in the audit, change by change. Every writer must have the claim: a change that no holder and no
 * claim can have made comes from a process that had lost the occurrence to another. Pure.
 *
 * The rules are the store port's. A claim takes a free row and increments fence and attempt by one. Only the end of a
 * claim removes it. The ledger then gets the attempt in the same transaction, unless a later occurrence of the series
 * replaced it before anything was sent. No other change touches fence, claim or ledger.
 */
import type { AuditEntry, OccurrenceImage } from './history.ts';

/** A claim that began. */
export type Claimed = {
  seq: number;
  fireId: string;
  alarmId: string;
  attempt: number;
  /** When the occurrence was due, and when it was claimed, by the database's clock. */
  dueAt: number | null;
  claimedAt: number;
};

export type ClaimHistory = {
  claims: readonly Claimed[];
  /** Changes that touched a fence, a claim or the ledger. */
  judged: number;
  /** Sentences about changes without the claim. */
  unentitled: readonly string[];
  /** Position in the order of changes at which each alarm became cancelled. */
  cancelledAt: ReadonlyMap<string, number>;
  /** Occurrences that were inserted outside the schedule. */
  triggered: ReadonlySet<string>;
  /** The times of each alarm's own schedule in the order in which they became pending. */
  nominals: ReadonlyMap<string, readonly number[]>;
};

/** A claim that ended and waits for its line in the ledger. */
type Released = { seq: number; transaction: string | null; image: OccurrenceImage };

export function claimHistory(entries: readonly AuditEntry[]): ClaimHistory {
  const claims: Claimed[] = [];
  const unentitled: string[] = [];
  const cancelledAt = new Map<string, number>();
  const triggered = new Set<string>();
  const nominals = new Map<string, number[]>();
  const released = new Map<string, Released[]>();
  /** Lines of the ledger that came before the claim's end within their transaction. */
  const early = new Map<string, { entry: Extract<AuditEntry, { table: 'fire_attempts' }>; attempt: number }[]>();
  let judged = 0;

  const note = (entry: AuditEntry, what: string) => unentitled.push(`${what} (change ${entry.seq} of the audit)`);

  const end = (entry: AuditEntry, image: OccurrenceImage) => {
    const waiting = early.get(image.fireId) ?? [];
    const index = waiting.findIndex(
      ({ entry: line, attempt }) => attempt === image.attempt && line.transaction === entry.transaction,
    );
    if (index >= 0) waiting.splice(index, 1);
    else {
      const open = released.get(image.fireId) ?? [];
      open.push({ seq: entry.seq, transaction: entry.transaction, image });
      released.set(image.fireId, open);
    }
  };

  const came = (entry: AuditEntry, image: OccurrenceImage) => {
    if (image.claimedAt !== null) note(entry, `${image.fireId} was inserted as claimed, and no claim made that`);
    if (image.source === 'trigger') {
      triggered.add(image.fireId);
      return;
    }
    const known = nominals.get(image.alarmId) ?? [];
    known.push(image.nominal);
    nominals.set(image.alarmId, known);
  };

  const changed = (entry: AuditEntry, before: OccurrenceImage, after: OccurrenceImage) => {
    const { fireId } = after;
    if (before.claimedAt === null && after.claimedAt !== null) {
      const { alarmId, attempt } = after;
      claims.push({ seq: entry.seq, fireId, alarmId, attempt, dueAt: before.dueAt, claimedAt: after.claimedAt! });
      if (after.fence !== before.fence + 1)
        note(entry, `a claim of ${fireId} took its fence from ${before.fence} to ${after.fence}`);
      if (attempt !== before.attempt + 1)
        note(entry, `a claim of ${fireId} took its attempt from ${before.attempt} to ${attempt}`);
      return;
    }
    if (after.fence !== before.fence)
      note(entry, `the fence of ${fireId} went from ${before.fence} to ${after.fence} without a claim`);
    else if (before.claimedAt !== null && after.claimedAt !== null && after.claimedAt !== before.claimedAt)
      note(entry, `the claim of ${fireId} under fence ${before.fence} was taken from its holder`);
    if (before.claimedAt !== null && after.claimedAt === null) end(entry, before);
  };

  const recorded = (entry: Extract<AuditEntry, { table: 'fire_attempts' }>) => {
    const { before, after } = entry;
    const line = (after ?? before)!;
    if (before !== null) {
      const what = after === null ? 'was deleted from' : 'was changed in';
      note(entry, `attempt ${line.attempt} at ${line.fireId} ${what} the ledger, which is append-only`);
      return;
    }
    const open = released.get(line.fireId) ?? [];
    const index = open.findIndex(
      ({ image, transaction }) => image.attempt === line.attempt && transaction === entry.transaction,
    );
    if (index >= 0) {
      open.splice(index, 1);
      return;
    }
    // Where the engine reports transactions, the claim's end may still follow; otherwise it always comes first.
    if (entry.transaction !== null)
      early.set(line.fireId, [...(early.get(line.fireId) ?? []), { entry, attempt: line.attempt }]);
    else note(entry, stale(line));
  };

  const stale = ({ attempt, fireId, outcome }: { attempt: number; fireId: string; outcome: string }) =>
    `attempt ${attempt} at ${fireId} was recorded as ${outcome} by a process without the claim`;

  for (const entry of entries) {
    if (entry.table === 'alarms') {
      if (entry.after?.status === 'cancelled' && entry.before?.status !== 'cancelled')
        cancelledAt.set(entry.after.id, entry.seq);
      continue;
    }
    judged++;
    if (entry.table === 'fire_attempts') {
      recorded(entry);
      continue;
    }
    const { before, after } = entry;
    if (before && after && before.fireId === after.fireId) {
      changed(entry, before, after);
      continue;
    }
    // One row of a series may become the next one's: the old occurrence is deleted, the new one inserted.
    if (before && before.claimedAt !== null) end(entry, before);
    if (after) came(entry, after);
  }

  for (const lines of early.values()) for (const { entry } of lines) note(entry, stale(entry.after!));
  for (const open of released.values()) {
    for (const { image, seq } of open) {
      // A later occurrence may have replaced a first attempt before anything was sent.
      if (image.attempt === 1) continue;
      unentitled.push(
        `the claim of attempt ${image.attempt} at ${image.fireId} was ended without a line in the ledger (change ${seq} of the audit)`,
      );
    }
  }
  return { claims, judged, unentitled, cancelledAt, triggered, nominals };
}
