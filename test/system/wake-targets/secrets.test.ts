import assert from 'node:assert/strict';
import { join } from 'node:path';
import { Writable } from 'node:stream';
import { test } from 'node:test';
import { pino } from 'pino';
import { startBench } from '../../../src/router/testing/bench.ts';
import { behave, installAgent } from '../../support/stand-ins/agents/executable.ts';
import { always, startHttpAgent } from '../../support/stand-ins/http-agent.ts';
import { atEnd, temporaryFolder } from '../../support/temporary.ts';

const CANARY = 'canary-0123456789abcdef';

test('neither tokens nor secrets of a program get into logs, views or errors', async (t) => {
  let logged = '';
  const sink = new Writable({
    write(chunk, _encoding, done) {
      logged += chunk;
      done();
    },
  });
  const home = temporaryFolder(t);
  installAgent(join(home, 'bin'), 'claude');
  behave(home, { mode: 'says', text: `cannot log in with ${CANARY}\n`, code: 1 });
  const server = await startHttpAgent(() => {});
  atEnd(t, () => server.close());
  // A target that repeats what it was sent.
  server.misbehave = (call, response) => always(500, { said: call.headers })(call, response);
  const environment = { PATH: `${join(home, 'bin')}:/usr/bin:/bin`, HOME: home, SECRET_OF_MINE: CANARY };
  const bench = await startBench(t, { log: pino({ level: 'trace' }, sink), environment });
  let seen = '';
  const claude = { preset: 'claude', cwd: home, env: { API_KEY: CANARY, OTHER_KEY: `\${SECRET_OF_MINE}` } };
  const machines = [
    { provider: 'command', spec: claude, token: `${CANARY}-0` },
    ...['openclaw', 'opencode', 'a2a'].map((preset, index) => {
      return { provider: 'command', spec: { preset, url: server.url }, token: `${CANARY}-${index + 1}` };
    }),
    { provider: 'command', spec: { preset: 'webhook', url: server.url, allow_private: true }, token: `${CANARY}-9` },
  ];
  for (const [index, machine] of machines.entries()) {
    const user = `user-${index}`;
    seen += (await bench.put(user, machine)).text;
    seen += (await bench.wake(user)).text;
    let turns = '';
    do turns = (await bench.admin('GET', `/${user}/turns`)).text;
    while (/"status":"(queued|running)"/.test(turns) && !/waits_for/.test(turns));
    seen += turns;
    seen += (await bench.admin('GET', `/${user}`)).text;
    seen += (await bench.admin('DELETE', `/${user}`)).text;
  }
  assert.match(logged, /a turn has ended/);
  assert.match(seen, /cannot log in with \[redacted\]/);
  assert.ok(!logged.includes(CANARY), logged);
  assert.ok(!seen.includes(CANARY), seen);
});
