/** A model that gives a time in words, reads how it was understood, and corrects itself. */
import assert from 'node:assert/strict';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { calling, type EndpointMessage, type Script, saying } from '../../src/kit/model/testing/model-endpoint.ts';
import type { AlarmView } from '../../src/wire/alarm.ts';
import { startInstallation } from '../system/console/bench.ts';

const MESSAGE = 'Remind the user to call Ann.';
const SET = 'chronos__alarm_set';

/** The hour of an instant in Tokyo, which has no daylight saving time. */
const hourInTokyo = (instant: string) => (new Date(instant).getUTCHours() + 9) % 24;

/** The first of the choices in a refusal, as the model copies it. */
const choiceIn = (refusal: string) => /write \\?"([^"\\]+)\\?"/.exec(refusal)?.[1];

/** Calls once for each result that it has seen in this turn: an ambiguous time, a wrong choice, the correction. */
const model: Script = (response, request) => {
  const { messages } = request.body;
  const asked = messages.findLastIndex(({ role }) => role === 'user');
  const results = messages.slice(asked).filter(({ role }) => role === 'tool');
  const last = results.at(-1)?.content ?? '';
  const id = /"id":\s*"([0-9a-f-]{36})"/.exec(last)?.[1];
  const next = /"next":\s*\[\s*"([^"]+)"/.exec(last)?.[1];
  if (!messages[asked]?.content.includes('call Ann')) return saying('Yes.')(response, request);
  if (results.length === 0)
    return calling({ name: SET, args: { wake_message: MESSAGE, when: 'tomorrow at 7' } })(response, request);
  const choice = choiceIn(last);
  if (id === undefined && choice !== undefined)
    return calling({ name: SET, args: { wake_message: MESSAGE, when: choice } })(response, request);
  if (id !== undefined && next !== undefined && hourInTokyo(next) !== 19)
    return calling({ name: SET, args: { alarm_id: id, when: 'tomorrow at 19:00' } })(response, request);
  return saying(`It fires ${next}.`)(response, request);
};

test('a model copies a choice, sees that the reading is wrong, and corrects the same alarm', async (t) => {
  const seen: EndpointMessage[][] = [];
  const script: Script = (response, request) => {
    seen.push(request.body.messages);
    return model(response, request);
  };
  const { home, reveille } = await startInstallation(t, script, {
    // A sandbox hides temporary folders, and so this profile.
    ...{ REVEILLE_PROFILE: '~/profile.yaml', REVEILLE_SEPARATION: 'off' },
  });
  // The computer is in Europe/Berlin; the user is not.
  writeFileSync(join(home, 'profile.yaml'), 'chronometric:\n  timezone: Asia/Tokyo\n');

  const said = await reveille('chat', 'Tomorrow at 7 in the evening, remind me to call Ann.');
  assert.match(said, /It fires \d{4}-/);
  const results = seen
    .reduce((longest, messages) => (messages.length > longest.length ? messages : longest))
    .filter(({ role }) => role === 'tool')
    .map(({ content }) => content);
  assert.equal(results.length, 3, results.join('\n'));
  const [refused, wrong, corrected] = results as [string, string, string];
  assert.match(refused, /can be two times/);
  assert.match(refused, /tomorrow at 7:00/);
  assert.match(refused, /tomorrow at 19:00/);
  for (const result of [wrong, corrected]) {
    assert.match(result, /"reading":/);
    assert.match(result, /"timezone":\s*"Asia\/Tokyo"/);
  }
  const lines = (await reveille('alarm', 'list', '--json', '--all')).trim().split('\n');
  const alarms = lines.map((line) => JSON.parse(line) as AlarmView);
  const own = alarms.filter(({ wake_message: message }) => message === MESSAGE);
  assert.deepEqual(
    own.map(({ when, status, next_fire_at: at }) => [when, status, hourInTokyo(at!)]),
    [['tomorrow at 19:00', 'active', 19]],
  );
});
