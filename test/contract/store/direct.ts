import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import type { AlarmState, Occurrence, Transition } from '../../../src/chronos/alarm/alarm.ts';
import { addBackfill, occurrencesBetween } from '../../../src/chronos/alarm/backfill.ts';
import { draftAlarm, editAlarm, firstOccurrence } from '../../../src/chronos/alarm/definition.ts';
import { cancelAlarm, pauseAlarm, triggerAlarm } from '../../../src/chronos/alarm/lifecycle.ts';
import { afterTurn } from '../../../src/chronos/alarm/policies.ts';
import { deliveryEffect, settleDelivered, settleFailed } from '../../../src/chronos/alarm/settlement.ts';
import type { AlarmStore, Claim, Completion } from '../../../src/chronos/store/store.ts';
import type { AlarmCreate } from '../../../src/wire/alarm.ts';
import { type Dice, diceOf } from '../../support/random/random.ts';
import { ADA, attemptOf, BOB, claim, create, everythingOf, keyOf, NOW, newId } from './fixtures.ts';
import { type OpenStore, openFor } from './store-under-test.ts';
import { FINISHED } from './turn-reports.ts';

const LIMITS = { minIntervalSeconds: 10, maxFailures: 100 };
const ROUNDS = 60;
const MINUTE = 60_000;

const pick = <T>(dice: Dice, choices: readonly T[]): T => choices[dice(choices.length)]!;

/** A body of a create: once or a series, with and without an end, a jitter and texts. */
function randomBody(dice: Dice): AlarmCreate {
  const common = {
    label: 'plants',
    wake_message: pick(dice, ['water', 'w'.repeat(3000), 'NUL \0']),
    max_lateness_seconds: pick(dice, [undefined, 900]),
  };
  if (pick(dice, [true, false])) return { ...common, kind: 'once', fire_at: NOW + MINUTE } as AlarmCreate;
  return {
    ...common,
    kind: 'cron',
    cron_expr: pick(dice, ['* * * * *', '*/7 * * * *', '30 2 * * *']),
    timezone: pick(dice, [undefined, 'Europe/Berlin']),
    jitter_seconds: pick(dice, [undefined, 5]),
    max_fires: pick(dice, [undefined, 1, 2]),
    ends_at: pick(dice, [undefined, NOW + 2000 * MINUTE]),
    catch_up: pick(dice, [undefined, 'latest', 'all', 'none']),
    catch_up_window_seconds: pick(dice, [undefined, 600]),
    overlap: pick(dice, [undefined, 'skip', 'buffer_one', 'buffer_all']),
    pause_on_failure: pick(dice, [undefined, true]),
    max_failures: pick(dice, [undefined, 1]),
  } as AlarmCreate;
}

/** What may happen to an alarm while an attempt runs. */
const MEANWHILE: Readonly<Record<string, (now: number) => Transition>> = {
  nothing: () => (state) => state,
  pause: (now) => (state) => (state.alarm.status === 'active' ? pauseAlarm(state, now) : state),
  cancel: (now) => (state) => cancelAlarm(state, now),
  trigger: (now) => (state) => (state.alarm.status === 'active' ? triggerAlarm(state, now).state : state),
  relabel: (now) => (state) => editAlarm(state, { label: 'ferns' }, now, LIMITS),
  backfill: (now) => (state) => {
    if (state.alarm.kind === 'once' || state.alarm.status !== 'active') return state;
    const occurrences = [...occurrencesBetween(state.alarm, NOW - 30 * MINUTE, NOW)];
    return addBackfill(state, { alarm: state.alarm, occurrences }, now)!.state;
  },
  endOfTurn: (now) => (state) => afterTurn(state, { ...FINISHED, outcome: 'failed' }, now),
  reschedule: (now) => (state) =>
    state.alarm.status === 'active'
      ? editAlarm(
          state,
          state.alarm.kind === 'once' ? { delay_seconds: 4000 } : { cron_expr: '*/9 * * * *' },
          now,
          LIMITS,
        )
      : state,
};

