import assert from 'node:assert/strict';
import { test } from 'node:test';
import { ManualClock } from '../kit/clock/testing/manual-clock.ts';
import type { AlarmView, FireView } from '../wire/alarm.ts';
import type { IntentView } from '../wire/intent-view.ts';
import { beginningOfReply } from '../wire/turn-report.ts';
import { reportsNothing } from '../wire/wake.ts';
import { AlarmFeed } from './alarm-feed.ts';
import { alarmNews, questionNews, taskNews, unknownChannels } from './news.ts';

const START = Date.parse('2026-11-23T02:00:00Z');
const at = (seconds: number) => new Date(START + seconds * 1000).toISOString();

const alarmOf = (more: Partial<AlarmView> = {}): AlarmView => ({
  ...{ id: 'a-1', label: 'build', kind: 'once', wake_message: 'Look at the build.', status: 'active' },
  ...{ max_failures: 100, failure_count: 0, created_at: at(-100), fire_count: 0, in_flight: false, ...more },
});

const fireOf = (more: Partial<FireView> = {}): FireView => ({
  ...{ fire_id: 'a-1@1', scheduled_for: at(0), attempt: 1, started_at: at(0), finished_at: at(1) },
  ...{ lateness_ms: 12, outcome: 'delivered', accepted_at: at(1), ...more },
});

const newsFrom = (alarm: AlarmView, ...fires: FireView[]) =>
  alarmNews(alarm, fires).map(({ kinds, title, text }) => [kinds.join(), title, text]);

test('a fire, its reply, its failure and its replaced occurrences are notified, each to its subscribers', () => {
  const turn = { turn_id: 't', conversation_id: 'c', finished_at: at(9) };
  assert.deepEqual(newsFrom(alarmOf(), fireOf({ turn: { ...turn, ok: true, reply: 'It is green.' } })), [
    ['rings', 'Rang: build', '12 ms late\nLook at the build.'],
    ['rings', 'Done: build', 'It is green.'],
  ]);
  assert.deepEqual(newsFrom(alarmOf(), fireOf({ missed_count: 3, turn: { ...turn, ok: false, error: 'no model' } })), [
    ['rings,missed', 'Rang: build', '12 ms late, for 3 missed\nLook at the build.'],
    ['failures', 'Turn failed: build', 'no model'],
  ]);
  assert.deepEqual(newsFrom(alarmOf(), fireOf({ turn })).at(-1), [
    ...['failures', 'Outcome unknown: build', 'the outcome of the turn is not known'],
  ]);
  assert.deepEqual(newsFrom(alarmOf(), fireOf({ outcome: 'missed', error: 'it was too late' })), [
    ['missed', 'Missed: build', 'it was too late'],
  ]);
});

test('a turn that waits for an answer is notified as a question, once for each, also after a temporary failure', () => {
  const waits = (error: string) => ({ at: at(8), retry_at: at(50_000), error });
  const turn = (error: string) => ({ turn_id: 't', conversation_id: 'c', started_at: at(2), waits: waits(error) });
  const asked =
    'waits for your answer to the server "hotel": "Where\u202e to?"; answer it with: reveille neo question answer ';
  const [first, again, other, failed] = ['AAAAAAAAAAAAAAAA', 'AAAAAAAAAAAAAAAA', 'BBBBBBBBBBBBBBBB', undefined].map(
    (id) => alarmNews(alarmOf(), [fireOf({ turn: turn(id === undefined ? 'busy' : `${asked}${id}`) })]).at(-1)!,
  );
  assert.deepEqual([first!.kinds, first!.title], [['approvals'], 'Asks you: build']);
  assert.match(
    first!.text,
    /^The turn waits for your answer to the server "hotel": "Where\\u\{202e\} to\?"; .*A{16}\nWithout an answer it goes on at /,
  );
  assert.equal(again!.key, first!.key);
  assert.equal(new Set([first, other, failed].map((news) => news!.key)).size, 3);
});

test('an absence is notified at once, also to channels for what was missed', () => {
  const alarm = alarmOf({ kind: 'event', expect: { every: 'P1D' }, waits_for: '1 d without a call of its address' });
  const [absence] = alarmNews(alarm, [fireOf({ machine_ready_at: at(1) })]);
  assert.deepEqual(
    [absence!.kinds, absence!.title, absence!.waitsUntil],
    [['rings', 'missed'], 'Expected: build', undefined],
  );
  assert.match(absence!.text, /^12 ms late\nIt fires after 1 d without a call of its address\.\nLook/);
});

