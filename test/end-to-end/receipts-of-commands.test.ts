import assert from 'node:assert/strict';
import { realpathSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { type TestContext, test } from 'node:test';
import { behave, installAgent } from '../support/stand-ins/agents/executable.ts';
import { temporaryFolder } from '../support/temporary.ts';
import { assertInOrder, openReceiptHouse, USER } from './receipt-house.ts';

async function openWithClaude(t: TestContext) {
  const home = realpathSync(temporaryFolder(t));
  installAgent(join(home, 'bin'), 'claude');
  const house = await openReceiptHouse(t, { PATH: `${join(home, 'bin')}:/usr/bin:/bin`, HOME: home });
  await house.put(USER, { provider: 'command', spec: { preset: 'claude', cwd: house.work } });
  return { house, home };
}

test('the turn of an agent without a daemon is reported by the router: done, failed, or not to be found out', async (t) => {
  const { house, home } = await openWithClaude(t);
  const done = await house.finished(await house.ring());
  assert.equal(done.turn?.ok, true);
  assert.equal(done.turn.error, undefined);
  assert.ok(done.turn.started_at && done.turn.turn_id && done.turn.conversation_id);
  // It has no daemon that could be ready.
  assert.equal(done.machine_ready_at, undefined);
  assertInOrder(done);

  behave(home, { mode: 'says', code: 1, text: 'the credit is used up' });
  const failed = await house.finished(await house.ring());
  assert.equal(failed.turn?.ok, false);
  assert.match(failed.turn.error ?? '', /exit code 1/);

  behave(home, { mode: 'garbage' });
  const unknown = await house.finished(await house.ring());
  assert.equal(unknown.turn?.ok, undefined);
  assert.ok(unknown.turn?.finished_at);
  assert.match(unknown.turn.error ?? '', /cannot be parsed/);

  const metrics = await (await fetch(`${house.chronosUrl}/metrics`)).text();
  for (const outcome of ['ok', 'failed', 'unknown'])
    assert.match(metrics, new RegExp(`^chronos_turns_total\\{outcome="${outcome}"\\} 1$`, 'm'));
});

test('what chronosd could not take while a turn ended is told when it is back', async (t) => {
  const { house, home } = await openWithClaude(t);
  behave(home, { mode: 'wait' });
  const id = await house.ring();
  await house.fire(id, 'the wake is accepted', ({ reached }) => reached !== undefined);
  await house.closeChronos();
  writeFileSync(join(home, 'go'), '');
  await house.openChronos();
  assert.equal((await house.finished(id)).turn?.ok, true);
});
