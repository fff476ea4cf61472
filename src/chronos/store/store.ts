/**
 * The store port: all persistent state of chronos. Its comments are its contract; `test/contract/store/` checks every
 * implementation against it.
 *
 * - A resolved promise means that the change is durable (it survives a power cut).
 * - A rejected promise means that nothing was stored. The exception is a connection lost in the middle, when either may
 * be true.
 * - Failures of the medium reject with `unavailable` (retryable).
 * - Operations are linearizable per alarm.
 * - All instants are epoch milliseconds.
 * - An active alarm has a pending occurrence; a store may find it by that.
 * - An operation about alarms reads and changes only rows of the owner that it names.
 */
import type { AlarmKind, AlarmStatus } from '../../wire/alarm-fields.ts';
import type { AlarmEvent } from '../../wire/conditions.ts';
import type { TurnReport, TurnStage } from '../../wire/turn-report.ts';
import type { Alarm, AlarmState, Attempt, Occurrence, Transition } from '../alarm/alarm.ts';
import type { StoredTurnReport } from '../alarm/fire-history.ts';
import type { DeliveryEffect } from '../alarm/settlement.ts';
import type { Follower, Following, StoredChange } from './stored-change.ts';

/** A new alarm with its first occurrence. */
export type NewAlarm = { alarm: Alarm; occurrence: Occurrence };

/** Limits of an owner in the store; an omitted member means no limit. */
export type StoreLimits = {
  /** Alarms that are active or paused. */
  maxActive?: number;
  /** Alarms of any status, finished ones included. */
  maxStored?: number;
  /** Bytes of all these alarms, as `storedBytes` (`alarm/alarm.ts`) counts them. */
  maxBytes?: number;
  /** Waiting triggers, over all of the owner's alarms. */
  maxTriggers?: number;
};

/** The totals of all owners in the store. */
export type StoreUsage = { owners: number; alarms: number; bytes: number };

/** Alarms of an owner that are active or paused, and the active ones among them. */
export type OpenCount = { readonly open: number; readonly active: number };

export const NONE_OPEN: OpenCount = { open: 0, active: 0 };

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

/** How many alarms one call of {@link AlarmStore.search} reads: some milliseconds of a store in this process. */
export const SEARCH_STEP = 1000;

/** A text in the form that {@link AlarmStore.search} compares. */
export const lowerCaseAscii = (text: string) => text.replace(/[A-Z]+/g, (letters) => letters.toLowerCase());

/** The criteria of {@link AlarmStore.search}. */
export type AlarmSearch = AlarmFilter & {
  /** Contained in the label or in the message; `A` to `Z` count as `a` to `z`. */
  text: string;
};

/** The criteria of {@link AlarmStore.upcoming}. */
export type UpcomingRequest = {
  /** Only alarms due at or before this instant. */
  until?: number;
  /** Only alarms after this one. */
  after?: { dueAt: number; alarmId: string };
  limit: number;
};

export type ClaimRequest = {
  now: number;
  /** At most this many occurrences. */
  limit: number;
  /** At most this many in flight for one owner, those in `inFlight` included. */
  perOwner: number;
  /** How many occurrences of each owner the caller is delivering; absent owners have none. */
  inFlight: ReadonlyMap<string, number>;
};

/** A claimed occurrence (its `attempt` and `fence` already incremented) with its alarm. */
export type Claim = { alarm: Alarm; occurrence: Occurrence };

/** Identifies a claim: the fence proves that it is still valid. */
export type ClaimKey = { owner: string; alarmId: string; fireId: string; fence: number };

/**
 * The outcome of an attempt, and its change of the alarm. `settle` must be pure: it may run more than once, also on an
 * outdated state whose result is discarded.
 */
export type Completion = {
  key: ClaimKey;
  /** Added to the ledger with the change; `null` for no entry. */
  attempt: Attempt | null;
  /**
   * Computes the alarm's new state from its current state, which may have been edited, paused or cancelled meanwhile.
   * The occurrence is in `occurrences`, already without its claim.
   */
  settle: Transition;
  /**
   * What `settle` does to the claimed state, if its occurrence is the only pending one. A store may write it without
   * reading the alarm, where nothing of the alarm has changed since the claim; otherwise it applies `settle`.
   */
  direct?: { readonly claim: Claim; readonly effect: DeliveryEffect } | undefined;
};

