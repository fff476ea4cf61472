/** A router as client of its own A2A server: the alarm of one user asks the agent of another. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { eventually } from '../../support/eventually.ts';
import { openA2aBench } from './bench.ts';

test('a machine of the preset a2a is the agent of another user', async (t) => {
  const bench = await openA2aBench(t);
  bench.ada.replyTo = ({ body }) => `ada heard ${/resume the work/.test(body.message)}`;
  const spec = { preset: 'a2a', url: `${bench.url}/a2a` };
  await bench.router.put('carol', { provider: 'command', spec, token: bench.tokens.ada });
  const { status, text } = await bench.router.wake('carol');
  assert.equal(status, 202, text);
  const turn = await eventually('the turn has ended', async () => {
    const answer = await bench.router.admin('GET', '/carol/turns');
    const { turns } = answer.json.data as unknown as { turns: { status: string; reply?: string; error?: string }[] };
    return turns[0] !== undefined && turns[0].status !== 'queued' && turns[0].status !== 'running' && turns[0];
  });
  assert.equal(turn.status, 'done', turn.error);
  assert.equal(turn.reply, 'ada heard true');
  assert.equal(bench.ada.turns.length, 1);
});
