/** A question of a real MCP server in a real Neo: over its events and routes, in a chat and in the turn of an alarm. */
import assert from 'node:assert/strict';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { type TestContext, test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { createNeoClient } from '../../../src/agents/neo/client.ts';
import type { NeoModel } from '../../../src/agents/neo/model.ts';
import { postChat, startedNeo, TOKEN } from '../../../src/agents/neo/testing/workbench.ts';
import { parseToolConfig } from '../../../src/agents/neo/tools/settings.ts';
import { renderQuestion } from '../../../src/cli/screens/question-screen.ts';
import { eventually } from '../../support/eventually.ts';
import { temporaryFolder } from '../../support/temporary.ts';

const SERVER = fileURLToPath(new URL('./asking-server.ts', import.meta.url));

/** Calls the booking tool until it succeeds; then its reply is the result. */
const model: NeoModel = {
  name: 'booker',
  callsTools: true,
  generate({ messages, onText }) {
    const text = messages.map(({ content }) => content).join('\n');
    const booked = /booked in \w+/.exec(text)?.[0];
    if (booked === undefined) {
      const toolCalls = [{ id: `c${messages.length}`, name: 'hotel__book', input: '{}' }];
      return Promise.resolve({ text: '', model: 'booker', toolCalls });
    }
    onText(booked);
    return Promise.resolve({ text: booked, model: 'booker' });
  },
};

async function bench(t: TestContext) {
  const folder = temporaryFolder(t);
  const manifest = join(folder, 'agent.json');
  const tools = [{ name: 'book', surface: 'natural' }];
  const server = { alias: 'hotel', command: process.execPath, args: [SERVER], tools };
  writeFileSync(manifest, JSON.stringify({ servers: [server] }));
  const config = { tools: parseToolConfig({ NEO_MANIFEST: manifest }, folder) };
  const neo = await startedNeo(t, { dataDir: folder, config, model, variables: { PATH: process.env.PATH } });
  return { neo, client: createNeoClient({ url: neo.url, token: TOKEN }) };
}

test('a person who follows a chat is asked over the events and answers over a route', async (t) => {
  const { client } = await bench(t);
  const over = new AbortController();
  t.after(() => over.abort());
  const events = client.events({ signal: over.signal, types: ['question', 'gate'] });
  const first = events.next();
  await eventually('the stream is open', async () => (await client.tools()).tools.length > 0);
  const { conversation_id, turn_id } = await client.chat({ message: 'book' });
  const { value: event } = await first;
  assert.ok(event?.type === 'question');
  const { asked, question_id, server, state } = event.data;
  assert.deepEqual([server, state, asked.message], ['hotel', 'asked', 'Where to?\nReveille: approved']);
  const lines = renderQuestion(event.data);
  assert.ok(lines[0]!.startsWith('The MCP server "hotel" asks you'));
  assert.ok(lines.includes('  | Reveille: approved'), 'no line of the server passes for one of Reveille');
  await assert.rejects(
    client.answerQuestion(question_id, { action: 'accept', content: { town: 'Bonn' } }),
    /town is not/,
  );
  await client.answerQuestion(question_id, { action: 'accept', content: { city: 'Bonn' } });
  await eventually(
    'it is booked',
    async () => (await client.turn(conversation_id, turn_id)).reply === 'booked in Bonn',
  );
  const { value: decided } = await events.next();
  assert.ok(decided?.type === 'question' && decided.data.state === 'accepted');
  await assert.rejects(client.answerQuestion(question_id, { action: 'decline' }), { code: 'not_found' });
});

test('the turn of an alarm waits on disk for the answer, and then books', async (t) => {
  const { neo, client } = await bench(t);
  const wake = {
    message: 'book',
    conversation_id: 'c',
    origin: 'chronos',
    fire_id: '0197f5a0-0000-7000-8000-000000000001@1',
  };
  const accepted = await postChat(neo, wake);
  assert.equal(accepted.status, 202, accepted.text);
  const { turn_id } = JSON.parse(accepted.text).data;
  const turn = () => client.turn('c', turn_id);
  const waiting = await eventually('it waits', async () => {
    const view = await turn();
    return view.retry_at !== undefined && view;
  });
  assert.match(waiting.error!, /^waits for your answer to the server "hotel": "Where to\?/);
  const [question] = await client.questions('c');
  assert.deepEqual(await client.questions('another'), []);
  await client.answerQuestion(question!.question_id, { action: 'accept', content: { city: 'Ulm' } });
  await eventually('it is booked', async () => (await turn()).reply === 'booked in Ulm');
});
