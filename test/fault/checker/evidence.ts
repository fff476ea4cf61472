/**
 * Joins the three logs, so that every invariant finds related entries: per alarm its owner's requests, its rows in the
 * database, and its wakes and turns. Pure.
 */
import type { Alarm, Attempt, Occurrence } from '../../../src/chronos/alarm/alarm.ts';
import { ownerOf } from '../../../src/wire/did.ts';
import { type ClaimHistory, claimHistory } from './claim-history.ts';
import type { Call, Definition, History, Operation, Turn, Wake } from './history.ts';
import type { Window } from './matching.ts';

/** A call with the kind of its operation known. */
export type CallOf<Op extends Operation['op']> = Call & { operation: Extract<Operation, { op: Op }> };

/** An owner's actions on an existing alarm. */
type Act = Exclude<Operation['op'], 'create' | 'intrude'>;

/** The entries of database and receiver for one alarm. */
export type AlarmRecord = {
  row: Alarm | undefined;
  occurrences: readonly Occurrence[];
  attempts: readonly Attempt[];
  wakes: readonly Wake[];
};

/** One alarm, from all logs. */
export type AlarmCase = AlarmRecord & {
  id: string;
  owner: string;
  /** Its creates: those acknowledged with its id or, if that is unknown, those with its key. */
  creates: readonly CallOf<'create'>[];
  /** Some create was acknowledged with its id: it is promised. */
  isPromised: boolean;
  /** Its definition when it was set, and all possible later ones. */
  definitions: readonly [Definition, ...Definition[]];
};

export type Evidence = {
  history: History;
  /** Alarms that the client's log explains. */
  cases: readonly AlarmCase[];
  caseOf(alarmId: string): AlarmCase | undefined;
  /** Rows of users in the client's log that none of its creates explains. */
  unexplained: readonly Alarm[];
  /** The owner's actions on an alarm, in order, without refused ones. */
  acts<Op extends Act>(alarmId: string, ...ops: Op[]): CallOf<Op>[];
  /** When a call can have been carried out, in the database's time. */
  spanOf(call: Call): Window;
  creates: readonly CallOf<'create'>[];
  /** Cancels by owners that were not refused. */
  cancels: readonly CallOf<'cancel'>[];
  intrusions: readonly CallOf<'intrude'>[];
  /** Of any alarm, with or without a create in the client's log. */
  recordOf(alarmId: string): AlarmRecord;
  /** The ledger of one occurrence, by attempt number. */
  attemptsAt(fireId: string): readonly Attempt[];
  occurrenceOf(fireId: string): Occurrence | undefined;
  wakesFor(fireId: string): readonly Wake[];
  turnsFor(fireId: string): readonly Turn[];
  /** Every fire id in any log. */
  fireIds: ReadonlySet<string>;
  /** The receiver accepted it: it answered 2xx, or ran a turn. */
  isAccepted(fireId: string): boolean;
  /** A trigger made this occurrence: the audit shows it, or, without an audit, the answer to the owner. */
  isTriggered(fireId: string): boolean;
  /** A trigger with a lost answer may have made it, and there is no audit to show it. */
  mayBeTriggered(fireId: string): boolean;
  /** `undefined` without an audit. */
  claims: ClaimHistory | undefined;
};

/** How long after its sender gave up a request may still be carried out. */
const LOST_ON_THE_WAY_MS = 120_000;

/** The alarm of a fire id. */
export function alarmIdOf(fireId: string): string {
  return fireId.slice(0, Math.max(0, fireId.lastIndexOf('@')));
}

/** The time in a fire id; minus infinity without one. */
export function dueOf(fireId: string): number {
  const text = fireId.slice(fireId.lastIndexOf('@') + 1);
  return /^\d{1,16}$/.test(text) ? Number(text) : Number.NEGATIVE_INFINITY;
}

export function isAcceptance(status: number | null): boolean {
  return status !== null && status >= 200 && status < 300;
}

function isOp<Op extends Operation['op']>(call: Call, ...ops: Op[]): call is CallOf<Op> {
  return ops.includes(call.operation.op as Op);
}

/** Groups in order. */
function groupBy<T, K>(items: Iterable<T>, key: (item: T) => K): Map<K, T[]> {
  return Map.groupBy(items, key);
}

function append<K, T>(groups: Map<K, T[]>, key: K, item: T): void {
  const known = groups.get(key);
  if (known) known.push(item);
  else groups.set(key, [item]);
}

