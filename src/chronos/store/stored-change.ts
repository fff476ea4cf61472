/** Stored changes of an owner's alarms and fires, as `AlarmStore.follow` and `AlarmStore.changesSince` return them. */
import type { Attempt } from '../alarm/alarm.ts';
import type { StoredTurnReport } from '../alarm/fire-history.ts';

/** A change of one alarm. `at` is epoch milliseconds, by the store's clock. */
type AlarmChange = {
  readonly kind: 'created' | 'edited' | 'cancelled';
  readonly owner: string;
  readonly alarmId: string;
  readonly at: number;
};

/** The router deferred a wake. */
type Deferred = {
  readonly kind: 'deferred';
  readonly owner: string;
  readonly alarmId: string;
  readonly at: number;
  readonly fireId: string;
  readonly until: number;
  readonly reason: string;
};

/** An occurrence was claimed: an attempt begins. */
type Claimed = {
  readonly kind: 'claimed';
  readonly owner: string;
  readonly alarmId: string;
  readonly at: number;
  readonly fireId: string;
  readonly attempt: number;
};

export type StoredChange =
  | AlarmChange
  | Deferred
  | Claimed
  | { readonly kind: 'attempt'; readonly owner: string; readonly at: number; readonly attempt: Attempt }
  | { readonly kind: 'report'; readonly owner: string; readonly at: number; readonly report: StoredTurnReport }
  /** Changes of this owner may be missing. */
  | { readonly kind: 'lost'; readonly owner: string; readonly at: number };

export const attemptChange = (attempt: Attempt): StoredChange => ({
  kind: 'attempt',
  owner: attempt.owner,
  at: attempt.finishedAt,
  attempt,
});

export const reportChange = (report: StoredTurnReport): StoredChange => ({
  kind: 'report',
  owner: report.owner,
  at: report.recordedAt,
  report,
});

/** The columns of an alarm that its changes follow from. */
export type AlarmTimes = { owner: string; id: string; status: string; createdAt: number; updatedAt: number };

/** The changes of a stored alarm since an instant. An alarm that ended by a fire has changed with its attempt. */
export function alarmChanges({ owner, id, status, createdAt, updatedAt }: AlarmTimes, since: number): StoredChange[] {
  const changes: StoredChange[] = [];
  if (createdAt >= since) changes.push({ kind: 'created', owner, alarmId: id, at: createdAt });
  if (updatedAt < since || updatedAt === createdAt || status === 'fired' || status === 'failed') return changes;
  const kind = status === 'cancelled' ? 'cancelled' : 'edited';
  return [...changes, { kind, owner, alarmId: id, at: updatedAt }];
}

/** The same for the same change, however often it is found. */
export function changeKey(change: StoredChange): string {
  switch (change.kind) {
    case 'attempt':
      return `attempt ${change.attempt.fireId} ${change.attempt.attempt} ${change.owner}`;
    case 'report':
      return `report ${change.report.fireId} ${change.report.stage} ${change.report.at} ${change.owner}`;
    case 'claimed':
      return `claimed ${change.fireId} ${change.attempt} ${change.owner}`;
    case 'deferred':
      return `deferred ${change.fireId} ${change.until} ${change.owner}`;
    case 'lost':
      return `lost ${change.owner} ${change.at}`;
    default:
      return `${change.kind} ${change.alarmId} ${change.at} ${change.owner}`;
  }
}

/** A reader of changes. */
export type Follower = {
  /** The followed owners. The caller may change the set; see {@link Following.refresh}. */
  readonly owners: ReadonlySet<string>;
  /** Must not throw. */
  readonly onChanges: (changes: readonly StoredChange[]) => void;
  /** The store is closed, and reports nothing more. */
  readonly onClosed: () => void;
};

export type Following = {
  /** Resolves when all later changes of the owners that are in the set now will be reported. */
  refresh(): Promise<void>;
  end(): void;
};