/** A completion of a claim, with and without its direct form. */
export function completion(claimed: Claim, isDirect: boolean, at: number, fails: boolean): Completion {
  const key = keyOf(claimed);
  const attempt = attemptOf(claimed, { startedAt: at, finishedAt: at + 20, ...(fails ? { outcome: 'failed' } : {}) });
  if (fails) {
    const failure = { error: 'the machine said 503', at, final: false, retryAt: () => at + 1000 };
    return { key, attempt, settle: (state) => settleFailed(state, key.fireId, failure) };
  }
  const effect = isDirect ? deliveryEffect(claimed.alarm, claimed.occurrence, at) : undefined;
  return {
    key,
    attempt,
    settle: (state) => settleDelivered(state, key.fireId, at),
    direct: effect && { claim: claimed, effect },
  };
}

const ofOwner = (text: string, owner: string) => JSON.parse(text.replaceAll(owner, 'owner')) as unknown;

/** Everything about an alarm, with the owner's name replaced, so that two owners' alarms can be compared. */
async function contentOf(store: AlarmStore, owner: string, id: string): Promise<unknown> {
  return ofOwner(JSON.stringify(await everythingOf(store, owner, id)), owner);
}

export function directContract(open: OpenStore): void {
  describe('a delivery that is written directly', () => {
    test('changes exactly what its settlement changes, whatever happens to the alarm meanwhile', async (t) => {
      const { store } = await openFor(t, open);
      const dice = diceOf(t);
      let direct = 0;
      // By chance, fewer deliveries of the first rounds can be written directly.
      for (let round = 0; round < ROUNDS || (direct <= ROUNDS && round < 3 * ROUNDS); round++) {
        const id = newId();
        const body = randomBody(dice);
        const meanwhile = pick(dice, ['nothing', 'nothing', ...Object.keys(MEANWHILE)]);
        // The same alarm of two owners: the jitter depends on the id alone.
        for (const owner of [ADA, BOB]) {
          const alarm = draftAlarm(body, { id, owner, now: NOW, limits: LIMITS });
          await create(store, { alarm, occurrence: firstOccurrence(alarm, NOW, LIMITS) });
        }
        let now = NOW;
        for (let step = 0; step < 3; step++) {
          const due = (await store.get(ADA, id))!.occurrences.map(({ dueAt }) => dueAt ?? Number.POSITIVE_INFINITY);
          now = Math.max(now, Math.min(...due));
          if (!Number.isFinite(now)) break;
          const claims = await claim(store, { now });
          const fails = pick(dice, [false, false, false, true]);
          const order = pick(dice, [true, false]);
          for (const owner of [ADA, BOB]) {
            const own = claims.filter(({ alarm }) => alarm.owner === owner);
            const change = MEANWHILE[step === 0 ? meanwhile : 'nothing']!;
            if (meanwhile !== 'nothing') await store.update(owner, id, change(now + 5));
            const isDirect = owner === ADA;
            const completions = own.map((claimed) => completion(claimed, isDirect, now + 3, fails));
            direct += completions.filter((each) => each.direct).length;
            const results = await store.complete(order ? completions : completions.toReversed());
            assert.deepEqual([...new Set(results)], own.length > 0 ? ['applied'] : []);
          }
          const [one, other] = [await contentOf(store, ADA, id), await contentOf(store, BOB, id)];
          assert.deepEqual(one, other, `round ${round}: ${JSON.stringify(body)}, ${meanwhile}`);
        }
      }
      assert.ok(direct > ROUNDS, `${direct} deliveries could be written directly`);
    });

    test('changes nothing after the claim has passed on', async (t) => {
      const { store } = await openFor(t, open);
      const { alarm } = await create(store, oneDue());
      const [claimed] = await claim(store);
      const given = completion(claimed!, true, NOW + 3, false);
      assert.deepEqual(await store.complete([given]), ['applied']);
      const content = await everythingOf(store, ADA, alarm.id);
      assert.deepEqual(await store.complete([given]), ['lost_claim']);
      assert.deepEqual(await everythingOf(store, ADA, alarm.id), content);
      assert.equal(content.attempts.length, 1);
    });
  });
}

function oneDue(): AlarmState & { occurrence: Occurrence } {
  const body = { kind: 'once', wake_message: 'water', label: 'plants', fire_at: NOW } as AlarmCreate;
  const alarm = draftAlarm(body, { id: newId(), owner: ADA, now: NOW - MINUTE, limits: LIMITS });
  const occurrence = firstOccurrence(alarm, NOW - MINUTE, LIMITS);
  return { alarm, occurrence, occurrences: [occurrence] };
}
