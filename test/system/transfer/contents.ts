/** A store with every kind of content, and all its readable content. */
import type { AlarmState, Attempt } from '../../../src/chronos/alarm/alarm.ts';
import type { StoredTurnReport } from '../../../src/chronos/alarm/fire-history.ts';
import { settleDeferred } from '../../../src/chronos/alarm/settlement.ts';
import type { AgentKey, AlarmStore, CalendarFeed } from '../../../src/chronos/store/store.ts';
import type { AlarmEvent } from '../../../src/wire/conditions.ts';
import { arrivalFor, createWaiting, eventOf } from '../../contract/store/events.ts';
import {
  ADA,
  again,
  agentKey,
  alarmDue,
  attemptOf,
  BOB,
  cancelled,
  claim,
  create,
  createDue,
  delivered,
  edited,
  firedForGood,
  keyOf,
  NOW,
  paused,
  triggered,
} from '../../contract/store/fixtures.ts';
import { PAYLOADS, TEXTS } from '../../contract/store/texts.ts';
import { FINISHED, STARTED } from '../../contract/store/turn-reports.ts';

/** Sorts differently by the rules of a language than byte by byte. */
const OWNERS = [ADA, BOB, 'Zoe', '_', 'a.b-c', 'zoe'];

const LATER = NOW + 86_400_000;

async function fillTexts(store: AlarmStore): Promise<void> {
  for (const [n, wakeMessage] of TEXTS.entries())
    await createDue(store, LATER + n, {
      owner: OWNERS[n % OWNERS.length]!,
      wakeMessage,
      label: wakeMessage.replaceAll('\0', '').slice(0, 50).toWellFormed(),
      payload: PAYLOADS[n % PAYLOADS.length]!,
      conversationId: 'a.b_c:d-e',
      idempotencyKey: `key ' " \\ {} , 🦘 ${n}`,
    });
  // Half of a surrogate pair cannot be stored; SQLite stores the replacement character for it, and so must the copy.
  await createDue(store, LATER, { wakeMessage: 'half a \ud83e pair' });
}

async function fillNumbers(store: AlarmStore): Promise<void> {
  const numbers = [0, 0.1, 1e-7, 316_224_000, 1 / 3, Number.MAX_SAFE_INTEGER];
  for (const [n, number] of numbers.entries())
    await createDue(store, LATER + n, {
      kind: 'cron',
      fireAt: null,
      cronExpr: '@every 90s',
      timezone: 'Europe/Berlin',
      delaySeconds: number,
      jitterSeconds: number,
      maxLatenessSeconds: number,
      endsAt: Number.MAX_SAFE_INTEGER,
      urgent: n % 2 === 0,
      wakeComputer: n % 2 === 1,
      madeBy: n % 2 === 0 ? `client ${n}` : null,
      setBy: n % 2 === 0 ? `Zoë " \\ {} ${n}` : null,
      maxFires: Number.MAX_SAFE_INTEGER,
      anchor: -1,
    });
}

