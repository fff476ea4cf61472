/** A day with every kind of event and without a broken promise: the checker must find no violation. */
import type { AlarmStore } from '../../../src/chronos/store/store.ts';
import { Day } from './day.ts';
import type { ClientRecorder, ReceiverRecorder } from './journal.ts';

const SECOND = 1000;
const MINUTE = 60 * SECOND;

/** The alarms of the day, by their events. */
export type DaysAlarms = Readonly<
  Record<
    | 'plain'
    | 'refused'
    | 'duplicated'
    | 'interrupted'
    | 'series'
    | 'jittered'
    | 'cancelled'
    | 'inFlight'
    | 'repeated'
    | 'redriven'
    | 'exhausted'
    | 'missed'
    | 'bounded'
    | 'gone'
    | 'held'
    | 'retrying'
    | 'later',
    string
  >
>;

/**
 * Runs the day on an empty store.
 *
 * @returns its alarms, and the end of the day by the store's clock: one claim is still open then, one retry waits
 */
export async function liveThrough(
  store: AlarmStore,
  client: ClientRecorder,
  receiver: ReceiverRecorder,
): Promise<{ alarms: DaysAlarms; endsAt: number }> {
  const day = new Day(store, client, receiver);
  const once = (seconds: number, more: object = {}) => ({ kind: 'once', delay_seconds: seconds, ...more });

  const plain = await day.set('ada', once(30, { idempotency_key: 'plants', wake_message: 'water the plants \u0007 ' }));
  const payload = '{"n":12345678901234567890,"1":1.0,"text":"späti\\u0000"}';
  await day.set('bob', once(31, { conversation_id: 'kitchen', payload, wake_message: 'the bread — now' }));
  const refused = await day.set('ada', once(32, { idempotency_key: 'stubborn', conversation_id: 'garden' }));
  day.receptions.set(refused, ['busy', 'busy']);
  const duplicated = await day.set('ada', once(33, { idempotency_key: 'echo' }));
  day.receptions.set(duplicated, ['loses answer']);
  const interrupted = await day.set('bob', once(34, { idempotency_key: 'cut off' }));
  day.receptions.set(interrupted, ['unsent', 'sender dies']);
  const exhausted = await day.set('ada', once(35, { max_failures: 2, idempotency_key: 'in vain' }));
  day.receptions.set(exhausted, ['busy', 'busy']);
  const redriven = await day.set('ada', once(36, { max_failures: 1, idempotency_key: 'once more' }));
  day.receptions.set(redriven, ['busy']);
  const gone = await day.set('bob', once(37, { idempotency_key: 'moved out' }));
  day.receptions.set(gone, ['gone']);

  const series = await day.set('ada', {
    kind: 'cron',
    cron_expr: '*/5 * * * *',
    timezone: 'Europe/Berlin',
    idempotency_key: 'breaks',
    wake_message: 'take a break',
  });
  const jittered = await day.set('bob', { kind: 'cron', cron_expr: '@every 7m', jitter_seconds: 90 });
  const bounded = await day.set('bob', { kind: 'cron', cron_expr: '*/10 * * * *', max_fires: 2 });
  const held = await day.set('ada', { kind: 'cron', cron_expr: '*/6 * * * *', idempotency_key: 'held back' });

  const repeated = await day.set('ada', once(300, { idempotency_key: 'unsure' }), { loss: 'stored' });
  await day.set('ada', once(300, { idempotency_key: 'unsure' }));
  await day.set('ada', once(300, { idempotency_key: 'never' }), { loss: 'not stored' });
  await day.set('ada', once(301, { wake_message: 'without a key' }), { loss: 'stored' });
  await day.set('ada', once(300, { idempotency_key: 'plants' }));

  const cancelled = await day.set('ada', once(60, { idempotency_key: 'changed my mind' }));
  await day.cancel('ada', cancelled);
  await day.set('ada', once(90, { idempotency_key: 'changed my mind' }));
  const missed = await day.set('ada', once(40 * 60, { max_lateness_seconds: 60, idempotency_key: 'now or never' }));
  const edited = await day.set('bob', once(120, { wake_message: 'the first draft' }));
  await day.update('bob', edited, { wake_message: 'the second draft', payload: 'true' });

  await day.intrude('bob', plain);
  await day.list('bob', plain);
  await day.intrude('mallory', series);

  await day.pass(10 * MINUTE);
  await day.redrive('ada', redriven);
  await day.trigger('ada', series);
  await day.read('ada', series);
  await day.pass(5 * MINUTE);
  await day.pause('ada', held);
  await day.pass(15 * MINUTE);
  await day.resume('ada', held);

  // No dispatcher runs for a while: series run once for their missed occurrences, and occurrences past their maximum
  // lateness are dropped.
  day.sleep(33 * MINUTE);
  await day.pass(11 * MINUTE);

  const inFlight = await day.set('ada', once(2, { idempotency_key: 'too late to stop' }));
  day.sleep(2 * SECOND);
  const claims = await day.claim();
  await day.cancel('ada', inFlight);
  for (const claim of claims) await day.deliver(claim);

  const later = await day.set('ada', once(3600, { idempotency_key: 'much later' }));
  const retrying = await day.set('bob', once(1, { idempotency_key: 'not yet' }));
  day.receptions.set(retrying, ['busy']);
  await day.pass(2 * SECOND);
  await day.set('bob', once(1, { wake_message: 'held as the day ends' }));
  day.sleep(2 * SECOND);
  await day.claim();

  const alarms = {
    plain,
    refused,
    duplicated,
    interrupted,
    series,
    jittered,
    cancelled,
    inFlight,
    repeated,
    redriven,
    exhausted,
    missed,
    bounded,
    gone,
    held,
    retrying,
    later,
  };
  return { alarms, endsAt: day.now };
}
