/**
 * The store port: everything chronos keeps. Its comments are its contract; `test/contract/store/` holds every
 * implementation to it.
 *
 * For every operation: a promise that resolves means that the change is durable (it survives a power cut); one that
 * rejects means that nothing of it was kept, except where the connection was lost in the middle, when either may be
 * true. Failures of the medium reject with `unavailable` (retryable). Operations are linearizable per alarm. All
 * instants are epoch milliseconds. An alarm that is active owes something: a store may find it by that. No operation about alarms reads or changes a row of another owner than the one it
 * names.
 */
import type { AlarmKind, AlarmStatus } from '../../wire/alarm.ts';
import type { TurnReport, TurnStage } from '../../wire/receipt.ts';
import type { Alarm, AlarmState, Attempt, Occurrence, Transition } from '../alarm/alarm.ts';
import type { FireReceipt } from '../alarm/course.ts';

/** A new alarm with the occurrence it owes first. */
export type NewAlarm = { alarm: Alarm; occurrence: Occurrence };

/** What an owner may have in the store; what is left out is not bounded. */
export type StoreLimits = {
  /** Alarms that are active or paused. */
  maxActive?: number;
  /** Alarms of any status, ended ones included. */
  maxStored?: number;
  /** Bytes of all those, as `storedBytes` (`alarm/alarm.ts`) counts them. */
  maxBytes?: number;
  /** Triggers that wait, over all of the owner's alarms. */
  maxTriggers?: number;
};

/** What all owners have in the store together. */
export type StoreUsage = { owners: number; alarms: number; bytes: number };

export type CreateResult =
  /** The alarm was stored. */
  | { result: 'created'; state: AlarmState }
  /** An alarm of this owner holds the idempotency key; nothing was stored. The caller compares the definitions. */
  | { result: 'key_taken'; state: AlarmState }
  /** The owner has `maxActive` alarms that are active or paused; nothing was stored. */
  | { result: 'too_many'; active: number }
  /** The owner would have more than `maxStored` alarms or `maxBytes`; nothing was stored. How much there is already. */
  | { result: 'too_much'; alarms: number; bytes: number };

export type AlarmFilter = {
  status?: AlarmStatus;
  kind?: AlarmKind;
  /** Only alarms whose id sorts before this one. */
  before?: string;
  limit: number;
};

/** How many alarms one call of {@link AlarmStore.search} looks at: some milliseconds of a store in this process. */
export const SEARCH_STEP = 1000;

/** A text as {@link AlarmStore.search} compares it. */
export const inSmallLetters = (text: string) => text.replace(/[A-Z]+/g, (letters) => letters.toLowerCase());

/** What {@link AlarmStore.search} looks for. */
export type AlarmSearch = AlarmFilter & {
  /** Stands in the label or in the agent's words; `A` to `Z` count as `a` to `z`. */
  text: string;
};

/** What {@link AlarmStore.upcoming} is asked for. */
export type UpcomingRequest = {
  /** Nothing that is due later. */
  until?: number;
  /** Only what comes after this one. */
  after?: { dueAt: number; alarmId: string };
  limit: number;
};

export type ClaimRequest = {
  now: number;
  /** At most this many occurrences. */
  limit: number;
  /** At most this many in flight for one owner, those in `inFlight` included. */
  perOwner: number;
  /** How many occurrences of each owner the caller is working on. Owners that are not named have none. */
  inFlight: ReadonlyMap<string, number>;
  leaseUntil: number;
};

/** A claimed occurrence (its `attempt` and `fence` already counted up) with the alarm it belongs to. */
export type Claim = { alarm: Alarm; occurrence: Occurrence };

/** Names a claim: the fence proves that it is still ours. */
export type LeaseKey = { owner: string; alarmId: string; fireId: string; fence: number };

/**
 * What came of an attempt, and how it changes the alarm. `settle` must be pure: it may run more than once, also on a
 * state that turns out to be outdated, of which nothing is kept.
 */
