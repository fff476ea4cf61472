/** Deep or unusual JSON, sent to every input that takes JSON. Nothing may answer 5xx, and no daemon may end. */

import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { type TestContext, test } from 'node:test';
import { setImmediate as turn } from 'node:timers/promises';
import { startedNeo, TOKEN } from '../../../src/agents/neo/testing/workbench.ts';
import { PROGRAM } from '../../../src/cli/home/package-root.ts';
import { parseExecutorConfig } from '../../../src/executor/config.ts';
import { startExecutor } from '../../../src/executor/daemon.ts';
import { systemClock } from '../../../src/kit/clock/clock.ts';
import { silentLogger } from '../../../src/kit/log/log.ts';
import { JSON_DEPTH } from '../../../src/wire/json.ts';
import { WAKE_BODY_MAX_BYTES } from '../../../src/wire/wake.ts';
import { startInstallation } from '../../support/installation.ts';
import { rounds } from '../../support/random/random.ts';
import { temporaryFolder } from '../../support/temporary.ts';
import { createHttpBench } from '../chronos/http-bench.ts';

const DEPTHS = [JSON_DEPTH + 1, 1000, 10_000, 100_000];
/** The body as a whole, and an unknown member, are tried with all of them each time. */
const DEPTHS_OF_MEMBERS = rounds<readonly number[]>([JSON_DEPTH + 1, 10_000], DEPTHS);

/** JSON text with this nesting depth. */
const BOMBS: ((depth: number) => string)[] = [
  (depth) => `${'['.repeat(depth)}${']'.repeat(depth)}`,
  (depth) => `${'{"a":'.repeat(depth)}1${'}'.repeat(depth)}`,
  (depth) => `${'[{"b":'.repeat(Math.ceil(depth / 2))}0${'}]'.repeat(Math.ceil(depth / 2))}`,
  (depth) => '['.repeat(depth),
];

const ODD = [
  ...['{"__proto__":{"a":1}}', '{"constructor":{"prototype":{"a":1}}}', '"\\ud800"', '"\\u0000"', '1e400', '-0'],
  ...[
    '123456789012345678901234567890',
    '{"a":1,"a":2}',
    '{"":""}',
    '[]',
    '{}',
    'null',
    'true',
    '"[[[["',
    '""',
    '"\\u202e"',
  ],
  ...[JSON.stringify('['.repeat(10_000)), JSON.stringify('{"a":'.repeat(10_000))],
];

type Route = {
  method: string;
  path: string;
  /** Members of the body; each one in turn is replaced by the tried value. `~` in a value is replaced, too. */
  members: Readonly<Record<string, string>>;
};
type Target = { url: string; headers: Record<string, string>; routes: Route[] };

const ID = '0197f5a0-0000-7000-8000-000000000001';
const at = (method: string, path: string, members: Record<string, string>): Route => ({ method, path, members });

