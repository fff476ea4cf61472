/** Another agent asks a real Neo through a real router: the turn says who asked, is answered once, and is not learned. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { neoChild } from '../../../src/agents/neo/testing/neo-child.ts';
import { TOKEN } from '../../../src/agents/neo/testing/workbench.ts';
import { temporaryFolder } from '../../support/temporary.ts';
import { openA2aBench, textMessage } from './bench.ts';

test('Neo answers another agent, and shows who asked', async (t) => {
  const neo = await neoChild(temporaryFolder(t));
  t.after(() => neo.end('SIGTERM'));
  const bench = await openA2aBench(t);
  await bench.router.put('ada', { provider: 'http', spec: { url: neo.url }, token: TOKEN });
  const message = textMessage('Are you there?', { contextId: 'greeting' });
  const { json } = await bench.rest('POST', '/message:send', message);
  assert.equal(json.task.status.state, 'TASK_STATE_COMPLETED');
  const [{ parts }] = json.task.artifacts;
  assert.match(parts[0].text, /Another agent, "the agent \(client [0-9a-f]{12}\)", wrote to me/);
  assert.match(parts[0].text, /^The message: "Another agent sent this over A2A/m);
  assert.doesNotMatch(parts[0].text, /A timer woke me|A person wrote/);

  // The same turn, as the user sees it.
  const headers = { authorization: `Bearer ${bench.tokens.ada}` };
  const read = async (path: string) =>
    ((await (await fetch(`${bench.url}${path}`, { headers })).json()) as { data: never }).data;
  const { conversations } = (await read('/conversations')) as { conversations: { id: string; turn_count: number }[] };
  assert.equal(conversations.length, 1);
  const { turns } = (await read(`/conversations/${conversations[0]!.id}`)) as {
    turns: { sent_by: string; origin: string }[];
  };
  assert.match(turns[0]!.sent_by, /^the agent \(client /);

  await bench.restart();
  const again = await bench.rest('POST', '/message:send', message);
  assert.equal(again.json.task.id, json.task.id);
  const second = await bench.rest('POST', '/message:send', textMessage('And now?', { contextId: 'greeting' }));
  assert.equal(second.json.task.status.state, 'TASK_STATE_COMPLETED');
  const [one] = ((await read('/conversations')) as { conversations: { turn_count: number }[] }).conversations;
  assert.equal(one!.turn_count, 2);

  const stream = await bench.rest('POST', '/message:stream', textMessage('And in a stream?'));
  assert.match(stream.text, /"artifactUpdate"/);
  assert.match(stream.text, /TASK_STATE_COMPLETED/);
});