export type Completion = {
  key: LeaseKey;
  /** Goes into the ledger with the change; `null` where nothing is to be remembered. */
  attempt: Attempt | null;
  /**
   * Computes the alarm's new state from the state as it is then (edited, paused or cancelled in the meantime, perhaps).
   * The occurrence is in `occurrences` with its lease already taken off.
   */
  settle: Transition;
};

/** Whether a completion was applied, or nothing was changed because the lease had passed to someone else. */
export type CompletionResult = 'applied' | 'lost_lease';

/** What a machine reports of one fire, each stage once. */
export type FireReceipts = {
  owner: string;
  alarmId: string;
  fireId: string;
  /** When the fire was due: its attempts began after that. */
  dueAt: number;
  reports: readonly TurnReport[];
  recordedAt: number;
};

export type KeySource = 'tofu' | 'enrolled';

/** A public key that chronosd accepts, or once accepted, for an owner. */
export type AgentKey = {
  owner: string;
  /** The label as first seen; differs from `owner` at most in case. */
  label: string;
  /** 64 hex digits, lower case. */
  publicKey: string;
  source: KeySource;
  enrolledAt: number;
  revokedAt: number | null;
};

/** How many owners may come by trust on first use. */
export type PinLimits = { perHour: number; keysInAll: number };

/** Epoch milliseconds: the earliest of all, which may be past, and the earliest after a given instant. */
export type Wakings = { first?: number; later?: number };

