import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { type TestContext, test } from 'node:test';
import { PROGRAM, START_LIMIT_MS } from '../support/cluster/processes.ts';
import { type Outcome, reveille } from '../support/command-line.ts';
import { eventually, eventuallyBy } from '../support/eventually.ts';

const PORTS = { CHRONOS_PORT: '0', ROUTER_PORT: '0', EXECUTOR_PORT: '0' };

type FireLine = { alarm_id: string; reply: string | null };

async function startUp(t: TestContext, home: string) {
  const env = { PATH: process.env.PATH, HOME: home, REVEILLE_HOME: home, ...PORTS };
  const up = spawn(process.execPath, [PROGRAM, 'up', '--json'], { env, stdio: ['ignore', 'pipe', 'inherit'] });
  const exited = once(up, 'exit');
  const fires: FireLine[] = [];
  createInterface({ input: up.stdout }).on('line', (line) => fires.push(JSON.parse(line)));
  t.after(() => up.kill('SIGKILL'));
  await eventuallyBy(up, 'up is there', () => existsSync(join(home, 'run.json')));
  return {
    rings: fires,
    async end(): Promise<void> {
      up.kill('SIGTERM');
      await exited;
    },
  };
}

const dataOf = ({ status, stdout, stderr }: Outcome) => {
  assert.equal(status, 0, stderr);
  return JSON.parse(stdout);
};

/** A third party's agent: it accepts every wake, and stores its requests. */
async function startThirdParty(t: TestContext) {
  const received: string[] = [];
  const server = createServer((request, response) => {
    let body = '';
    request.on('data', (chunk) => {
      body += chunk;
    });
    request.on('end', () => {
      received.push(`${request.method} ${request.url} ${JSON.stringify(request.headers)} ${body}`);
      const data = { conversation_id: 'c', turn_id: 't', deduped: false };
      response.writeHead(200, { 'content-type': 'application/json' }).end(JSON.stringify({ ok: true, data }));
    });
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  t.after(() => {
    server.close();
    server.closeAllConnections();
  });
  return { heard: received, url: `http://127.0.0.1:${(server.address() as AddressInfo).port}` };
}

/** A program that writes its arguments to a file, and answers. */
const NOSY = `
import { appendFileSync } from 'node:fs';
import { createServer } from 'node:http';
appendFileSync(process.argv[2], JSON.stringify(process.env));
createServer((request, response) => {
  appendFileSync(process.argv[2], JSON.stringify(request.headers));
  response.writeHead(202, { 'content-type': 'application/json' }).end('{"ok":true,"data":{}}');
}).listen(Number(process.env.PORT), process.env.HOST);
`;

test("a replacement of Neo gets its own token and none of Neo's, and Neo returns with a new one", async (t) => {
  const home = mkdtempSync(join(tmpdir(), 'reveille-replaced-'));
  t.after(() => rmSync(home, { recursive: true, force: true, maxRetries: 5 }));
  const first = await startUp(t, home);
  const json = (...args: string[]) => reveille(home, [...args, '--json'], { env: PORTS });
  const secretsOf = (file: string) => Object.values(JSON.parse(readFileSync(join(home, file), 'utf8'))) as string[];
  const secrets = () => ['secrets.json', 'executor-secrets.json'].flatMap(secretsOf);
  const neoToken = () => JSON.parse(readFileSync(join(home, 'secrets.json'), 'utf8')).NEO_DAEMON_TOKEN as string;
  let { rings: fires } = first;
  const fireOnce = async () => {
    const { id } = dataOf(await json('alarm', 'set', 'look at the build', '--in', '1s'));
    return await eventually('it has fired', () => fires.find((one) => one.alarm_id === id), START_LIMIT_MS * 2);
  };
  const ofNeo = neoToken();
  assert.equal(typeof (await fireOnce()).reply, 'string');

  const thirdParty = await startThirdParty(t);
  const put = await reveille(home, ['machine', 'put', '--provider', 'http', '--url', thirdParty.url], { env: PORTS });
  const shown = /must expect this bearer token; it is not shown again:\n {2}(\S+)\n/.exec(put.stdout)?.[1];
  assert.ok(shown !== undefined && shown !== ofNeo, put.stdout + put.stderr);
  await fireOnce();
  assert.ok(thirdParty.heard.some((text) => text.startsWith('POST /chat') && text.includes(`Bearer ${shown}`)));

  // Its working folder: from there it would not find the contents of the home.
  const folder = mkdtempSync(join(tmpdir(), 'reveille-nosy-'));
  t.after(() => rmSync(folder, { recursive: true, force: true }));
  const nosy = join(folder, 'nosy.mjs');
  const notes = join(folder, 'nosy.txt');
  writeFileSync(nosy, NOSY);
  const program = reveille(
    home,
    ['machine', 'put', '--provider', 'process', '--dir', folder, '--json', '--', process.execPath, nosy, notes],
    {
      env: PORTS,
    },
  );
  const { token, ...view } = dataOf(await program);
  assert.ok(![ofNeo, shown, undefined].includes(token));
  assert.equal(view.spec.env, undefined);
  await fireOnce();
  const receivedText = [...thirdParty.heard, readFileSync(notes, 'utf8')].join('\n');
  assert.ok(receivedText.includes(`Bearer ${token}`));
  for (const secret of secrets())
    assert.ok(!receivedText.includes(secret), 'a secret of this installation reached another agent');
  assert.ok(!/NEO_EXECUTOR_TOKEN|MATRIX_EXECUTOR_KEYFILE|MATRIX_CHRONOS_TOKEN/.test(receivedText), receivedText);

  // A third party's agent stays after a restart of everything, and Neo returns only on request.
  await first.end();
  const second = await startUp(t, home);
  ({ rings: fires } = second);
  assert.deepEqual(dataOf(await json('machine', 'show')).spec, view.spec);
  const refused = await reveille(home, ['machine', 'put', 'somebody-else', '--provider', 'neo'], { env: PORTS });
  assert.deepEqual([refused.status, /omit the user id/.test(refused.stderr)], [2, true], refused.stderr);
  const back = dataOf(await json('machine', 'put', '--provider', 'neo'));
  assert.equal(back.spec.command.at(-1), 'neo');
  assert.ok(![ofNeo, shown, token].includes(neoToken()), 'the token of the returned Neo must be new');
  assert.equal(typeof (await fireOnce()).reply, 'string');
  const renewed = neoToken();
  dataOf(await json('machine', 'put', '--provider', 'neo', '--max-per-day', '500'));
  assert.equal(neoToken(), renewed, 'nothing changes where Neo is the agent');
  await second.end();
  const third = await startUp(t, home);
  ({ rings: fires } = third);
  assert.equal(typeof (await fireOnce()).reply, 'string');
  assert.equal(dataOf(await json('machine', 'show')).budget.wakes_per_day, 500);
  await third.end();
  const alone = await json('machine', 'put', '--provider', 'neo');
  assert.equal(alone.status, 1);
  assert.match(alone.stderr, /has its settings from \\"reveille up\\", which does not run in .*; start it/);
});