test('a turn with nothing to report ends the notification of its fire, and only exactly these words do', () => {
  const news = (reply: string) => {
    const turn = { turn_id: 't', conversation_id: 'c', finished_at: at(9), ok: true, reply };
    return alarmNews(alarmOf({ deliver: ['phone'] }), [fireOf({ turn })]).at(-1)!;
  };
  for (const reply of ['NOTHING_TO_REPORT', ' \nNOTHING_TO_REPORT\n']) {
    const { kinds, channels, settles } = news(reply);
    assert.deepEqual([kinds, channels, settles], [[], undefined, { key: 'rang a-1@1', isSent: false }]);
  }
  for (const reply of ['NOTHING_TO_REPORT.', 'nothing_to_report', 'Nothing. NOTHING_TO_REPORT'])
    assert.deepEqual([news(reply).title, news(reply).settles?.isSent], ['Done: build', true]);
});

test('silence hides neither missed occurrences nor the end of a longer answer', () => {
  const turn = { turn_id: 't', conversation_id: 'c', finished_at: at(9), ok: true, reply: 'NOTHING_TO_REPORT' };
  const after = alarmNews(alarmOf(), [fireOf({ missed_count: 3, turn })]).at(-1)!;
  assert.deepEqual([after.kinds, after.settles], [[], { key: 'rang a-1@1', isSent: true }]);
  for (const ok of [false, undefined]) {
    const ended = { turn_id: 't', conversation_id: 'c', finished_at: at(9), reply: 'NOTHING_TO_REPORT' };
    const failed = fireOf({ turn: ok === undefined ? ended : { ...ended, ok } });
    assert.deepEqual(alarmNews(alarmOf(), [failed]).at(-1)!.kinds, ['failures']);
  }
  assert.equal(reportsNothing(beginningOfReply(`NOTHING_TO_REPORT${' '.repeat(5000)}`)), true);
  const hidden = beginningOfReply(`NOTHING_TO_REPORT${'\n'.repeat(5000)}The disk is full.`);
  assert.equal(hidden, 'NOTHING_TO_REPORT …');
});

test('the fire of a turn that is reported waits for its end, and another one does not', () => {
  const [waiting] = alarmNews(alarmOf(), [fireOf({ machine_ready_at: at(1) })]);
  assert.equal(waiting!.waitsUntil, START + 31_000);
  const [running] = alarmNews(alarmOf(), [fireOf({ turn: { started_at: at(1) } })]);
  assert.equal(running!.waitsUntil, START + 31_000);
  assert.equal(alarmNews(alarmOf(), [fireOf()])[0]!.waitsUntil, undefined);
});

test('a result goes to the channels of its alarm, whatever it is, and an unknown channel is news', () => {
  const alarm = alarmOf({ deliver: ['phone', 'fax'] });
  const channels = (more: object) =>
    alarmNews(alarm, [fireOf({ turn: { finished_at: at(9), ...more } })]).map((one) => one.channels);
  for (const more of [{ ok: true, reply: 'x' }, { ok: false, error: 'y' }, {}])
    assert.deepEqual(channels(more), [undefined, ['phone', 'fax']]);
  const result = alarmNews(alarm, [fireOf({ turn: { finished_at: at(9), ok: true } })]).at(-1)!;
  const unknown = unknownChannels(result, ['phone', 'desk'])!;
  assert.deepEqual([unknown.kinds, unknown.title, unknown.channels], [['failures'], 'No channel "fax"', undefined]);
  assert.match(
    unknown.text,
    /names "fax" in deliver, and you have phone, desk\.\nChange it with: reveille alarm edit a-1/,
  );
  assert.equal(unknownChannels(result, ['phone', 'fax']), undefined);
});

test('a failing wake is notified once, after the retries or when it is given up', () => {
  const attempts = (count: number) =>
    Array.from({ length: count }, (_, n) =>
      fireOf({ attempt: count - n, outcome: 'failed', error: 'the router answered 503' }),
    );
  assert.deepEqual(newsFrom(alarmOf(), ...attempts(2)), []);
  const keys = new Set(alarmNews(alarmOf(), attempts(5)).map(({ key }) => key));
  assert.equal(keys.size, 1);
  const [[kinds, title, text]] = newsFrom(alarmOf({ status: 'failed' }), ...attempts(1)) as [string[]];
  assert.deepEqual([kinds, title], ['failures', 'Not delivered: build']);
  assert.match(text!, /^the router answered 503\nIt was abandoned; see: reveille alarm show a-1$/);
  const failedTurn = fireOf({ attempt: 2, turn: { finished_at: at(9), ok: false } });
  const told = newsFrom(alarmOf(), failedTurn, ...attempts(1)).map(([, title]) => title);
  assert.deepEqual(told, ['Rang: build', 'Turn failed: build']);
  const lost = fireOf({ attempt: 3, outcome: 'unknown', error: 'no answer' });
  assert.equal(newsFrom(alarmOf(), lost)[0]![1], 'Delivery unknown: build');
});