/** Alarms at every point of their lives. */
async function fillLives(store: AlarmStore, owner: string): Promise<void> {
  const due = (n: number, change = {}) => createDue(store, NOW - 100_000 + n, { owner, ...change });
  // A key that moved from a cancelled alarm to another.
  const { alarm: first } = await createDue(store, LATER, { owner, idempotencyKey: 'again' });
  await store.update(owner, first.id, cancelled);
  await createDue(store, LATER, { owner, idempotencyKey: 'again' });
  const { alarm: held } = await createDue(store, LATER, { owner });
  await store.update(owner, held.id, paused);
  const { alarm: twice } = await createDue(store, LATER, { owner });
  await store.update(owner, twice.id, triggered(NOW + 500));
  const { alarm: gone } = await createDue(store, LATER, { owner });
  await store.update(owner, gone.id, edited({ status: 'failed', lastError: 'said \0 and 日本', failureCount: 100 }));

  await due(0);
  await due(1, { wakeMessage: 'tried again' });
  await due(2);
  await due(3, { label: 'missed' });
  const claims = await claim(store);
  const [one, two, three, four] = claims.filter(({ alarm }) => alarm.owner === owner);
  for (const [n, { occurrence }] of [one!, two!].entries())
    await store.recordTurnReports({
      ...{ owner, alarmId: occurrence.alarmId, fireId: occurrence.fireId, dueAt: occurrence.scheduledFor },
      reports: n === 0 ? [STARTED, FINISHED] : [{ ...STARTED, turnId: null, conversationId: null }],
      recordedAt: NOW + n,
    });
  await store.complete([
    delivered(one!),
    {
      key: keyOf(two!),
      attempt: attemptOf(two!, {
        outcome: 'failed',
        httpStatus: 503,
        error: 'the machine\0said 503 🦘',
        machineReadyMs: 1234,
        lateBecause: 'not_running',
        cause: 'clock agent',
      }),
      settle: again(two!.occurrence.fireId, NOW + 30_000),
    },
    {
      key: keyOf(three!),
      attempt: attemptOf(three!, { outcome: 'unknown', httpStatus: null, error: 'nobody knows' }),
      settle: again(three!.occurrence.fireId, NOW - 1),
    },
    {
      key: keyOf(four!),
      attempt: attemptOf(four!, { outcome: 'missed', httpStatus: null, error: null, missedCount: 3 }),
      settle: firedForGood(four!.occurrence.fireId),
    },
  ]);
  await createDue(store, NOW - 50_000, { owner, label: 'held back' });
  const [five] = (await claim(store, { now: NOW - 50_000 })).filter(({ alarm }) => alarm.label === 'held back');
  const hold = { until: LATER + 1000, dueAt: LATER, reason: 'held back: "quiet" \\ {hours} 🦘, until 07:00' };
  await store.complete([
    { key: keyOf(five!), attempt: null, settle: (state) => settleDeferred(state, five!.occurrence.fireId, hold) },
  ]);
  // Fencing numbers with high values.
  for (let round = 0; round < 3; round++)
    for (const mine of (await claim(store, { now: NOW + 1000 })).filter(({ alarm }) => alarm.owner === owner))
      await store.complete([{ key: keyOf(mine), attempt: null, settle: again(mine.occurrence.fireId, NOW + round) }]);
}

/** Alarms with events that wait, that were carried, and that no wake carries. */
async function fillEvents(store: AlarmStore, owner: string): Promise<void> {
  const waiting = await createWaiting(store, undefined, owner);
  const texts = TEXTS.map((text, n) => eventOf(n, { id: `${n} ${text.slice(0, 100)}`, data: JSON.stringify(text) }));
  await store.recordEvents(arrivalFor(waiting, texts));
  await store.dropEvents(owner, waiting.alarm.id, 2);
  const expecting = await createWaiting(store, { kind: 'event', expect: { every: 'PT1H' } }, owner);
  await store.recordEvents(arrivalFor(expecting, [eventOf(1), eventOf(2)]));
}

/**
 * Deliveries in flight when the process ended: one of them of an alarm that was cancelled meanwhile, one of a paused
 * one.
 */
async function leaveClaims(store: AlarmStore): Promise<void> {
  const states = [];
  for (const owner of OWNERS) {
    const { alarm } = await createDue(store, NOW + 2000, { owner });
    states.push(alarm);
  }
  await claim(store, { now: NOW + 2000 });
  await store.update(states[0]!.owner, states[0]!.id, cancelled);
  await store.update(states[1]!.owner, states[1]!.id, paused);
}