/** Whether a completion was applied, or nothing changed because the claim had ended before. */
export type CompletionResult = 'applied' | 'lost_claim';

/** A machine's reports about one fire, each stage once. */
export type FireTurnReports = {
  owner: string;
  alarmId: string;
  fireId: string;
  /** When the fire was due: its attempts began after that. */
  dueAt: number;
  reports: readonly TurnReport[];
  recordedAt: number;
};

/** The stages that were new, and the alarm's options: most alarms have none, and need no more than the report. */
export type RecordedTurnReports = { fresh: ReadonlySet<TurnStage>; options: string | null };

/** New events of one alarm, in their order. */
export type EventArrival = {
  owner: string;
  alarmId: string;
  events: readonly AlarmEvent[];
  /**
   * Computes the state with the events that are new. As a {@link Transition} it must be pure, and may run more than
   * once. `event_state.last` grows by their number when they wait for a wake, and otherwise stays.
   */
  arrive: (state: AlarmState, fresh: readonly AlarmEvent[]) => AlarmState;
  limits?: StoreLimits;
};

/** The state afterwards, and how many events were new. */
export type RecordedEvents = { state: AlarmState; fresh: number };

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

/** A rotation of an owner's key. `enrolledOnly`: a key that was only pinned may not rotate. */
export type KeyRotation = { owner: string; from: string; to: string; now: number; enrolledOnly: boolean };

export type KeyRotationResult =
  /** The new key is accepted with the standing of the old one, which is revoked. */
  | 'rotated'
  /** Nothing changed: the old key is unknown, revoked or not accepted. */
  | 'not_accepted'
  /** Nothing changed: the new key was revoked before. */
  | 'revoked_before';

/** Revoked keys that a rotation leaves of an owner; older ones are deleted. */
export const MOST_REVOKED_KEYS = 50;

/** An address at which calendar apps read the alarms of an owner. */
export type CalendarFeed = {
  owner: string;
  /** Twelve hex digits. */
  id: string;
  /** A name for people. */
  name: string;
  /** SHA-256 of the secret in the address, in hex. */
  digest: string;
  /** Whether the messages of alarms are in it. */
  messages: boolean;
  createdAt: number;
  /** The credential that made it, as with an alarm. */
  madeBy: string | null;
};

/** How many alarms a call of {@link AlarmStore.moveAlarms} moves. */
export const MOVE_STEP = 500;

export type AlarmMove = { from: string; to: string; limits: StoreLimits; now: number };

export type MoveAlarmsResult =
  /** That many were moved; with {@link MOVE_STEP} there may be more. */
  | { result: 'moved'; moved: number }
  /** Nothing was moved. The counts say what must be resolved before. */
  | {
      result: 'refused';
      /** Deliveries in flight. */
      inFlight: number;
      /** Idempotency keys that both owners hold. */
      sharedKeys: number;
      /** What the target would have, and whether that exceeds a limit. */
      open: number;
      stored: number;
      bytes: number;
      exceeded: boolean;
    };

/** How many owners may be added by trust on first use. */
export type PinLimits = { perHour: number; keysInAll: number };

/** Epoch milliseconds: the earliest of all, which may be past, and the earliest after a given instant. */
export type ComputerWakes = { first?: number; later?: number };