async function targets(t: TestContext): Promise<Record<string, Target>> {
  const bench = await createHttpBench(t);
  const { principal } = await bench.agent('ada');
  const bearer = (token: string) => ({ authorization: `Bearer ${token}` });
  const { router, secrets } = await startInstallation(t);
  const folder = temporaryFolder(t);
  const executor = await startExecutor({
    config: parseExecutorConfig({ EXECUTOR_DEV: '1', EXECUTOR_PORT: '0', EXECUTOR_DATA_DIR: join(folder, 'executor') }),
    toolsAfterMs: 24 * 60 * 60 * 1000,
    clock: systemClock,
    log: silentLogger,
  });
  t.after(() => executor.close());
  const neo = await startedNeo(t, {});
  const agent = { ...bearer('transport-token-canary'), 'x-chronos-agent': principal };
  const call = '{"id":"one","kind":"call","tool":"ledger__pay","args":{"to":~}}';
  return {
    chronosd: {
      url: bench.url,
      headers: agent,
      routes: [
        at('POST', '/v1/alarms', {
          message: '"x"',
          delay_seconds: '60',
          payload: '{"deep":~}',
          label: '"l"',
          cron: '"x"',
        }),
        at('PATCH', `/v1/alarms/${ID}`, { message: '"x"', payload: '~' }),
        at('POST', `/v1/alarms/${ID}/pause`, { reason: '"x"' }),
        at('POST', `/v1/alarms/${ID}/trigger`, { x: '1' }),
        at('POST', '/v1/agent/auth/challenge', { did: '"did:key:x"' }),
        at('POST', '/v1/agent/auth/verify', { did: '"d"', public_key: '"p"', nonce: '"n"', signature: '"s"' }),
        at('POST', `/v1/fires/${ID}@1/receipts`, { user_id: '"ada"', reports: '[~]' }),
      ],
    },
    operators: {
      url: bench.url,
      headers: bearer('admin-token-canary-01'),
      routes: [
        at('POST', '/v1/admin/agents', { label: '"ada"', public_key: '"p"' }),
        at('DELETE', '/v1/admin/agents', { label: '"ada"', public_key: '"p"' }),
      ],
    },
    router: {
      url: router.url,
      headers: bearer(secrets.ROUTER_ADMIN_TOKEN),
      routes: [
        at('PUT', '/admin/machines/ada', {
          provider: '"process"',
          spec: '{"command":["x"],"env":{"A":~}}',
          budget: '~',
        }),
        at('PUT', '/admin/machines/ada', { provider: '"webhook"', spec: '{"url":~}', token: '"x"' }),
        at('PUT', '/admin/machines/ada/budget', { wakes_per_hour: '1', quiet: '{"from":~}' }),
      ],
    },
    waker: {
      url: router.url,
      headers: bearer(secrets.CHRONOS_WAKE_TOKEN),
      routes: [at('POST', '/internal/wake', { user_id: '"ada"', message: '"x"', payload: '[~]' })],
    },
    executor: {
      url: executor.url,
      headers: { 'x-matrix-user': 'ada' },
      routes: [
        at('POST', '/messages/async', { intent: `{"verb":"pay","plan":${call}}`, context: '[{"text":~}]' }),
        at('POST', '/messages/async', { intent: '~', prose: '"pay"', idempotency_key: '"k"' }),
        at('POST', '/messages/async', { prose: '~', conversation_id: '~' }),
        at('POST', `/intents/${ID}/gates/one/answer`, { answer: '"yes"', call_sha256: '~' }),
        at('POST', `/intents/${ID}/park`, { conversation_id: '~' }),
        at('POST', `/intents/${ID}/cancel`, { x: '1' }),
      ],
    },
    neo: {
      url: neo.url,
      headers: bearer(TOKEN),
      routes: [
        at('POST', '/chat', { message: '"x"', conversation_id: '~', payload: '{"a":[~]}' }),
        at('POST', `/intents/${ID}/gates/one/answer`, { answer: '~', call_sha256: '~' }),
        at('POST', `/turns/${ID}/cancel`, { x: '~' }),
      ],
    },
  };
}

/** The bodies with `value` in each place of a route in turn. */
function bodiesOf({ members }: Route, value: string): string[] {
  const bodies = [value, `{"unknown":${value}}`];
  for (const place of Object.keys(members)) {
    const written = Object.entries(members).map(([name, template]) => {
      if (name !== place) return `${JSON.stringify(name)}:${template.replaceAll('~', '0')}`;
      return `${JSON.stringify(name)}:${template.includes('~') ? template.replaceAll('~', () => value) : value}`;
    });
    bodies.push(`{${written.join(',')}}`);
  }
  return bodies;
}

