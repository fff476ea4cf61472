import assert from 'node:assert/strict';
import { realpathSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { type TestContext, test } from 'node:test';
import { behave, installAgent } from '../support/stand-ins/agents/executable.ts';
import { temporaryFolder } from '../support/temporary.ts';
import { assertInOrder, openChronosdWithRouter, USER } from './chronosd-with-router.ts';

async function openWithClaude(t: TestContext) {
  const home = realpathSync(temporaryFolder(t));
  installAgent(join(home, 'bin'), 'claude');
  const daemons = await openChronosdWithRouter(t, { PATH: `${join(home, 'bin')}:/usr/bin:/bin`, HOME: home });
  await daemons.put(USER, { provider: 'command', spec: { preset: 'claude', cwd: daemons.work } });
  return { house: daemons, home };
}

test('the router reports the turn of an agent without a daemon: done, failed, or unknown', async (t) => {
  const { house: daemons, home } = await openWithClaude(t);
  const done = await daemons.finished(await daemons.setAlarm());
  assert.equal(done.turn?.ok, true);
  assert.equal(done.turn.error, undefined);
  assert.ok(done.turn.started_at && done.turn.turn_id && done.turn.conversation_id);
  // It has no daemon that could be ready.
  assert.equal(done.machine_ready_at, undefined);
  assertInOrder(done);

  behave(home, { mode: 'says', code: 1, text: 'the credit is used up' });
  const failed = await daemons.finished(await daemons.setAlarm());
  assert.equal(failed.turn?.ok, false);
  assert.match(failed.turn.error ?? '', /exit code 1/);

  behave(home, { mode: 'garbage' });
  const unknown = await daemons.finished(await daemons.setAlarm());
  assert.equal(unknown.turn?.ok, undefined);
  assert.ok(unknown.turn?.finished_at);
  assert.match(unknown.turn.error ?? '', /cannot be parsed/);

  const metrics = await (await fetch(`${daemons.chronosUrl}/metrics`)).text();
  for (const outcome of ['ok', 'failed', 'unknown'])
    assert.match(metrics, new RegExp(`^chronos_turns_total\\{outcome="${outcome}"\\} 1$`, 'm'));
});

test('a turn report that chronosd could not accept is sent when chronosd is back', async (t) => {
  const { house: daemons, home } = await openWithClaude(t);
  behave(home, { mode: 'wait' });
  const id = await daemons.setAlarm();
  await daemons.fire(id, 'the wake is accepted', ({ reached }) => reached !== undefined);
  await daemons.closeChronos();
  writeFileSync(join(home, 'go'), '');
  await daemons.openChronos();
  assert.equal((await daemons.finished(id)).turn?.ok, true);
});
