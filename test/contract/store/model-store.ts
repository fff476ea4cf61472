/**
 * The store port in its simplest form: lists in memory with linear search. It defines the contract's meaning by
 * execution; the random walk compares real stores with it.
 */
import {
  type Alarm,
  type AlarmState,
  type Attempt,
  type Occurrence,
  storedBytes,
  TURN_RUNS,
} from '../../../src/chronos/alarm/alarm.ts';
import { isLook } from '../../../src/chronos/alarm/events.ts';
import type { StoredTurnReport } from '../../../src/chronos/alarm/fire-history.ts';
import { TIMELESS_EVENT } from '../../../src/chronos/alarm/hook.ts';
import { interruptedAttempt, settleInterrupted } from '../../../src/chronos/alarm/settlement.ts';
import { checkAttempt, checkTransition, withoutClaim } from '../../../src/chronos/store/difference.ts';
import {
  distinctEvents,
  eventBytes,
  eventRows,
  KNOWN_EVENTS,
  type StoredEvent,
  trimmedBefore,
} from '../../../src/chronos/store/event-rows.ts';
import {
  anHourBefore,
  checkIncrease,
  checkPins,
  increaseOf,
  isRotatable,
  refusedMove,
} from '../../../src/chronos/store/limits.ts';
import {
  type AgentKey,
  type AlarmStore,
  type CalendarFeed,
  type ClaimKey,
  MOST_REVOKED_KEYS,
  MOVE_STEP,
  SEARCH_STEP,
} from '../../../src/chronos/store/store.ts';
import {
  alarmChanges,
  attemptChange,
  type Follower,
  reportChange,
  type StoredChange,
} from '../../../src/chronos/store/stored-change.ts';
import { systemClock } from '../../../src/kit/clock/clock.ts';
import { ReveilleError } from '../../../src/wire/errors.ts';

type Nonce = { nonce: string; did: string; expiresAt: number };

const latestFirst = (one: Attempt, other: Attempt) =>
  other.startedAt - one.startedAt ||
  Number(other.fireId > one.fireId) - Number(other.fireId < one.fireId) ||
  other.attempt - one.attempt;

const byAge = (one: AgentKey, other: AgentKey) =>
  one.enrolledAt - other.enrolledAt || (one.publicKey < other.publicKey ? -1 : 1);

const byOwner = (one: { owner: string; publicKey: string }, other: { owner: string; publicKey: string }) =>
  one.owner === other.owner ? (one.publicKey < other.publicKey ? -1 : 1) : one.owner < other.owner ? -1 : 1;

/** Letters of the Latin alphabet, case-insensitively, and no others. */
const folded = (text: string) => text.replace(/[A-Z]/g, (letter) => letter.toLowerCase());

type DuePosition = { dueAt: number; alarmId: string };
const byDue = (one: DuePosition, other: DuePosition) =>
  one.dueAt - other.dueAt || Number(one.alarmId > other.alarmId) - Number(one.alarmId < other.alarmId);

const isOf = (owner: string, alarmId: string) => (row: { owner: string; alarmId: string }) =>
  row.owner === owner && row.alarmId === alarmId;

const isOpen = ({ status }: Alarm) => status === 'active' || status === 'paused';