test('JSON that is nested too deep is 400 with field and bound in every place of every route, and unusual JSON never 5xx', async (t) => {
  let asked = 0;
  for (const [name, { url, headers, routes }] of Object.entries(await targets(t))) {
    const send = async ({ method, path }: Route, body: string) => {
      asked++;
      const answer = await fetch(url + path, {
        method,
        headers: { 'content-type': 'application/json', ...headers },
        body,
      });
      return { status: answer.status, text: await answer.text() };
    };
    for (const route of routes) {
      const where = `${name}: ${route.method} ${route.path}`;
      for (const depth of DEPTHS) {
        for (const bomb of BOMBS) {
          const bodies = bodiesOf(route, bomb(depth));
          for (const body of DEPTHS_OF_MEMBERS.includes(depth) ? bodies : bodies.slice(0, 2)) {
            const { status, text } = await send(route, body);
            assert.doesNotMatch(text, /is not a route of/, where);
            const shown = `${where} ${body.slice(0, 80)} (${depth}): ${status} ${text.slice(0, 200)}`;
            // A route that knows what it is asked about before it reads may say that it is not there.
            const isMissing = status === 404 && body.length <= WAKE_BODY_MAX_BYTES;
            const isTooLong = status === 413 && body.length > 256 * 1024;
            assert.ok(status === 400 || isMissing || isTooLong, shown);
            if (status === 400) assert.match(text, /more than 128 deep/, shown);
          }
        }
        await turn();
      }
      for (const odd of ODD) {
        for (const body of bodiesOf(route, odd)) {
          const { status, text } = await send(route, body);
          assert.ok(
            status < 500 || (status === 503 && name === 'waker'),
            `${where} ${body.slice(0, 120)}: ${status} ${text}`,
          );
        }
      }
      assert.equal((await send(route, '\ufeff{}')).status >= 400, true);
    }
    const cursor = Buffer.from('['.repeat(5000)).toString('base64url');
    for (const path of ['/v1/alarms', '/v1/admin/agents', '/admin/machines', '/intents', '/conversations']) {
      const answer = await fetch(`${url}${path}?cursor=${cursor}`, { headers });
      assert.ok(answer.status < 500, `${name} ${path}: ${answer.status}`);
      await answer.body?.cancel();
    }
    assert.equal((await fetch(`${url}/healthz`)).status, 200, name);
  }
  t.diagnostic(`${asked} bodies`);
});

for (const server of ['mcp', 'chronometric', 'ledger']) {
  test(`reveille ${server} survives arguments that are nested too deep`, async (t) => {
    const home = temporaryFolder(t);
    const child = spawn(process.execPath, [PROGRAM, server], {
      env: {
        PATH: process.env.PATH,
        HOME: home,
        REVEILLE_HOME: home,
        LEDGER_DATA_DIR: home,
        MATRIX_CHRONOS_TOKEN: 'a-token-of-the-test',
      },
      stdio: ['pipe', 'pipe', 'ignore'],
    });
    const exited = once(child, 'exit');
    t.after(async () => {
      child.kill('SIGKILL');
      await exited;
    });
    const pinged = new Promise<void>((resolve) => {
      createInterface({ input: child.stdout }).on('line', (line) => {
        if (JSON.parse(line).id === 'last') resolve();
      });
    });
    const send = (line: string) => child.stdin.write(`${line}\n`);
    const params = '{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"t","version":"0"}}';
    send(`{"jsonrpc":"2.0","id":0,"method":"initialize","params":${params}}`);
    send('{"jsonrpc":"2.0","method":"notifications/initialized"}');
    for (const tool of ['alarm_set', 'session_start', 'transfer']) {
      for (const depth of DEPTHS) {
        for (const bomb of BOMBS) {
          send(
            `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"${tool}","arguments":{"message":${bomb(depth)}}}}`,
          );
          send(bomb(depth));
        }
      }
    }
    send('{"jsonrpc":"2.0","id":"last","method":"ping"}');
    await Promise.race([pinged, exited.then(([code]) => assert.fail(`it ended with ${code}`))]);
  });
}