export type AlarmStore = {
  /**
   * The store's clock, epoch milliseconds: due instants and expiries are compared with it. Where replicas share
   * a database, it follows the database's clock and is never ahead of it. So replicas agree whatever their own clocks
   * show.
   */
  now(): number;

  /**
   * Stores a new alarm and its first occurrence in one transaction. The idempotency key belongs to the owner's alarm
   * with that key, unless it is cancelled. The key is checked before the limit, so that a repeated request finds its
   * alarm. An id that the owner has already is `conflict`. Simultaneous creates share one sync to disk. `maxTriggers`
   * is ignored here.
   */
  create(entry: NewAlarm, limits: StoreLimits & { maxActive: number }): Promise<CreateResult>;

  /** The alarm with its pending occurrences, or `undefined` when this owner has no such alarm. */
  get(owner: string, alarmId: string): Promise<AlarmState | undefined>;

  /** The owner's alarm with an idempotency key, as {@link create} would find it; `undefined` when the key is free. */
  findByKey(owner: string, idempotencyKey: string): Promise<AlarmState | undefined>;

  /** The owner's alarms, newest (largest id) first. */
  list(owner: string, filter: AlarmFilter): Promise<AlarmState[]>;

  /** Whether an alarm that a credential made names a conversation, or had a turn in it. */
  hasConversation(owner: string, madeBy: string, conversationId: string): Promise<boolean>;

  /**
   * The owner's alarms that contain a text, newest first. Each call reads a limited number of alarms, so that a search
   * does not delay due occurrences. `reached` is the `before` of the next call; it is absent when all alarms have been
   * read.
   */
  search(owner: string, request: AlarmSearch): Promise<{ found: AlarmState[]; reached: string | undefined }>;

  /**
   * The owner's active alarms by the due time of their own schedule, earliest first, then by id. Due alarms that are
   * not delivered yet are included.
   */
  upcoming(owner: string, request: UpcomingRequest): Promise<AlarmState[]>;

  /**
   * Reports the changes of some owners, by this process and by others, each within about 100 ms after it is durable.
   * A change is reported at least once; deletions are not. Another process's claim may be reported with its attempt. A
   * `lost` change replaces changes that cannot be determined any more. Following adds no write to a fire.
   */
  follow(follower: Follower): Promise<Following>;

  /**
   * The changes of one owner since an instant by the store's clock, in the order of `at`, without claims and deferrals.
   *
   * @returns `undefined` when they are more than some thousands, or when finding them would read too many rows
   */
  changesSince(owner: string, since: number): Promise<StoredChange[] | undefined>;

  /**
   * Reads the alarm, applies the transition and writes the difference: the alarm's members, and added, changed or
   * removed occurrences. A `fireId` that exists already is `conflict`. No other change of the alarm can happen in
   * between.
   *
   * A transition must not change certain members (`checkTransition` in `difference.ts`), among them `fence` and
   * `claimedAt`, which claim and complete manage. When it removes a claimed occurrence, the attempt enters the ledger as
   * `unknown`, and ends at the store's present, because no process will record it.
   *
   * A transition that takes the owner over a limit (an alarm reopened, longer texts, another trigger) rejects with
   * `rate_limited`. A transition that adds nothing passes even over a limit. Replicas that change alarms of one owner
   * at the same instant may exceed a limit by one each.
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
   * Deletes attempts that finished before an instant, the oldest first and at most `limit` of them, so that the ledger
   * can be pruned in small steps while it is in use. The last attempt of an alarm stays: it is deleted with the alarm.
   *
   * @returns how many there were; fewer than `limit` when none remain
   */
  pruneAttempts(request: { before: number; limit: number }): Promise<number>;

  /**
   * Deletes alarms that were fired, failed or cancelled before an instant, with all their data (ledger, turn reports, events,
   * idempotency key), in the order of their last change and at most `limit`. An alarm with a running attempt or a
   * waiting trigger stays. An alarm with a long ledger may stay, and each call deletes a part of the ledger.
   *
   * @returns how many alarms there were
   */
  pruneAlarms(request: { before: number; limit: number }): Promise<number>;

  /**
   * Deletes cancelled alarms of one owner, the oldest first, as {@link pruneAlarms} does, whenever they were cancelled.
   */
  deleteCancelled(owner: string, limit: number): Promise<number>;

  /** The stored amount. It reads a row per owner, so it is not for every request. */
  usage(): Promise<StoreUsage>;

  /**
   * Records turn reports. For each stage the first report counts; later ones are known and change nothing. For
   * `turn_waits` the latest by its `at` counts, with its `recordedAt`. The fire must have been attempted: it is pending and was claimed, or
   * the ledger has an attempt at it that began after it was due.
   *
   * @returns `undefined` when this owner has no such alarm, or the alarm no such fire
   */
  recordTurnReports(receipts: FireTurnReports): Promise<RecordedTurnReports | undefined>;

  /** Whether {@link recordTurnReports} would find the fire. */
  hasFire(fire: Pick<FireTurnReports, 'owner' | 'alarmId' | 'fireId' | 'dueAt'>): Promise<boolean>;

  /** The recorded reports of some fires of one alarm, unordered; empty for an alarm of another owner. */
  turnReportsOf(owner: string, alarmId: string, fireIds: readonly string[]): Promise<StoredTurnReport[]>;

  /** Deletes reports that were recorded before an instant, as {@link pruneAttempts} does attempts. */
  pruneTurnReports(request: { before: number; limit: number }): Promise<number>;

  /**
   * Records events of one alarm in one transaction. Events with an id that the alarm knows, or that came earlier in the
   * same call, are ignored. The others become rows, numbered after `event_state.last`. Of an event that no wake will
   * carry, only the id is kept, without a number. The result of `arrive` is written as in {@link update}, with the same
   * refusals and limits. With none new, nothing changes.
   *
   * @returns `undefined` when this owner has no such alarm
   * @throws ReveilleError `invalid_request` when an id has more than 1,024 bytes
   */
  recordEvents(arrival: EventArrival): Promise<RecordedEvents | undefined>;

  /**
   * Events with numbers in a range, in their order, without dropped ones: at least one, and as many as have at most
   * `maxBytes` in a wake (`eventBytes` of `event-rows.ts`).
   */
  eventsOf(
    owner: string,
    alarmId: string,
    range: { from: number; to: number; maxBytes: number },
  ): Promise<AlarmEvent[]>;

  /** Deletes the data of events up to a number. Their ids stay, so that a repeated event is known. */
  dropEvents(owner: string, alarmId: string, upTo: number): Promise<void>;

  /** Deletes the ids of dropped events that were received before an instant, as {@link pruneAttempts} does attempts. */
  pruneEvents(request: { before: number; limit: number }): Promise<number>;

  /**
   * Ends the claims of processes that are known to be gone. The attempt enters the ledger as `unknown`, ended at `now`,
   * and `settleInterrupted` (`alarm/settlement.ts`) is applied as in {@link complete}. Call it once, in a process that
   * has just opened the store and claimed nothing.
   *
   * In a store that one process owns, all claims are those of an earlier process. Where processes share a store, each
   * of them from now on ends the claims of others that die, about two seconds after the death.
   *
   * @returns how many there were
   */
  endOrphanedClaims(now: number): Promise<number>;

  /**
   * Claims up to `limit` unclaimed occurrences with `dueAt <= now`, earliest due first (within a bucket,
   * where a database has several), at most `perOwner` of one owner. So one owner's backlog never hides another's
   * occurrence. `attempt` and `fence` are incremented, and `claimedAt` is set. No two callers get the same one.
   *
   * A claim lasts until it is completed, or until its process is gone: it has no end of its own, and is not renewed.
   * A process that cannot know whether the others take it for gone claims nothing: it rejects with `unavailable`.
   * A claim that a caller did not get, because its answer was lost, is ended as in {@link endOrphanedClaims}.
   */
  claim(request: ClaimRequest): Promise<Claim[]>;

  /**
   * Applies a batch of completions in one transaction, each independent of the others. Where the occurrence still has
   * the key's fence and a claim, the claim is removed, `settle` is applied as in {@link update}, and the attempt enters
   * the ledger. Otherwise nothing changes and the result is `lost_claim`. A `settle` that throws rejects the whole
   * batch.
   *
   * A store that partitions owners uses one transaction per partition. When it rejects, other partitions may have been
   * applied; they are `lost_claim` when they are repeated.
   */
  complete(completions: readonly Completion[]): Promise<CompletionResult[]>;

  /**
   * The earliest instant at which {@link claim} could find work: the smallest `dueAt` of unclaimed occurrences;
   * `undefined` when there is none. May be in the past. Where replicas prefer buckets, it is up to 50 ms later
   * for another replica's buckets. Owners in `saturated` are excluded, so that a caller who may not claim for them does
   * not spin.
   */
  nextDueAt(saturated: ReadonlySet<string>): Promise<number | undefined>;

  /**
   * When alarms with `wakeComputer` are due, or their deferral ends. Occurrences with several failed attempts do not
   * count, so that no computer is woken repeatedly in vain. Only a store of a single computer implements this.
   */
  computerWakes?(after: number): Promise<ComputerWakes>;

  /**
   * The number of unclaimed occurrences with `dueAt <= now`; counting stops at `atMost`, so that a backlog
   * does not make it slow.
   */
  countDue(request: { now: number; atMost: number }): Promise<number>;

  /** Stores a nonce for one DID until `expiresAt`; deletes nonces that have expired by `now`. */
  putNonce(nonce: string, did: string, expiresAt: number, now: number): Promise<void>;

  /** Uses a nonce up: true exactly once, for its DID, until it expires. A wrong DID uses it up as well. */
  takeNonce(nonce: string, did: string, now: number): Promise<boolean>;

  /** All keys ever accepted for an owner, revoked ones included, oldest first. */
  keysOf(owner: string): Promise<AgentKey[]>;

  /**
   * Trust on first use: stores the key when the owner has no key at all, revoked ones included. Atomic: of two first
   * keys one wins. With limits, storing a key rejects with `rate_limited` when the limit per hour before its
   * `enrolledAt`, or the limit on all keys, is reached. Replicas may exceed either by one each.
   *
   * @returns whether this key is accepted for the owner now (it was stored, or existed unrevoked)
   */
  pinFirstKey(key: AgentKey, limits?: PinLimits): Promise<boolean>;

  /** Enrols a key, or undoes its revocation. A known key keeps its label and `enrolledAt` and gets the given source. */
  enrollKey(key: AgentKey): Promise<void>;

  /** Revokes one key of an owner, or all of them. Returns the keys that were revoked by this call, oldest first. */
  revokeKeys(owner: string, publicKey: string | undefined, now: number): Promise<AgentKey[]>;

  /**
   * Replaces an accepted key of an owner by another, in one transaction: the new key is stored with the source, label
   * and `enrolledAt` of the old one, and the old one is revoked. Atomic: of several rotations of one key one succeeds,
   * and a simultaneous revocation of all keys of the owner includes the new key, or prevents the rotation. A new key
   * that is accepted already stays, with the better source.
   */
  rotateKey(rotation: KeyRotation): Promise<KeyRotationResult>;

  /** The calendar feeds of an owner, oldest first. */
  feedsOf(owner: string): Promise<CalendarFeed[]>;

  /** Stores a feed, unless its owner has `most` already. Replicas may exceed it by one each. @returns whether it did */
  addFeed(feed: CalendarFeed, most: number): Promise<boolean>;

  /** Deletes a feed of an owner and returns it; `undefined` if the owner has none with this id. */
  removeFeed(owner: string, id: string): Promise<CalendarFeed | undefined>;

  /** How many alarms of an owner are active or paused. */
  countOpen(owner: string): Promise<OpenCount>;

  /**
   * Moves up to {@link MOVE_STEP} alarms to another owner with all that belongs to them (pending occurrences, ledger,
   * turn reports, events, idempotency keys) and both owners' totals, in one transaction. Ids, fire ids and fences stay. Call it
   * until it moves fewer. Every call first compares all remaining alarms: it moves nothing while one of them is in
   * delivery, while both owners hold the same idempotency key, or when the target would exceed a limit.
   *
   * For readers of the target, a moved alarm that is open was edited at `now`; readers of the source learn nothing.
   *
   * @throws ReveilleError `invalid_request` in a database that is distributed over servers, where rows cannot move
   */
  moveAlarms(move: AlarmMove): Promise<MoveAlarmsResult>;

  /** Enrolled and pinned keys of all owners, by owner, at most `limit` after the given owner and key. */
  listKeys(page: { limit: number; after?: { owner: string; publicKey: string } }): Promise<AgentKey[]>;

  /** Resolves when the store can read and write; rejects with `unavailable` otherwise. */
  ping(): Promise<void>;

  /** Finishes queued work and closes the medium. No calls are allowed afterwards. */
  close(): Promise<void>;
};
