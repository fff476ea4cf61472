/** Changes one alarm inside a transaction: stores it, edits it, and records how an attempt ended. */
import type { DatabaseSync } from 'node:sqlite';
import { ReveilleError } from '../../../wire/errors.ts';
import { type AlarmState, storedBytes, type Transition } from '../../alarm/alarm.ts';
import { checkAttempt, checkTransition, withoutClaim } from '../difference.ts';
import { checkIncrease, increaseOf, needsTotals } from '../limits.ts';
import type { Completion, CompletionResult, CreateResult, NewAlarm, StoreLimits } from '../store.ts';
import { isOpen } from './owners.ts';
import { prepareQuery } from './statements.ts';
import type { Stored, Tables } from './tables.ts';

// Stores a new alarm.

type FindByKey = (owner: string, idempotencyKey: string) => AlarmState | undefined;

export function prepareCreate(tables: Tables, findByKey: FindByKey) {
  const { alarms, owners } = tables;

  return ({ alarm, occurrence }: NewAlarm, limits: StoreLimits & { maxActive: number }): CreateResult => {
    const { owner, id, idempotencyKey } = alarm;
    const holder = idempotencyKey === null ? undefined : findByKey(owner, idempotencyKey);
    if (holder) return { result: 'key_taken', state: holder };
    const { maxActive, maxStored = Number.POSITIVE_INFINITY, maxBytes = Number.POSITIVE_INFINITY } = limits;
    const ownerSeq = owners.seqOf(owner);
    const totals = owners.totals(ownerSeq, maxActive);
    if (totals.open >= maxActive) return { result: 'too_many', active: totals.open };
    const bytes = storedBytes(alarm);
    if (totals.alarms >= maxStored || totals.bytes + bytes > maxBytes)
      return { result: 'too_much', alarms: totals.alarms, bytes: totals.bytes };
    if (alarms.seqOf(owner, id) !== undefined) throw new ReveilleError('conflict', `alarm ${id} exists already`);

    const state = { alarm, occurrences: [occurrence] };
    checkTransition({ alarm, occurrences: [] }, state);
    const number = ownerSeq ?? owners.enrolled(owner);
    tables.insert(alarm, number, occurrence);
    owners.addToTotals(number, isOpen(alarm.status) ? 1 : 0, { alarms: 1, bytes });
    return { result: 'created', state };
  };
}

// The alarm of an owner that has an idempotency key and is not cancelled.

export function prepareFindByKey(db: DatabaseSync, tables: Tables) {
  const holder = prepareQuery(
    db,
    'SELECT d.id FROM held_keys AS k CROSS JOIN definitions AS d ON d.seq = k.alarm WHERE k.owner = ? AND k.idempotency_key = ?',
    ([id]) => id as string,
  );

  return (owner: string, idempotencyKey: string): AlarmState | undefined => {
    const id = holder.get(owner, idempotencyKey);
    return id === undefined ? undefined : tables.find(owner, id)?.state;
  };
}

// Changes one alarm by a pure transition.

/** Writes the result of a transition, which must not exceed a limit. */
export function writeWithin(tables: Tables, stored: Stored, wanted: AlarmState, limits: StoreLimits): void {
  const { ownerSeq } = stored.row.location;
  checkTransition(stored.state, wanted);
  const increase = increaseOf(stored.state, wanted);
  if (needsTotals(increase, limits)) {
    const { open: active, bytes } = tables.owners.totals(ownerSeq, limits.maxActive);
    checkIncrease(increase, limits, { active, bytes, triggers: tables.owners.waitingTriggers(ownerSeq) });
  }
  const opened = tables.write(stored, wanted);
  tables.owners.addToTotals(ownerSeq, opened, { alarms: 0, bytes: increase.bytes });
}

export function prepareUpdateAlarm(tables: Tables) {
  return (owner: string, alarmId: string, transition: Transition, limits: StoreLimits = {}): AlarmState | undefined => {
    const stored = tables.find(owner, alarmId);
    if (!stored) return undefined;
    const wanted = transition(stored.state);
    writeWithin(tables, stored, wanted, limits);
    return wanted;
  };
}

// Records the outcomes of attempts.

/** A change in one owner's open alarms and bytes. */
type TotalsOfOwner = { opened: number; bytes: number };

export function prepareComplete(tables: Tables) {
  const { alarms, claims, ledger, dueQueue } = tables;

  /** Writes a delivery without reading its alarm, where nothing has changed since the claim. */
  function completeDirectly({ key, attempt, direct }: Completion): boolean {
    const row = direct && claims.untouched(direct.claim);
    if (!row || !attempt || row.fence !== key.fence) return false;
    checkAttempt(key, attempt);
    ledger.deliver(row, direct.effect, attempt);
    claims.end(row);
    const { next } = direct.effect;
    if (next?.dueAt != null) dueQueue.add({ ...row, dueAt: next.dueAt, scheduledFor: next.scheduledFor });
    if (!next) alarms.endedBy(row.owner, row.alarm);
    return true;
  }

  /**
   * @param totals the change in each owner's open alarms and bytes; updated here
   */
  function completeOne({ key, attempt, settle }: Completion, totals: Map<number, TotalsOfOwner>): CompletionResult {
    const row = tables.claims.find(key);
    if (!row) return 'lost_claim';
    const stored = tables.ofClaim(row);
    const { seq, ownerSeq } = stored.row.location;
    const given = withoutClaim(stored.state, key.fireId);
    const wanted = settle(given);
    checkTransition(given, wanted);
    const { opened, bytes } = totals.get(ownerSeq) ?? { opened: 0, bytes: 0 };
    totals.set(ownerSeq, {
      opened: opened + tables.write(stored, wanted, key.fireId),
      bytes: bytes + increaseOf(given, wanted).bytes,
    });
    if (attempt) {
      checkAttempt(key, attempt);
      tables.ledger.add(seq, attempt);
    }
    return 'applied';
  }

  return (completions: readonly Completion[]): CompletionResult[] => {
    const totals = new Map<number, TotalsOfOwner>();
    const results = completions.map((completion) =>
      completeDirectly(completion) ? 'applied' : completeOne(completion, totals),
    );
    for (const [owner, { opened, bytes }] of totals) tables.owners.addToTotals(owner, opened, { alarms: 0, bytes });
    return results;
  };
}