const keyName = (owner: string, key: string) => JSON.stringify([owner, key]);

/** More definitions than an alarm has, except with endless edits while answers are lost. */
const MOST_DEFINITIONS = 500;

/**
 * Every definition that an alarm can have had, the first one first. An edit with a lost answer may have taken effect or
 * not, and also after later ones.
 */
function definitionsOf(first: Definition, updates: readonly CallOf<'update'>[]): [Definition, ...Definition[]] {
  const had = new Map([[JSON.stringify(first), first]]);
  let current = [first];
  const open: Partial<Definition>[] = [];
  const edited = (definitions: readonly Definition[], change: Partial<Definition>) =>
    definitions.map((definition): Definition => ({ ...definition, ...change }));
  for (const { operation, answer } of updates) {
    // Undefined members, possible in a log without JSON, are not set.
    const change = JSON.parse(JSON.stringify(operation.change)) as Partial<Definition>;
    if (answer.answer === 'lost') open.push(change);
    else current = edited(current, change);
    for (const late of open) current = distinct([...current, ...edited(current, late)]);
    for (const definition of current) had.set(JSON.stringify(definition), definition);
    if (had.size > MOST_DEFINITIONS) break;
  }
  return [...had.values()] as [Definition, ...Definition[]];
}

function distinct(definitions: readonly Definition[]): Definition[] {
  return [...new Map(definitions.map((definition) => [JSON.stringify(definition), definition])).values()];
}

/** The create of each alarm. */
function attribute(
  creates: readonly CallOf<'create'>[],
  rows: readonly Alarm[],
): { byAlarm: Map<string, CallOf<'create'>[]>; unexplained: Alarm[] } {
  const byAlarm = new Map<string, CallOf<'create'>[]>();
  const add = (id: string, call: CallOf<'create'>) => append(byAlarm, id, call);
  const open: CallOf<'create'>[] = [];
  for (const call of creates) {
    if (call.answer.answer === 'acknowledged' && call.answer.alarmId !== undefined) add(call.answer.alarmId, call);
    else if (call.answer.answer !== 'refused') open.push(call);
  }
  const users = new Set(creates.map(({ user }) => ownerOf(user)));
  const lostByKey = groupBy(open, ({ user, operation }) =>
    operation.key === null ? undefined : keyName(ownerOf(user), operation.key),
  );
  // A create with a lost answer may have set the alarm that a later create under the same key returned.
  for (const [id, [{ user, operation }]] of [...byAlarm] as [string, [CallOf<'create'>]][]) {
    if (operation.key === null) continue;
    for (const call of lostByKey.get(keyName(ownerOf(user), operation.key)) ?? []) add(id, call);
  }
  const keyless = [...(lostByKey.get(undefined) ?? [])];
  const unexplained: Alarm[] = [];
  for (const row of rows) {
    if (byAlarm.has(row.id) || !users.has(row.owner)) continue;
    if (row.idempotencyKey !== null) {
      const calls = lostByKey.get(keyName(row.owner, row.idempotencyKey));
      if (calls) for (const call of calls) add(row.id, call);
      else unexplained.push(row);
      continue;
    }
    const index = keyless.findIndex(
      ({ user, operation: { definition } }) =>
        ownerOf(user) === row.owner &&
        definition.message === row.wakeMessage &&
        definition.kind === row.kind &&
        definition.payload === row.payload,
    );
    if (index < 0) unexplained.push(row);
    else for (const call of keyless.splice(index, 1)) add(row.id, call);
  }
  return { byAlarm, unexplained };
}