export function makeModelStore(): AlarmStore {
  let states: AlarmState[] = [];
  let ledger: Attempt[] = [];
  let receipts: StoredTurnReport[] = [];
  let events: StoredEvent[] = [];
  let nonces: Nonce[] = [];
  let feeds: CalendarFeed[] = [];
  let keys: AgentKey[] = [];
  const followers = new Set<Follower>();
  const report = (change: StoredChange) => {
    for (const { owners, onChanges } of followers) if (owners.has(change.owner)) onChanges([change]);
  };
  const record = (attempt: Attempt) => {
    ledger.push(attempt);
    report(attemptChange(attempt));
  };

  const find = (owner: string, id: string) => states.find(({ alarm }) => alarm.owner === owner && alarm.id === id);
  const holderOf = (owner: string, key: string) =>
    states.find(({ alarm }) => alarm.owner === owner && alarm.idempotencyKey === key && alarm.status !== 'cancelled');
  const allOccurrences = () => states.flatMap(({ occurrences }) => occurrences);

  function put(before: AlarmState, after: AlarmState): void {
    const occurrences = after.occurrences.toSorted((one, other) => (one.fireId < other.fireId ? -1 : 1));
    states = states.map((state) => (state === before ? { alarm: after.alarm, occurrences } : state));
  }

  function change(occurrence: Occurrence, difference: Partial<Occurrence>): Occurrence {
    const before = find(occurrence.owner, occurrence.alarmId)!;
    const changed = { ...occurrence, ...difference };
    put(before, {
      ...before,
      occurrences: before.occurrences.map((other) => (other.fireId === occurrence.fireId ? changed : other)),
    });
    return changed;
  }

  /** Applies the result of a transition; attempts without any later outcome become unknown. */
  function apply(before: AlarmState, given: AlarmState, after: AlarmState): void {
    checkTransition(given, after);
    const kept = new Set(after.occurrences.map(({ fireId }) => fireId));
    for (const occurrence of given.occurrences) {
      if (occurrence.claimedAt !== null && !kept.has(occurrence.fireId))
        record(interruptedAttempt(occurrence, systemClock.now()));
    }
    put(before, after);
  }

  function claimedBy(key: ClaimKey): Occurrence | undefined {
    return find(key.owner, key.alarmId)?.occurrences.find(
      ({ fireId, fence, claimedAt }) => fireId === key.fireId && fence === key.fence && claimedAt !== null,
    );
  }

  /** Ends every claim: no process but the caller lives. */
  function endClaims(now: number): number {
    const claimed = allOccurrences().filter(({ claimedAt }) => claimedAt !== null);
    for (const occurrence of claimed) {
      const before = find(occurrence.owner, occurrence.alarmId)!;
      const given = withoutClaim(before, occurrence.fireId);
      apply(before, given, settleInterrupted(given, occurrence.fireId, now));
      if (!isLook(before.alarm, occurrence)) record(interruptedAttempt(occurrence, now));
    }
    return claimed.length;
  }

  function knows({ owner, alarmId, fireId, dueAt }: Parameters<AlarmStore['hasFire']>[0]): boolean {
    const isAttempted = find(owner, alarmId)?.occurrences.some((one) => one.fireId === fireId && one.attempt >= 1);
    return (
      isAttempted === true ||
      ledger.some(
        (one) => one.owner === owner && one.alarmId === alarmId && one.fireId === fireId && one.startedAt >= dueAt,
      )
    );
  }

  const statesOf = (owner: string) => states.filter(({ alarm }) => alarm.owner === owner);
  const bytesOf = (some: readonly AlarmState[]) => some.reduce((sum, { alarm }) => sum + storedBytes(alarm), 0);
  const waits = ({ source, dueAt }: Occurrence) => source === 'trigger' && dueAt !== null;

  /** The data of an owner, as limits count it. */
  const usageOf = (owner: string) => ({
    active: statesOf(owner).filter(({ alarm }) => isOpen(alarm)).length,
    bytes: bytesOf(statesOf(owner)),
    triggers: statesOf(owner).flatMap(({ occurrences }) => occurrences.filter(waits)).length,
  });

  /** Deletes alarms with all their data, least recently changed first. */
  function forget(wanted: (alarm: Alarm) => boolean, limit: number): number {
    const busy = ({ occurrences }: AlarmState) => occurrences.some((one) => one.claimedAt !== null || waits(one));
    const deleted = states
      .filter((state) => wanted(state.alarm) && !busy(state))
      .sort((one, other) => one.alarm.updatedAt - other.alarm.updatedAt)
      .slice(0, limit);
    const isGone = (one: { owner: string; alarmId: string }) =>
      deleted.some(({ alarm }) => alarm.owner === one.owner && alarm.id === one.alarmId);
    states = states.filter((state) => !deleted.includes(state));
    ledger = ledger.filter((attempt) => !isGone(attempt));
    receipts = receipts.filter((receipt) => !isGone(receipt));
    events = events.filter((event) => !isGone(event));
    return deleted.length;
  }

  /** All or nothing, like a transaction. */
  function atomically<T>(work: () => T): T {
    const before = { states, ledger: [...ledger] };
    try {
      return work();
    } catch (error) {
      ({ states, ledger } = before);
      throw error;
    }
  }

  return {
    now: () => systemClock.now(),
    async create({ alarm, occurrence }, { maxActive = Number.POSITIVE_INFINITY, maxStored, maxBytes }) {
      const holder = alarm.idempotencyKey === null ? undefined : holderOf(alarm.owner, alarm.idempotencyKey);
      if (holder) return { result: 'key_taken', state: holder };
      const active = states.filter((state) => state.alarm.owner === alarm.owner && isOpen(state.alarm)).length;
      if (active >= maxActive) return { result: 'too_many', active };
      const [alarms, bytes] = [statesOf(alarm.owner).length, usageOf(alarm.owner).bytes];
      const isFinal =
        alarms >= (maxStored ?? Number.POSITIVE_INFINITY) ||
        bytes + storedBytes(alarm) > (maxBytes ?? Number.POSITIVE_INFINITY);
      if (isFinal) return { result: 'too_much', alarms, bytes };
      if (find(alarm.owner, alarm.id)) throw new ReveilleError('conflict', 'there is such an alarm already');
      const state = { alarm, occurrences: [occurrence] };
      checkTransition({ alarm, occurrences: [] }, state);
      states = [...states, state];
      report({ kind: 'created', owner: alarm.owner, alarmId: alarm.id, at: alarm.createdAt });
      return { result: 'created', state };
    },
    async get(owner, id) {
      return find(owner, id);
    },
    async findByKey(owner, key) {
      return holderOf(owner, key);
    },
    async list(owner, { status, kind, before, limit }) {
      return states
        .filter(({ alarm }) => alarm.owner === owner)
        .filter(({ alarm }) => (!status || alarm.status === status) && (!kind || alarm.kind === kind))
        .filter(({ alarm }) => before === undefined || alarm.id < before)
        .sort((one, other) => (one.alarm.id < other.alarm.id ? 1 : -1))
        .slice(0, limit);
    },
    hasConversation: async (owner, madeBy, id) =>
      statesOf(owner)
        .filter(({ alarm }) => alarm.madeBy === madeBy)
        .some(
          ({ alarm }) =>
            alarm.conversationId === id ||
            receipts.some((one) => one.owner === owner && one.alarmId === alarm.id && one.conversationId === id),
        ),
    async search(owner, { text, limit, ...filter }) {
      const step = await this.list(owner, { limit: SEARCH_STEP, ...(filter.before && { before: filter.before }) });
      const wanted = folded(text);
      const found = step
        .filter(({ alarm }) => !filter.status || alarm.status === filter.status)
        .filter(({ alarm }) => !filter.kind || alarm.kind === filter.kind)
        .filter(({ alarm }) => folded(alarm.label).includes(wanted) || folded(alarm.wakeMessage).includes(wanted))
        .slice(0, limit);
      const end = step.length === SEARCH_STEP ? step.at(-1)!.alarm.id : undefined;
      return { found, reached: found.length === limit ? found.at(-1)!.alarm.id : end };
    },
    async upcoming(owner, { until = Number.POSITIVE_INFINITY, after, limit }) {
      return statesOf(owner)
        .filter(({ alarm }) => alarm.status === 'active')
        .flatMap((state) => {
          const dueAt = state.occurrences.find(({ source }) => source === 'schedule')?.dueAt ?? null;
          return dueAt === null || dueAt > until ? [] : [{ state, dueAt, alarmId: state.alarm.id }];
        })
        .sort(byDue)
        .filter((one) => after === undefined || byDue(after, one) < 0)
        .slice(0, limit)
        .map(({ state }) => state);
    },
    async follow(follower) {
      followers.add(follower);
      return { refresh: async () => {}, end: () => void followers.delete(follower) };
    },
    async changesSince(owner, since) {
      const changes = [
        ...statesOf(owner).flatMap(({ alarm }) => alarmChanges(alarm, since)),
        ...ledger.filter((one) => one.owner === owner && one.finishedAt >= since).map(attemptChange),
        ...receipts.filter((one) => one.owner === owner && one.recordedAt >= since).map(reportChange),
      ];
      return changes.length < 5000 ? changes.sort((one, other) => one.at - other.at) : undefined;
    },
    async update(owner, id, transition, limits = {}) {
      const before = find(owner, id);
      if (!before) return undefined;
      const after = transition(before);
      checkIncrease(increaseOf(before, after), limits, usageOf(owner));
      apply(before, before, after);
      const kind = after.alarm.status === 'cancelled' ? 'cancelled' : 'edited';
      report({ kind, owner, alarmId: id, at: after.alarm.updatedAt });
      return after;
    },
    async attempts(owner, alarmId, { limit, before }) {
      return ledger
        .filter((attempt) => attempt.owner === owner && attempt.alarmId === alarmId)
        .sort(latestFirst)
        .filter((attempt) => !before || latestFirst({ ...attempt, ...before }, attempt) < 0)
        .slice(0, limit);
    },
    async pruneAttempts({ before, limit }) {
      const last = new Map(ledger.map((attempt) => [`${attempt.owner} ${attempt.alarmId}`, attempt]));
      const isLast = (attempt: Attempt) => last.get(`${attempt.owner} ${attempt.alarmId}`) === attempt;
      const old = ledger.filter((attempt) => attempt.finishedAt < before && !isLast(attempt));
      const pruned = new Set(old.sort((one, other) => one.finishedAt - other.finishedAt).slice(0, limit));
      ledger = ledger.filter((attempt) => !pruned.has(attempt));
      return pruned.size;
    },
    hasFire: async (fire) => knows(fire),
    async recordTurnReports(given) {
      if (!knows(given)) return undefined;
      const { owner, alarmId, fireId, reports, recordedAt } = given;
      const news = new Set<(typeof reports)[number]['stage']>();
      for (const each of reports) {
        const { stage, at: reportedAt } = each;
        const at = receipts.findIndex((one) => one.owner === owner && one.fireId === fireId && one.stage === stage);
        const known = receipts[at];
        // A stage is reported once; of a waiting turn the latest report counts.
        if (known && !(stage === 'turn_waits' && reportedAt > known.at)) continue;
        const kept = { owner, alarmId, fireId, ...each, recordedAt };
        receipts = known ? receipts.with(at, kept) : [...receipts, kept];
        news.add(stage);
        report(reportChange(kept));
      }
      return { fresh: news, options: find(owner, alarmId)!.alarm.options };
    },
    async turnReportsOf(owner, alarmId, fireIds) {
      return receipts.filter((one) => one.owner === owner && one.alarmId === alarmId && fireIds.includes(one.fireId));
    },
    async pruneTurnReports({ before, limit }) {
      const old = receipts.filter(({ recordedAt }) => recordedAt < before);
      const pruned = new Set(old.sort((one, other) => one.recordedAt - other.recordedAt).slice(0, limit));
      receipts = receipts.filter((one) => !pruned.has(one));
      return pruned.size;
    },
    async recordEvents({ owner, alarmId, events: given, arrive, limits = {} }) {
      const before = find(owner, alarmId);
      if (!before) return undefined;
      const known = new Set(events.filter(isOf(owner, alarmId)).map(({ id }) => id));
      const fresh = distinctEvents(given).filter(({ id }) => !known.has(id));
      if (fresh.length === 0) return { state: before, fresh: 0 };
      const after = arrive(before, fresh);
      const rows = eventRows(before, after, fresh);
      checkIncrease(increaseOf(before, after), limits, usageOf(owner));
      apply(before, before, after);
      events.push(...rows);
      const trimmed = trimmedBefore(before, after, fresh);
      if (trimmed !== undefined) {
        const ids = events.filter((one) => isOf(owner, alarmId)(one) && one.data === null);
        const kept = new Set(ids.toSorted((one, other) => other.receivedAt - one.receivedAt).slice(0, KNOWN_EVENTS));
        const ended = new Set(ids.filter((one) => one.receivedAt < trimmed && !kept.has(one)));
        events = events.filter((one) => !ended.has(one));
      }
      return { state: after, fresh: fresh.length };
    },
    async eventsOf(owner, alarmId, { from, to, maxBytes }) {
      let bytes = 0;
      return events
        .filter(isOf(owner, alarmId))
        .filter(({ number, data }) => data !== null && number >= from && number <= to)
        .sort((one, other) => one.number - other.number)
        .map(({ id, receivedAt, data, cause }) => ({ id, receivedAt, data: data!, ...(cause !== null && { cause }) }))
        .filter((event, index) => {
          bytes += eventBytes(event);
          return index === 0 || bytes <= maxBytes;
        });
    },
    async dropEvents(owner, alarmId, upTo) {
      events = events.map((event) =>
        isOf(owner, alarmId)(event) && event.number <= upTo ? { ...event, data: null } : event,
      );
    },
    async pruneEvents({ before, limit }) {
      const old = events.filter(
        ({ id, data, receivedAt }) => data === null && receivedAt < before && !id.startsWith(TIMELESS_EVENT),
      );
      const pruned = new Set(old.sort((one, other) => one.receivedAt - other.receivedAt).slice(0, limit));
      events = events.filter((one) => !pruned.has(one));
      return pruned.size;
    },
    endOrphanedClaims: async (now) => endClaims(now),
    pruneAlarms: async ({ before, limit }) => forget((alarm) => !isOpen(alarm) && alarm.updatedAt < before, limit),
    deleteCancelled: async (owner, limit) =>
      forget((alarm) => alarm.owner === owner && alarm.status === 'cancelled', limit),
    usage: async () => ({
      owners: new Set(states.map(({ alarm }) => alarm.owner)).size,
      alarms: states.length,
      bytes: bytesOf(states),
    }),
    async claim({ now, limit, perOwner, inFlight }) {
      const taken = new Map(inFlight);
      const claims = [];
      const due = allOccurrences()
        .filter(({ dueAt, claimedAt }) => dueAt !== null && dueAt <= now && claimedAt === null)
        .sort((one, other) => one.dueAt! - other.dueAt!);
      for (const occurrence of due) {
        const { owner } = occurrence;
        if (claims.length >= limit || (taken.get(owner) ?? 0) >= perOwner) continue;
        taken.set(owner, (taken.get(owner) ?? 0) + 1);
        const { attempt, fence } = occurrence;
        const claimed = change(occurrence, {
          attempt: attempt + 1,
          fence: fence + 1,
          claimedAt: now,
        });
        claims.push({ alarm: find(owner, occurrence.alarmId)!.alarm, occurrence: claimed });
        const { alarmId, fireId } = claimed;
        report({ kind: 'claimed', owner, alarmId, at: now, fireId, attempt: claimed.attempt });
      }
      return claims;
    },
    async complete(completions) {
      return atomically(() =>
        completions.map(({ key, attempt, settle }) => {
          if (!claimedBy(key)) return 'lost_claim';
          const before = find(key.owner, key.alarmId)!;
          const given = withoutClaim(before, key.fireId);
          const wanted = settle(given);
          apply(before, given, wanted);
          for (const { fireId, heldUntil: until, heldReason: reason } of wanted.occurrences) {
            if (until === null || given.occurrences.some((one) => one.fireId === fireId && one.heldUntil === until))
              continue;
            const { owner, alarmId } = key;
            report({
              kind: 'deferred',
              owner,
              alarmId,
              at: systemClock.now(),
              fireId,
              until,
              reason: reason ?? TURN_RUNS,
            });
          }
          if (attempt) {
            checkAttempt(key, attempt);
            record(attempt);
          }
          return 'applied';
        }),
      );
    },
    async nextDueAt(saturated) {
      const instants = allOccurrences()
        .filter(({ owner, claimedAt }) => !saturated.has(owner) && claimedAt === null)
        .map(({ dueAt }) => dueAt)
        .filter((instant) => instant !== null);
      return instants.length === 0 ? undefined : Math.min(...instants);
    },
    async countDue({ now, atMost }) {
      const due = allOccurrences().filter(
        ({ dueAt, claimedAt }) => dueAt !== null && dueAt <= now && claimedAt === null,
      );
      return Math.min(due.length, atMost);
    },
    async putNonce(nonce, did, expiresAt, now) {
      nonces = [...nonces.filter((kept) => kept.expiresAt > now), { nonce, did, expiresAt }];
    },
    async takeNonce(nonce, did, now) {
      const kept = nonces.find((one) => one.nonce === nonce);
      nonces = nonces.filter((one) => one !== kept);
      return kept !== undefined && kept.did === did && kept.expiresAt > now;
    },
    async keysOf(owner) {
      return keys.filter((key) => key.owner === owner).sort(byAge);
    },
    async pinFirstKey(key, limits) {
      const known = keys.filter(({ owner }) => owner === key.owner);
      if (known.length === 0 && limits) {
        const since = anHourBefore(key.enrolledAt);
        const kept = keys.filter(({ revokedAt }) => revokedAt === null);
        const pinned = kept.filter(({ source, enrolledAt }) => source !== 'enrolled' && enrolledAt > since).length;
        checkPins({ pinned, keys: kept.length }, limits);
      }
      if (known.length === 0) keys.push({ ...key, revokedAt: null });
      return (
        known.length === 0 ||
        known.some(({ publicKey, revokedAt }) => publicKey === key.publicKey && revokedAt === null)
      );
    },
    async enrollKey(key) {
      const known = keys.find(({ owner, publicKey }) => owner === key.owner && publicKey === key.publicKey);
      keys = [...keys.filter((other) => other !== known), { ...(known ?? key), source: key.source, revokedAt: null }];
    },
    async revokeKeys(owner, publicKey, now) {
      const revoked = (key: AgentKey) =>
        key.owner === owner && key.revokedAt === null && (publicKey === undefined || key.publicKey === publicKey);
      const ended = keys.filter(revoked).map((key) => ({ ...key, revokedAt: now }));
      keys = [...keys.filter((key) => !revoked(key)), ...ended];
      return ended.sort(byAge);
    },
    async rotateKey({ owner, from, to, now, enrolledOnly }) {
      const known = (publicKey: string) => keys.find((key) => key.owner === owner && key.publicKey === publicKey);
      const [old, there] = [known(from), known(to)];
      if (!isRotatable(old, enrolledOnly)) return 'not_accepted';
      if (there && there.revokedAt !== null) return 'revoked_before';
      const successor = there?.source === 'enrolled' ? there : { ...(there ?? old), publicKey: to, source: old.source };
      keys = [...keys.filter((key) => key !== old && key !== there), { ...old, revokedAt: now }, successor];
      const ended = keys.filter((key) => key.owner === owner && key.revokedAt !== null);
      const latest = ended.sort((one, other) => other.revokedAt! - one.revokedAt! || byAge(one, other));
      keys = keys.filter((key) => !latest.slice(MOST_REVOKED_KEYS).includes(key));
      return 'rotated';
    },
    feedsOf: async (owner) =>
      feeds
        .filter((feed) => feed.owner === owner)
        .sort((one, other) => one.createdAt - other.createdAt || (one.id < other.id ? -1 : 1)),
    async addFeed(feed, most) {
      if (feeds.filter(({ owner }) => owner === feed.owner).length >= most) return false;
      feeds.push(feed);
      return true;
    },
    async removeFeed(owner, id) {
      const removed = feeds.find((feed) => feed.owner === owner && feed.id === id);
      feeds = feeds.filter((feed) => feed !== removed);
      return removed;
    },
    countOpen: async (owner) => ({
      open: usageOf(owner).active,
      active: statesOf(owner).filter(({ alarm }) => alarm.status === 'active').length,
    }),
    async moveAlarms({ from, to, limits, now }) {
      const own = statesOf(from);
      const step = own.sort((one, other) => (one.alarm.id < other.alarm.id ? -1 : 1)).slice(0, MOVE_STEP);
      if (step.length === 0) return { result: 'moved', moved: 0 };
      const held = own.filter(({ alarm }) => alarm.idempotencyKey !== null && alarm.status !== 'cancelled');
      const refused = refusedMove(
        {
          inFlight: own.flatMap(({ occurrences }) => occurrences.filter(({ claimedAt }) => claimedAt !== null)).length,
          sharedKeys: held.filter(({ alarm }) => holderOf(to, alarm.idempotencyKey!)).length,
          totals: [from, to].map((owner) => {
            const { active: open, bytes } = usageOf(owner);
            return { open, alarms: statesOf(owner).length, bytes };
          }),
        },
        limits,
      );
      if (refused) return refused;
      const moves = new Set(step.map(({ alarm }) => alarm.id));
      const rest = <T extends { owner: string; alarmId: string }>(rows: T[]) =>
        rows.map((row) => (row.owner === from && moves.has(row.alarmId) ? { ...row, owner: to } : row));
      states = states.map((state) => {
        if (!step.includes(state)) return state;
        const updatedAt = isOpen(state.alarm) ? now : state.alarm.updatedAt;
        return { alarm: { ...state.alarm, owner: to, updatedAt }, occurrences: rest([...state.occurrences]) };
      });
      ledger = rest(ledger);
      receipts = rest(receipts);
      events = rest(events);
      for (const { alarm } of step)
        if (isOpen(alarm)) report({ kind: 'edited', owner: to, alarmId: alarm.id, at: now });
      return { result: 'moved', moved: step.length };
    },
    async listKeys({ limit, after }) {
      return keys
        .filter((key) => !after || byOwner(after, key) < 0)
        .filter((key) => !after || key.owner !== after.owner || key.publicKey !== after.publicKey)
        .sort(byOwner)
        .slice(0, limit);
    },
    async ping() {},
    async close() {
      for (const { onClosed } of followers) onClosed();
      followers.clear();
    },
  };
}
