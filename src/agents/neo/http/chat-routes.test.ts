import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { test } from 'node:test';
import fc from 'fast-check';
import { anyCharacter } from '../../../../test/support/random/characters.ts';
import { temporaryFolder } from '../../../../test/support/temporary.ts';
import { type Clock, systemClock } from '../../../kit/clock/clock.ts';
import { ALARM_ID, wakeBody } from '../../../turns/testing/wakes.ts';
import { WAKE_BODY_MAX_BYTES } from '../../../wire/wake.ts';
import {
  accepted,
  ask,
  dataOf,
  errorOf,
  pausedModel,
  postChat,
  settledTurns,
  startedNeo,
  turnsOf,
} from '../testing/workbench.ts';

const DUE = Date.UTC(2026, 5, 15, 8, 10);

test('a wake is accepted, runs, and answers from what it was given', async (t) => {
  const neo = await startedNeo(t);
  const answer = await postChat(neo, wakeBody(DUE, { conversation_id: 'c1', label: 'Airdrop', payload: { n: 1 } }));
  assert.equal(answer.status, 202);
  const { turn_id, ...rest } = dataOf(answer);
  assert.deepEqual(rest, { conversation_id: 'c1', deduped: false });
  const [turn] = await settledTurns(neo, 'c1');
  assert.ok(turn);
  const { created_at, started_at, finished_at, reply, ...shown } = turn;
  assert.deepEqual(shown, {
    id: turn_id,
    conversation_id: 'c1',
    origin: 'chronos',
    alarm_id: ALARM_ID,
    fire_id: `${ALARM_ID}@${DUE}`,
    scheduled_for: '2026-06-15T08:10:00.000Z',
    missed_count: 0,
    label: 'Airdrop',
    message: 'Resume the airdrop: holder 240 of 512.',
    payload: { n: 1 },
    status: 'done',
    model: 'offline',
    attempts: 1,
  });
  assert.match(reply ?? '', /offline model.*\n.*timer woke me.*"Airdrop".*\n.*"Resume the airdrop/);
  assert.ok(created_at <= started_at! && started_at! <= finished_at!);
});

test('a repeated wake answers 200 with the same turn and runs nothing, in one instant and after a restart', async (t) => {
  const dataDir = temporaryFolder(t);
  const model = pausedModel();
  const neo = await startedNeo(t, { dataDir, model });
  const body = wakeBody(DUE);
  const answers = await Promise.all(Array.from({ length: 20 }, () => postChat(neo, body)));
  assert.deepEqual(answers.map(({ status }) => status).sort(), [...Array(19).fill(200), 202]);
  const first = dataOf(answers.find(({ status }) => status === 202)!);
  for (const answer of answers.filter(({ status }) => status === 200)) {
    assert.deepEqual(dataOf(answer), { ...first, deduped: true });
  }
  (await model.next()).answer('once');
  await settledTurns(neo, first.conversation_id);
  await neo.close();

  const again = await startedNeo(t, { dataDir, model });
  const late = await postChat(again, { ...body, message: 'edited since' });
  assert.equal(late.status, 200);
  assert.deepEqual(dataOf(late), { ...first, deduped: true });
  const turns = await turnsOf(again, first.conversation_id);
  assert.deepEqual([turns.length, turns[0]?.reply, model.held.length], [1, 'once', 1]);
});

/** JSON source text as senders write it: any spacing, big and odd numbers, repeated keys, escapes of every kind. */
const jsonText = fc.letrec<{ value: string }>((tie) => {
  const space = fc.constantFrom('', ' ', '\n', '\t ', '\r\n');
  const string = fc.oneof(
    fc.string({ unit: anyCharacter }).map((text) => JSON.stringify(text)),
    fc.constantFrom('"\\u0041"', '"\\/"', '"\\ud83d"', '"𝒳"', '"\u007f\u2028"'),
  );
  const number = fc.oneof(
    fc.constantFrom('12345678901234567890', '1.0', '1e400', '-0', '1E+2', '0.10', '1e-999'),
    fc.bigInt().map(String),
    fc.double({ noNaN: true, noDefaultInfinity: true }).map((value) => JSON.stringify(value)),
  );
  const inside = fc.tuple(space, tie('value'), space).map((parts) => parts.join(''));
  const key = fc.oneof(string, fc.constantFrom('"a"', '"__proto__"', '"1"'));
  const array = fc.array(inside, { maxLength: 4 }).map((items) => `[${items.join(',')}]`);
  const object = fc
    .array(fc.tuple(space, key, space, inside), { maxLength: 4 })
    .map((members) => `{${members.map(([a, name, b, value]) => `${a}${name}${b}:${value}`).join(',')}}`);
  return { value: fc.oneof({ maxDepth: 4 }, fc.constantFrom('null', 'true'), number, string, array, object) };
}).value;

test('message and payload are returned byte for byte', async (t) => {
  const neo = await startedNeo(t);
  const message = fc
    .oneof(
      fc.string({ unit: anyCharacter }),
      fc.string({ unit: 'grapheme' }),
      fc.constantFrom(' ', '\0', '\u0001\u001b[2J \t', '\r\n  '),
    )
    .filter((text) => text !== '' && text.isWellFormed());
  await fc.assert(
    fc.asyncProperty(message, jsonText, fc.boolean(), async (text, payload, woken) => {
      const members = woken
        ? wakeBody(DUE, { message: text }, randomUUID())
        : ({ message: text } as Record<string, unknown>);
      const body = `${JSON.stringify(members).slice(0, -1)}, "payload" : ${payload} }`;
      const { conversation_id } = await accepted(neo, body);
      const shown = await ask(neo, `/conversations/${conversation_id}`);
      assert.ok(shown.text.includes(`"payload":${payload},"status"`), shown.text);
      const [turn] = await turnsOf(neo, conversation_id);
      assert.deepEqual(Buffer.from(turn!.message), Buffer.from(text));
    }),
    { numRuns: 150 },
  );
});

test('after a restart the file contains exactly the sent values', async (t) => {
  const dataDir = temporaryFolder(t);
  const neo = await startedNeo(t, { dataDir });
  const message = `\0\u0001 مرحبا 你好 𝒳\u202e\r\n${String.fromCharCode(127)}   `;
  const payload = '{ "n":12345678901234567890,"f":1.0,"big":1e400 , "n":2 }';
  const body = `{"message":${JSON.stringify(message)},"conversation_id":"c","payload":${payload}}`;
  await accepted(neo, body);
  await settledTurns(neo, 'c');
  await neo.close();
  const again = await startedNeo(t, { dataDir });
  const { text } = await ask(again, '/conversations/c');
  assert.ok(text.includes(`"payload":${payload},`));
  assert.equal((await turnsOf(again, 'c'))[0]?.message, message);
});

test('a payload of null is a payload, and no payload is none', async (t) => {
  const neo = await startedNeo(t);
  await accepted(neo, '{"message":"x","conversation_id":"c","payload":null}');
  await accepted(neo, '{"message":"y","conversation_id":"c"}');
  const [first, second] = await turnsOf(neo, 'c');
  assert.equal(first!.payload, null);
  assert.ok(!('payload' in second!));
});

test('a marked message without a fire id is one turn within a day: in one millisecond, after a restart and a day later', async (t) => {
  const dataDir = temporaryFolder(t);
  let shiftMs = 0;
  const after: Clock['after'] = (ms, callback) => systemClock.after(ms, callback);
  const clock: Clock = { after, now: () => systemClock.now() + shiftMs, monotonic: () => systemClock.monotonic() };
  const neo = await startedNeo(t, { dataDir, clock });
  const body = '{"message":"Resume","conversation_id":"c"}';
  const marked = { 'x-matrix-user': 'ada', 'x-matrix-wake-origin': 'chronos', 'x-matrix-wake-alarm': 'alarm_xyz789' };
  const answers = await Promise.all(Array.from({ length: 8 }, () => postChat(neo, body, marked)));
  assert.deepEqual(answers.map(({ status }) => status).sort(), [...Array(7).fill(200), 202]);
  await settledTurns(neo, 'c');
  await neo.close();

  shiftMs += 23 * 3_600_000;
  const again = await startedNeo(t, { dataDir, clock });
  assert.equal((await postChat(again, body, marked)).status, 200);
  assert.equal((await postChat(again, body, { ...marked, 'x-matrix-wake-alarm': 'other' })).status, 202);
  assert.equal((await postChat(again, body, { ...marked, 'idempotency-key': 'k' })).status, 202);
  assert.equal(
    (await postChat(again, body.replace('Resume', 'resume'), { ...marked, 'idempotency-key': 'k' })).status,
    200,
  );
  shiftMs += 3_600_000;
  assert.equal((await postChat(again, body, marked)).status, 202);
  const turns = await turnsOf(again, 'c');
  assert.deepEqual(
    turns.map(({ origin, alarm_id }) => [origin, alarm_id]),
    ['alarm_xyz789', 'other', 'alarm_xyz789', 'alarm_xyz789'].map((alarm) => ['chronos', alarm]),
  );
  assert.ok(turns.every(({ fire_id }) => /^wake-[0-9a-f]{32}@\d{13}$/.test(fire_id!)));
});

test("a person's repeated message is two turns", async (t) => {
  const neo = await startedNeo(t);
  const body = '{"message":"yes","conversation_id":"c"}';
  for (let count = 0; count < 2; count++)
    assert.equal((await postChat(neo, body, { 'x-matrix-user': 'ada' })).status, 202);
  assert.deepEqual(
    (await turnsOf(neo, 'c')).map(({ origin }) => origin),
    ['user', 'user'],
  );
});

test('bad bodies are refused with the field and the remedy, and leave nothing behind', async (t) => {
  const neo = await startedNeo(t);
  const wake = wakeBody(DUE);
  const cases: [unknown, RegExp][] = [
    ['{"message":', /the body must be a JSON object/],
    ['[]', /the body must be a JSON object \(got an array\)/],
    [{}, /message is required/],
    [{ message: '' }, /message must not be empty/],
    [{ message: 7 }, /message must be a string \(got 7\)/],
    ['{"message":"\\ud83d"}', /message must be well-formed Unicode/],
    [{ message: 'x', mesage: 'y' }, /unknown field "mesage"; allowed here: message, /],
    [{ message: 'x', conversation_id: 'a b' }, /conversation_id must be 1 to 128/],
    [{ message: 'x', missed_count: 1 }, /missed_count goes only with origin "chronos"/],
    [{ ...wake, fire_id: 'a b' }, /fire_id must be 1 to 128 visible ASCII/],
    [{ ...wake, origin: 'me' }, /origin must be "chronos"/],
    [{ ...wake, scheduled_for: 'yesterday' }, /scheduled_for must be an RFC 3339 instant/],
    [{ ...wake, missed_count: -1 }, /missed_count must be at least 0/],
    [{ ...wake, attempt: 1 }, /unknown field "attempt"/],
  ];
  for (const [body, message] of cases) {
    const error = errorOf(await postChat(neo, body as string | object));
    assert.deepEqual([error.status, error.code], [400, 'invalid_request']);
    assert.match(error.message, message);
  }
  const large = errorOf(await postChat(neo, { message: 'x'.repeat(WAKE_BODY_MAX_BYTES + 1) }));
  assert.equal(large.status, 413);
  const header = await postChat(neo, wake, { 'x-matrix-wake-fire': `${ALARM_ID}@2` });
  assert.match(errorOf(header).message, /^x-matrix-wake-fire must agree with fire_id in the body/);
  assert.deepEqual(dataOf(await ask(neo, '/conversations')), { conversations: [] });
});

test('the largest wake that chronosd can send is accepted', async (t) => {
  const neo = await startedNeo(t);
  const message = '\u0001'.repeat(32 * 1024);
  const payload = 'p'.repeat(63 * 1024);
  const answer = await postChat(neo, wakeBody(DUE, { message, payload, label: 'l'.repeat(200) }));
  assert.equal(answer.status, 202, answer.text);
});
