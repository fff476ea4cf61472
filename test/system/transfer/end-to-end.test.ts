/** Alarms that were set on SQLite fire from PostgreSQL, each once, in whatever state chronosd was stopped. */

import assert from 'node:assert/strict';
import { writeFileSync } from 'node:fs';
import { createServer } from 'node:http';
import { type TestContext, test } from 'node:test';
import { type AlarmCreateBody, createChronosClient, holdPrincipal } from '../../../src/chronos/client.ts';
import { homeAt, loadOrMakeSecrets, makeHome } from '../../../src/cli/home/home.ts';
import { agentIdentity } from '../../../src/kit/identity/agent.ts';
import { generateKey } from '../../../src/kit/identity/keys.ts';
import { RawJson } from '../../../src/wire/json.ts';
import { reveille, startReveille } from '../../support/command-line.ts';
import { eventually } from '../../support/eventually.ts';
import { reservePort } from '../../support/ports.ts';
import { startPostgres } from '../../support/postgres/server.ts';
import { listening, temporaryFolder } from '../../support/temporary.ts';

type Wake = { fire_id: string; message: string; payload?: unknown; attempt: number };

/** Takes wakes as the router does; a wake whose message says so is never answered. */
async function startRouter(t: TestContext) {
  const router = { url: '', wakes: [] as Wake[], bodies: [] as string[], hanging: 0 };
  const server = createServer((request, response) => {
    let body = '';
    request.setEncoding('utf8').on('data', (text: string) => {
      body += text;
    });
    request.on('end', () => {
      const wake = JSON.parse(body) as Wake;
      if (wake.message.startsWith('hang') && wake.attempt === 1) {
        router.hanging++;
        return;
      }
      router.wakes.push(wake);
      router.bodies.push(body);
      response.writeHead(202, { 'content-type': 'application/json' }).end('{"ok":true,"data":{}}');
    });
  });
  router.url = `${await listening(t, server)}/internal/wake`;
  return router;
}

test('alarms set on SQLite fire once from PostgreSQL, after a kill -9 during a delivery', async (t) => {
  const postgres = await startPostgres();
  t.after(() => postgres.remove());
  const uri = postgres.uri(await postgres.createDatabase());
  const router = await startRouter(t);
  const home = homeAt(temporaryFolder(t));
  makeHome(home);
  const secrets = loadOrMakeSecrets(home);
  const port = await reservePort();
  const settings = [`CHRONOS_PORT: ${port}`, `CHRONOS_ROUTER_WAKE_URL: ${router.url}`, 'CHRONOS_TICK_MS: 50'];
  const configure = (...more: string[]) => writeFileSync(home.configFile, `${[...settings, ...more].join('\n')}\n`);
  configure();

  const client = createChronosClient({
    url: `http://127.0.0.1:${port}`,
    token: secrets.CHRONOS_TOKEN,
    identity: agentIdentity('ada', generateKey()),
    principal: holdPrincipal(),
  });
  const cleanups: (() => unknown)[] = [];
  const killed = startReveille({ after: (cleanup) => void cleanups.push(cleanup) }, home.path, ['chronosd', '--json']);
  await killed.until(({ stdout }) => stdout.includes('"url"'));

  const expectedFires = new Map<string, string>();
  const set = async (message: string, change: Partial<AlarmCreateBody>) => {
    const { id } = await client.createAlarm({ kind: 'once', wake_message: message, ...change } as AlarmCreateBody);
    expectedFires.set(id, message);
    return id;
  };
  await set('rang before', { delay_seconds: 1 });
  const hanging = await set('hang, then ring', { delay_seconds: 1 });
  await eventually('one has fired and one hangs', () => router.wakes.length === 1 && router.hanging === 1);
  for (let n = 0; n < 20; n++) await set(`due while it moves ${n} \u0000 `, { delay_seconds: 1 + n / 20 });
  await set('due afterwards', { delay_seconds: 6, payload: new RawJson('{"n":12345678901234567890,"f":1.0}') });
  const quiet = await set('cancelled', { delay_seconds: 3 });
  await client.cancelAlarm(quiet);
  // kill -9, before any of those is due or while they are.
  for (const cleanup of cleanups) await cleanup();
  const before = router.wakes.length;

  const { status, stdout, stderr } = await reveille(home.path, ['migrate', '--to', uri, '--json']);
  assert.deepEqual([status, stderr], [0, '']);
  assert.equal(JSON.parse(stdout).outcome, 'moved');
  assert.equal(router.wakes.length, before);

  const onFile = await reveille(home.path, ['chronosd', '--json']);
  assert.equal(onFile.status, 1);
  assert.match(JSON.parse(onFile.stderr.trim().split('\n').at(-1)!).error.message, /moved to PostgreSQL \(.*\) on /);

  configure(`CHRONOS_POSTGRES_URI: ${JSON.stringify(uri)}`, 'CHRONOS_ENROLLMENT: tofu');
  const replica = startReveille(t, home.path, ['chronosd', '--json']);
  await replica.until(({ stdout: output }) => output.includes('"url"'));
  await eventually(
    'no alarm is active',
    async () => (await client.listAlarms({ status: 'active' })).alarms.length === 0,
  );

  const firedWakes = Map.groupBy(router.wakes, ({ fire_id }) => fire_id);
  const expected = [...expectedFires.keys()].filter((id) => id !== quiet);
  assert.deepEqual(
    [...firedWakes.keys()].map((fireId) => fireId.split('@')[0]).toSorted(),
    expected.toSorted(),
    'every alarm fired except the cancelled one',
  );
  for (const [fireId, wakes] of firedWakes) assert.equal(wakes.length, 1, `${fireId} fired ${wakes.length} times`);
  for (const { fire_id, message } of router.wakes) assert.equal(message, expectedFires.get(fire_id.split('@')[0]!));
  assert.ok(router.bodies.some((body) => body.includes('{"n":12345678901234567890,"f":1.0}')));
  const { fires } = await client.listFires(hanging);
  assert.deepEqual(
    fires.map(({ outcome, attempt }) => [outcome, attempt]),
    [
      ['delivered', 2],
      ['unknown', 1],
    ],
  );
  const ended = await replica.end('SIGTERM');
  assert.doesNotMatch(ended.stdout + ended.stderr, /an-embedded-password/);
});