async function fillKeys(store: AlarmStore): Promise<void> {
  const publicKey = (n: number) => n.toString(16).padStart(64, '0');
  await store.pinFirstKey(agentKey({ publicKey: publicKey(1) }));
  await store.enrollKey(agentKey({ publicKey: publicKey(2), source: 'enrolled', enrolledAt: NOW + 1 }));
  await store.pinFirstKey(agentKey({ owner: BOB, label: BOB, publicKey: publicKey(3) }));
  await store.revokeKeys(BOB, undefined, NOW + 2);
  await store.enrollKey(agentKey({ owner: 'without alarms', label: 'Without Alarms', publicKey: publicKey(4) }));
  await store.enrollKey(agentKey({ owner: 'without alarms', label: 'Without Alarms', publicKey: publicKey(5) }));
}

async function fillFeeds(store: AlarmStore): Promise<void> {
  for (const [at, name] of TEXTS.map((text) => text.replaceAll('\0', '').slice(0, 100).toWellFormed()).entries()) {
    const feed = { owner: OWNERS[at % OWNERS.length]!, id: String(at).padStart(12, '0'), name, messages: at % 2 === 0 };
    await store.addFeed(
      { ...feed, digest: 'ab'.repeat(32), createdAt: NOW + at, madeBy: 'key 0123456789abcdef' },
      TEXTS.length,
    );
  }
}

/** Puts all of it into a new store. */
export async function fill(store: AlarmStore): Promise<void> {
  await fillTexts(store);
  await fillNumbers(store);
  for (const owner of OWNERS) await fillLives(store, owner);
  await leaveClaims(store);
  for (const owner of OWNERS) await fillEvents(store, owner);
  await fillKeys(store);
  await fillFeeds(store);
  await store.putNonce('a nonce', 'did:matrix:a:b', NOW + 120_000, NOW);
}

/** Many plain alarms, so that a move takes several batches. */
export async function fillMany(store: AlarmStore, count: number, owners = 50): Promise<void> {
  const entries = Array.from({ length: count }, (_, n) => alarmDue(LATER + n, { owner: `owner-${n % owners}` }));
  for (let at = 0; at < entries.length; at += 2000)
    await Promise.all(entries.slice(at, at + 2000).map((entry) => create(store, entry)));
}

export type Contents = {
  states: AlarmState[];
  attempts: Attempt[];
  receipts: StoredTurnReport[];
  events: AlarmEvent[];
  keys: AgentKey[];
  feeds: CalendarFeed[];
  next: number | undefined;
};

async function allStates(store: AlarmStore, owner: string): Promise<AlarmState[]> {
  const states: AlarmState[] = [];
  for (let before: string | undefined; ; before = states.at(-1)!.alarm.id) {
    const page = await store.list(owner, { limit: 500, ...(before && { before }) });
    states.push(...page);
    if (page.length < 500) return states;
  }
}

/** Everything that the port returns for some owners, and the keys of all. */
export async function contentsOf(store: AlarmStore, owners: readonly string[] = OWNERS): Promise<Contents> {
  const contents: Contents = {
    states: [],
    attempts: [],
    receipts: [],
    events: [],
    keys: [],
    feeds: [],
    next: await store.nextDueAt(new Set()),
  };
  for (const owner of owners) {
    contents.feeds.push(...(await store.feedsOf(owner)));
    const states = await allStates(store, owner);
    contents.states.push(...states);
    for (const { alarm } of states) {
      const attempts = await store.attempts(owner, alarm.id, { limit: 1000 });
      contents.attempts.push(...attempts);
      const receipts = await store.turnReportsOf(
        owner,
        alarm.id,
        attempts.map(({ fireId }) => fireId),
      );
      contents.receipts.push(...receipts.sort((one, other) => one.at - other.at));
      contents.events.push(...(await store.eventsOf(owner, alarm.id, { from: 0, to: 1e9, maxBytes: 1e9 })));
      if (alarm.idempotencyKey !== null && alarm.status !== 'cancelled')
        contents.states.push((await store.findByKey(owner, alarm.idempotencyKey))!);
    }
  }
  contents.keys = await store.listKeys({ limit: 1000 });
  return contents;
}