export type AlarmStore = {
  /**
   * The store's clock, epoch milliseconds: what due instants, leases and expiries are compared with. Where replicas
   * share a database it follows the database's clock, never ahead of it, so that they agree whatever their own clocks
   * say.
   */
  now(): number;

  /**
   * Stores a new alarm and its first occurrence in one transaction. The idempotency key is held by any alarm of the
   * owner that is not cancelled; whether it is free is looked at before the limit, so that a repeated request finds its
   * alarm. An id that the owner has already is `conflict`. Creates that arrive together share one sync to disk.
   * `maxTriggers` does not matter here.
   */
  create(entry: NewAlarm, limits: StoreLimits & { maxActive: number }): Promise<CreateResult>;

  /** The alarm with what it owes, or `undefined` when this owner has no such alarm. */
  get(owner: string, alarmId: string): Promise<AlarmState | undefined>;

  /**
   * The owner's alarm that holds an idempotency key, as {@link create} would find it; `undefined` when the key is free.
   */
  findByKey(owner: string, idempotencyKey: string): Promise<AlarmState | undefined>;

  /** The owner's alarms, newest (largest id) first. */
  list(owner: string, filter: AlarmFilter): Promise<AlarmState[]>;

  /**
   * The owner's alarms that hold a text, newest first. Each call looks at so many alarms and no more, so that one that
   * finds little does not hold up what is due; `reached` is where the next call goes on (its `before`), and is missing
   * when all have been looked at.
   */
  search(owner: string, request: AlarmSearch): Promise<{ found: AlarmState[]; reached: string | undefined }>;

  /**
   * The owner's active alarms by when their own schedule is due, earliest first, those due at the same instant by id.
   * What is due and not delivered yet is among them.
   */
  upcoming(owner: string, request: UpcomingRequest): Promise<AlarmState[]>;

  /**
   * Another text when an alarm of the owner, or what is known of its fires, has changed since: at once, or, where other
   * processes change them, as soon as they have told it. It may be another one without that. What is forgotten for its
   * age need not make another one. `undefined` where looking would cost as much as reading the alarms.
   */
  mark(owner: string): Promise<string | undefined>;

  /**
   * Reads the alarm, applies the transition, writes the difference: the alarm's fields, occurrences that came (a
   * `fireId` that exists already is `conflict`), changed or went. Nothing else can change the alarm in between. What a
   * transition may not touch is in `difference.ts`, `checkTransition`: among others `fence`, `leaseUntil` and
   * `claimedAt`, which belong to claim, renew and complete. Where it lets an occurrence go that still carries a lease,
   * the attempt enters the ledger as `unknown`: nobody else will record it.
   *
   * A transition that takes the owner over one of the limits (an alarm opened again, longer texts, another trigger)
   * rejects with `rate_limited`; one that does not come nearer to a limit passes whatever the owner has. Replicas that
   * change alarms of one owner at the same instant may pass a limit by one each.
   *
   * @returns the state afterwards, or `undefined` when this owner has no such alarm
   */
  update(owner: string, alarmId: string, transition: Transition, limits?: StoreLimits): Promise<AlarmState | undefined>;

  /** The attempts at one alarm's occurrences, latest first: ordered by (startedAt, fireId, attempt), all descending. */
  attempts(
    owner: string,
    alarmId: string,
    page: { limit: number; before?: { startedAt: number; fireId: string; attempt: number } },
  ): Promise<Attempt[]>;

  /**
   * Forgets attempts that finished before an instant, the oldest first and at most `limit` of them, so that the ledger
   * can be kept short in small steps while it is in use.
   *
   * @returns how many there were; fewer than `limit` when none are left
   */
  pruneAttempts(request: { before: number; limit: number }): Promise<number>;

  /**
   * Forgets alarms that were fired, failed or cancelled before an instant, with all that belongs to them (ledger,
   * receipts, idempotency key), those that were changed longest ago first and at most `limit`. One that still has
   * something under way or a trigger that waits stays, and so may one with a long ledger, of which a part is forgotten
   * at each call.
   *
   * @returns how many alarms there were
   */
  pruneAlarms(request: { before: number; limit: number }): Promise<number>;

  /**
   * Forgets cancelled alarms of one owner, the oldest first, as {@link pruneAlarms} does whenever they were cancelled.
   */
  forgetCancelled(owner: string, limit: number): Promise<number>;

  /** What is stored by now. Costs a look at each owner: for now and then, not for each request. */
  usage(): Promise<StoreUsage>;

  /**
   * Records how far a fire got: of each stage the first report counts, later ones are known and change
   * nothing; but of `turn_waits` the latest, by its `at`. The
   * fire must have been attempted: it is owed and was claimed, or the ledger has an attempt at it that began after it
   * was due.
   *
   * @returns the stages that were new, or `undefined` when this owner has no such alarm, or the alarm no such fire
   */
  recordReceipts(receipts: FireReceipts): Promise<ReadonlySet<TurnStage> | undefined>;

  /** Whether {@link recordReceipts} would know the fire. */
  hasFire(fire: Pick<FireReceipts, 'owner' | 'alarmId' | 'fireId' | 'dueAt'>): Promise<boolean>;

  /**
   * What has been recorded of some fires of one alarm, in no particular order; nothing of an alarm that is not the
   * owner's.
   */
  receiptsOf(owner: string, alarmId: string, fireIds: readonly string[]): Promise<FireReceipt[]>;

  /** Forgets receipts that were recorded before an instant, as {@link pruneAttempts} does attempts. */
  pruneReceipts(request: { before: number; limit: number }): Promise<number>;

  /**
   * Ends leases before they run out, where their holder is known to be gone, as {@link claim} does those that did; the
   * attempt ends at `now` in the ledger, and what it was an attempt at is due as it was. To be called once, by a
   * process that has just opened the store and claimed nothing. A store with one owner ends all there are; where
   * replicas share one, nobody can know, and nothing happens.
   *
   * @returns how many there were
   */
  endLeasesOfTheDead(now: number): Promise<number>;

  /**
   * First ends every lease that ran out at or before `now`, on parked occurrences too and whoever their owner is: the
   * attempt goes into the ledger as `unknown`, the lease is taken off, and `settleInterrupted` (`alarm/settlement.ts`)
   * is applied as in {@link complete}. A store that several processes share may look for such leases once a second
   * only, and later while a long backlog is worked off; what an expired lease holds is not claimed before it is ended.
   *
   * Then takes up to `limit` occurrences with `dueAt <= now` that nobody holds, earliest due first (within a bucket,
   * where a database has several), no more than `perOwner` of one owner (one owner's backlog never hides another's
   * occurrence), and leases them: `attempt` and `fence` grow by one, `leaseUntil` and `claimedAt` are set. No two
   * callers get the same one.
   */
  claim(request: ClaimRequest): Promise<Claim[]>;

  /** Extends leases that are still ours. Returns the fire ids of those that were; the others have been lost. */
  renew(keys: readonly LeaseKey[], leaseUntil: number): Promise<Set<string>>;

  /**
   * Applies a batch of completions, each on its own merits, in one transaction (where the store keeps owners apart, in one
   * for each part: those of another may have been applied when it rejects, and are `lost_lease` when they are repeated): where the occurrence still carries the
   * key's fence and a lease (one that ran out counts until a claim ends it), the lease is taken off, `settle` is
   * applied as in {@link update}, and the attempt enters the ledger. Otherwise nothing changes and the result is
   * `lost_lease`. A `settle` that throws rejects the whole batch.
   */
  complete(completions: readonly Completion[]): Promise<CompletionResult[]>;

  /**
   * The earliest instant at which {@link claim} could have something to do (where replicas share out what they look after,
   * up to 50 ms later for what is another's): the smallest `dueAt` of what nobody holds,
   * or the smallest `leaseUntil` of what is held, parked or not; `undefined` when there is neither. May be in the past.
   * Owners in `saturated` are left out of account, so that a caller who may not claim for them does not spin.
   */
  nextDueAt(saturated: ReadonlySet<string>): Promise<number | undefined>;

  /**
   * When alarms with `wakeComputer` are due, or what holds them back ends. What has failed several times does not count:
   * no computer is woken again and again in vain. Only a store that is one computer's own answers this.
   */
  wakings?(after: number): Promise<Wakings>;

  /**
   * How many occurrences have `dueAt <= now` and nobody holds them; counting stops at `atMost`, so that a backlog costs
   * no more.
   */
  countDue(request: { now: number; atMost: number }): Promise<number>;

  /** Keeps a nonce for one DID until `expiresAt`; drops those that have expired by `now`. */
  putNonce(nonce: string, did: string, expiresAt: number, now: number): Promise<void>;

  /**
   * Uses a nonce up: true exactly once, for the DID it was made for, until it expires. A wrong DID uses it up as well.
   */
  takeNonce(nonce: string, did: string, now: number): Promise<boolean>;

  /** All keys ever accepted for an owner, revoked ones included, oldest first. */
  keysOf(owner: string): Promise<AgentKey[]>;

  /**
   * Trust on first use: stores the key when the owner has no key at all, revoked ones included. Atomic: of two first
   * keys one wins. With limits, a key that would have to be stored rejects with `rate_limited` when as many were pinned
   * within the hour before its `enrolledAt`, or as many keys stand there in all (replicas may pass either by one each).
   *
   * @returns whether this key is accepted for the owner now (it was stored, or stood there unrevoked before)
   */
  pinFirstKey(key: AgentKey, limits?: PinLimits): Promise<boolean>;

  /** Enrols a key, or lifts its revocation. A known key keeps its label and `enrolledAt` and takes the given source. */
  enrollKey(key: AgentKey): Promise<void>;

  /** Revokes one key of an owner, or all of them. Returns the keys that were revoked by this call, oldest first. */
  revokeKeys(owner: string, publicKey: string | undefined, now: number): Promise<AgentKey[]>;

  /** Enrolled and pinned keys of all owners, by owner, at most `limit` after the given owner and key. */
  listKeys(page: { limit: number; after?: { owner: string; publicKey: string } }): Promise<AgentKey[]>;

  /** Resolves when the store can read and write; rejects with `unavailable` otherwise. */
  ping(): Promise<void>;

  /** Finishes what is queued and lets go of the medium. Nothing may be called afterwards. */
  close(): Promise<void>;
};
