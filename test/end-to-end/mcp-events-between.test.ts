/** Alarms of one installation that wait for the events of another one, by poll and by webhook. */
import assert from 'node:assert/strict';
import { writeFileSync } from 'node:fs';
import { createServer } from 'node:http';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import { test } from 'node:test';
import { eventsOf, fixtureMachine } from '../../src/router/testing/bench.ts';
import { eventually } from '../support/eventually.ts';
import { listening } from '../support/temporary.ts';
import { openEventsBench } from '../system/mcp-events/mcp-events-bench.ts';
import { openChronosdWithRouter, USER } from './chronosd-with-router.ts';

for (const delivery of ['poll', 'webhook'] as const)
  test(`a due alarm of one installation wakes the agent of another (${delivery})`, async (t) => {
    const front = createServer(async (request, response) => {
      const body = await text(request);
      const { 'content-length': _, host: __, connection: ___, ...headers } = request.headers as Record<string, string>;
      const answer = await fetch(new URL(request.url!, daemons.chronosUrl), { method: 'POST', headers, body });
      response.writeHead(answer.status, { 'content-type': 'application/json' }).end(await answer.text());
    });
    const address = await listening(t, front);
    const other = await openEventsBench(t, { ROUTER_MCP_CALLBACK_ALLOW: new URL(address).host });
    const daemons = await openChronosdWithRouter(t, process.env, { CHRONOS_PUBLIC_URL: address });
    const manifest = join(daemons.folder, 'agent.json');
    const headers = { Authorization: `Bearer \${DESK_TOKEN}` };
    const servers = [{ alias: 'desk', transport: 'http', url: other.resource('chronos'), headers }];
    writeFileSync(
      manifest,
      JSON.stringify({ schema_version: '1', agent: 'a', allowed_side_effects: ['read'], servers }),
    );
    const env = { NEO_MANIFEST: manifest, DESK_TOKEN: await other.token() };
    await daemons.put(USER, fixtureMachine(daemons.work, undefined, {}, env));
    await daemons.client().createAlarm({
      wake_message: 'answer',
      event: {
        ...{ source: 'mcp', server: 'desk', name: 'alarm.due', repeat: 'always', delivery },
        ...(delivery === 'poll' && { look_every: 'PT1S' }),
      } as never,
    });
    const woken = () =>
      eventsOf(daemons.work, 'chat').flatMap(({ body }) => {
        const { payload } = JSON.parse(Buffer.from(body!, 'base64').toString());
        return (payload.events as { data: { eventId: string } }[]).map(({ data }) => data.eventId);
      });
    // Delivery succeeds once the subscription exists.
    await eventually('the other one delivers', async () => (await other.wake('f0')).status === 200);
    for (const fire of ['f1', 'f2']) assert.equal((await other.wake(fire)).status, 200);
    await eventually('they have woken', () => woken().includes('f2:due'));
    const rest = woken().filter((id) => id !== 'f0:due');
    assert.deepEqual(rest, ['f1:due', 'f2:due']);
  });