/** Joins the logs. */
export function gatherEvidence(history: History): Evidence {
  const { client, database, receiver } = history;
  const rows = new Map(database.alarms.map((alarm) => [alarm.id, alarm]));
  const creates = client.calls.filter((call) => isOp(call, 'create'));
  const { byAlarm, unexplained } = attribute(creates, database.alarms);

  const ownerOfAlarm = (id: string) => {
    const [first] = byAlarm.get(id) ?? [];
    return first ? ownerOf(first.user) : rows.get(id)?.owner;
  };
  // An action on another owner's alarm is an intrusion, whatever its name in the log.
  const intrusions: CallOf<'intrude'>[] = [];
  const actsByAlarm = new Map<string, Call[]>();
  for (const call of client.calls) {
    const { operation } = call;
    if (operation.op === 'create') continue;
    const owner = ownerOfAlarm(operation.alarmId);
    if (operation.op === 'intrude' || (owner !== undefined && owner !== ownerOf(call.user))) {
      const action = operation.op === 'intrude' ? operation.action : operation.op;
      intrusions.push({ ...call, operation: { op: 'intrude', alarmId: operation.alarmId, action } });
    } else if (call.answer.answer !== 'refused') {
      append(actsByAlarm, operation.alarmId, call);
    }
  }
  const acts = <Op extends Act>(alarmId: string, ...ops: Op[]): CallOf<Op>[] =>
    (actsByAlarm.get(alarmId) ?? []).filter((call) => isOp(call, ...ops));

  const occurrencesByAlarm = groupBy(database.occurrences, ({ alarmId }) => alarmId);
  const attemptsByAlarm = groupBy(database.attempts, ({ alarmId }) => alarmId);
  const attemptsByFire = groupBy(
    [...database.attempts].sort((one, other) => one.attempt - other.attempt),
    ({ fireId }) => fireId,
  );
  const occurrenceByFire = new Map(database.occurrences.map((occurrence) => [occurrence.fireId, occurrence]));
  const wakesByFire = groupBy(receiver.wakes, ({ fireId }) => fireId);
  const wakesByAlarm = groupBy(receiver.wakes, ({ fireId }) => alarmIdOf(fireId));
  const turnsByFire = groupBy(receiver.turns ?? [], ({ fireId }) => fireId);
  const claims = database.audit === null ? undefined : claimHistory(database.audit);

  const recordOf = (id: string): AlarmRecord => ({
    row: rows.get(id),
    occurrences: occurrencesByAlarm.get(id) ?? [],
    attempts: attemptsByAlarm.get(id) ?? [],
    wakes: wakesByAlarm.get(id) ?? [],
  });

  const cases = [...byAlarm].map(([id, calls]): AlarmCase => {
    const acknowledged = calls.filter(({ answer }) => answer.answer === 'acknowledged');
    const [first] = acknowledged.length > 0 ? acknowledged : calls;
    return {
      id,
      owner: ownerOf(first!.user),
      creates: calls,
      isPromised: acknowledged.length > 0,
      definitions: definitionsOf(first!.operation.definition, acts(id, 'update')),
      ...recordOf(id),
    };
  });
  const caseById = new Map(cases.map((one) => [one.id, one]));

  const spanOf = ({ answer, invokedAt, answeredAt }: Call): Window => {
    const late = answer.answer === 'lost' ? LOST_ON_THE_WAY_MS : 0;
    const until = answeredAt ?? Number.POSITIVE_INFINITY;
    return { from: invokedAt - client.clockToleranceMs, until: until + client.clockToleranceMs + late };
  };
  const mayBeTriggered = (fireId: string) => {
    if (claims) return false;
    const due = dueOf(fireId);
    return acts(alarmIdOf(fireId), 'trigger').some((call) => {
      const { from, until } = spanOf(call);
      return call.answer.answer === 'lost' && due >= from && due <= until;
    });
  };
  const triggered = new Set<string>(claims?.triggered);
  for (const call of client.calls) {
    const { answer } = call;
    if (call.operation.op === 'trigger' && answer.answer === 'acknowledged' && answer.fireId !== undefined)
      triggered.add(answer.fireId);
  }

  return {
    history,
    cases,
    caseOf: (alarmId) => caseById.get(alarmId),
    unexplained,
    acts,
    spanOf,
    creates,
    cancels: [...actsByAlarm.values()].flat().filter((call) => isOp(call, 'cancel')),
    intrusions,
    recordOf,
    attemptsAt: (fireId) => attemptsByFire.get(fireId) ?? [],
    occurrenceOf: (fireId) => occurrenceByFire.get(fireId),
    wakesFor: (fireId) => wakesByFire.get(fireId) ?? [],
    turnsFor: (fireId) => turnsByFire.get(fireId) ?? [],
    fireIds: new Set([
      ...attemptsByFire.keys(),
      ...occurrenceByFire.keys(),
      ...wakesByFire.keys(),
      ...turnsByFire.keys(),
    ]),
    isAccepted: (fireId) =>
      turnsByFire.has(fireId) || (wakesByFire.get(fireId) ?? []).some(({ status }) => isAcceptance(status)),
    isTriggered: (fireId) => triggered.has(fireId),
    mayBeTriggered,
    claims,
  };
}