test('text of an agent or a server is shown with nothing hidden in it, and within its bounds', () => {
  const label = 'pay\u202ebob\u0007\nApprove? no';
  const [ring] = alarmNews(alarmOf({ label, wake_message: `\u200b${'x'.repeat(70_000)}` }), [fireOf()]);
  assert.equal(ring!.title, 'Rang: pay\\u{202e}bob\\u{7} Approve? no');
  assert.match(ring!.text, /^12 ms late\n\\u\{200b\}x/);
  assert.ok(ring!.text.length < 9000);
});

const intentOf = (more: Partial<IntentView>): IntentView => ({
  ...{ intent_id: 'i-1', created_at: at(0), origin: 'person', prose: 'Pay bob', nodes: [], status: 'failed', ...more },
});

test('a question names the exact call, and asked anew it is a new notification; a failed task is notified, a denied one is not', () => {
  const gate = {
    ...{ node_id: 'pay', question: 'alice 5.00 EUR', displayed_sha256: 'b'.repeat(64), expires_at: at(600) },
    call: { tool: 'ledger/transfer', args: {}, call_sha256: 'a'.repeat(64) },
  };
  const news = questionNews(intentOf({ status: 'awaiting_approval' }), gate, START);
  assert.deepEqual(news.kinds, ['approvals']);
  assert.deepEqual(news.question, {
    ...{ intent_id: 'i-1', node_id: 'pay', call_sha256: 'a'.repeat(64), displayed_sha256: 'b'.repeat(64) },
    expires_at: at(600),
  });
  assert.notEqual(questionNews(intentOf({}), { ...gate, displayed_sha256: 'c'.repeat(64) }, START).key, news.key);
  assert.equal(taskNews(intentOf({ error: { message: 'no money' } }))!.title, 'Intent failed: Pay bob');
  assert.equal(taskNews(intentOf({ status: 'denied' })), undefined);
});

test('the feed reads an alarm again when it changes or its turn continues, and nothing before its start', async () => {
  const clock = new ManualClock(START + 1000);
  let alarms = [alarmOf({ fire_count: 1, last_fired_at: at(0) }), alarmOf({ id: 'a-2', last_fired_at: at(-200_000) })];
  let fires = [fireOf()];
  const asked: string[] = [];
  const client = {
    listAlarms: () => Promise.resolve({ alarms, count: alarms.length }),
    getAlarm: (id: string) => Promise.resolve(alarms.find((alarm) => alarm.id === id)!),
    listFires: (id: string) => {
      asked.push(id);
      return Promise.resolve({ fires });
    },
  };
  const feed = new AlarmFeed({ client, clock, begunAt: START - 36_000_000, since: START });
  const look = async (...ids: string[]) => {
    const changes = { isAll: ids.length === 0, ids: new Set(ids) };
    const { news, settle } = await feed.look(changes, new AbortController().signal);
    settle();
    return news.map(({ title }) => title);
  };
  assert.deepEqual(await look(), ['Rang: build']);
  // The turn may have ended without a change of the alarm.
  assert.deepEqual([await look(), asked], [['Rang: build'], ['a-1', 'a-1']]);
  fires = [fireOf({ turn: { finished_at: at(500), ok: true } })];
  assert.deepEqual(await look('a-1'), ['Rang: build', 'Done: build']);
  await clock.advance(7_200_000);
  assert.deepEqual([await look(), asked.length], [[], 3]);
  alarms = [alarmOf({ fire_count: 2, last_fired_at: at(9000) })];
  // The ledger also has an old attempt: the record of its notification may be deleted by now.
  const latest = { started_at: at(9000), accepted_at: at(9000), finished_at: at(9001) };
  const before = { started_at: at(-9000), accepted_at: at(-9000), finished_at: at(-8999) };
  fires = [fireOf({ fire_id: 'a-1@2', ...latest }), fireOf({ fire_id: 'a-1@1', ...before })];
  assert.deepEqual(await look(), ['Rang: build']);
});
