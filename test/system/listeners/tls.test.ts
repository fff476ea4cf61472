import assert from 'node:assert/strict';
import { once } from 'node:events';
import { copyFileSync, mkdirSync, writeFileSync } from 'node:fs';
import { connect } from 'node:net';
import { join } from 'node:path';
import { type TestContext, test } from 'node:test';
import { setTimeout as pause } from 'node:timers/promises';
import { type TLSSocket, connect as tlsConnect } from 'node:tls';
import { systemClock } from '../../../src/kit/clock/clock.ts';
import { startServer } from '../../../src/kit/http/server.ts';
import { silentLogger } from '../../../src/kit/log/log.ts';
import { type Certificate, makeAuthority } from '../../support/certificates.ts';
import { reveille, startReveille } from '../../support/command-line.ts';
import { eventually } from '../../support/eventually.ts';
import { temporaryFolder } from '../../support/temporary.ts';
import { TOKEN as RAIL_TOKEN, readOnlyPlan, startedExecutor } from '../executor/executor-bench.ts';

async function served(t: TestContext, files: Certificate, log = silentLogger) {
  const server = await startServer({
    ...{ name: 'testd', version: '0', host: '127.0.0.1', port: 0, log, clock: systemClock, drainMs: 100 },
    listener: { tls: files, connections: 100, connectionsPerAddress: 100 },
    limits: { lingerMs: 50, headersMs: 500 },
    routes() {},
  });
  t.after(() => server.close());
  return server;
}

/** Common name of a server's certificate, without trusting it. */
async function shown(port: number): Promise<string> {
  const socket: TLSSocket = tlsConnect({ port, host: '127.0.0.1', rejectUnauthorized: false });
  await once(socket, 'secureConnect');
  const { CN } = socket.getPeerCertificate().subject;
  socket.destroy();
  return String(CN);
}

test('a renewed certificate is served without a restart, and a broken one is ignored', async (t) => {
  const folder = temporaryFolder(t);
  const ours = await makeAuthority(folder, 'ours');
  const [first, second] = [await ours.issue(), await ours.issue()];
  const live = { certificate: join(folder, 'live.pem'), key: join(folder, 'live.key') };
  const put = ({ certificate, key }: Certificate) => {
    copyFileSync(key, live.key);
    copyFileSync(certificate, live.certificate);
  };
  put(first);
  const warnings: string[] = [];
  const log = Object.assign(Object.create(silentLogger), { warn: (_: object, text: string) => warnings.push(text) });
  const server = await served(t, live, log);
  assert.match(server.url, /^https:/);
  assert.equal(await shown(server.port), 'ours 1');
  writeFileSync(live.certificate, 'not a certificate');
  while (!warnings.some((text) => text.startsWith('the changed certificate'))) await pause(20);
  assert.equal(await shown(server.port), 'ours 1');
  put(second);
  while ((await shown(server.port)) !== 'ours 2') await pause(20);
});

test('non-TLS data on a TLS port is closed, as is a handshake that never ends, and the server continues', async (t) => {
  const folder = temporaryFolder(t);
  const server = await served(t, await (await makeAuthority(folder, 'ours')).issue());
  for (const bytes of ['GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n', '', '\x16\x03\x01']) {
    const socket = connect({ port: server.port, host: '127.0.0.1', allowHalfOpen: true });
    t.after(() => socket.destroy());
    socket.on('error', () => {}).resume();
    const closed = new Promise<void>((resolve) => socket.once('end', resolve).once('close', () => resolve()));
    socket.write(bytes);
    await closed;
  }
  while (server.figures().open > 0) await pause(20);
  assert.equal(await shown(server.port), 'ours 1');
});

test('a certificate of another authority, and an expired one, are refused by name', async (t) => {
  const folder = temporaryFolder(t);
  const [ours, theirs] = [await makeAuthority(folder, 'ours'), await makeAuthority(folder, 'theirs')];
  const home = join(folder, 'home');
  const trust = { REVEILLE_TLS_CA: ours.file };
  const list = (port: number) =>
    reveille(home, ['alarm', 'list', '--json'], {
      env: {
        ...trust,
        MATRIX_CHRONOS_URL: `https://127.0.0.1:${port}`,
        ...{ MATRIX_CHRONOS_TOKEN: 'a-token-of-the-test', MATRIX_USER_ID: '6d0fd2e2-1f28-4ec1-8a4c-5f2b6c3c9e11' },
      },
    });
  await reveille(home, ['agent', 'whoami']);
  for (const [files, why] of [
    [await theirs.issue(), 'UNABLE_TO_VERIFY_LEAF_SIGNATURE'],
    [await ours.issue(-1), 'CERT_HAS_EXPIRED'],
  ] as const) {
    const { port } = await served(t, files);
    const { status, stderr } = await list(port);
    assert.equal(status, 1);
    assert.ok(stderr.includes(why), stderr);
  }
  const wrong = await reveille(home, ['alarm', 'list'], { env: { REVEILLE_TLS_CA: join(folder, 'ours.key') } });
  assert.match(wrong.stderr, /REVEILLE_TLS_CA must name a file of certificates in PEM/);
});

test('an alarm uses TLS on every hop: command, chronosd, router, daemon and back, with a private authority', async (t) => {
  const folder = temporaryFolder(t);
  const ours = await makeAuthority(folder, 'ours');
  const home = join(folder, 'home');
  mkdirSync(home, { mode: 0o700 });
  const token = 'the-daemon-token-of-the-test';
  const settings: Record<string, string> = {
    REVEILLE_TLS_CA: ours.file,
    CHRONOS_TOKEN: 'chronos-token-of-the-test',
    CHRONOS_ADMIN_TOKEN: 'admin-token-of-the-test',
    CHRONOS_AGENT_AUTH_SECRET: 'principal-secret-of-the-test',
    CHRONOS_WAKE_TOKEN: 'wake-token-of-the-test',
    ROUTER_WAKE_TOKEN: 'wake-token-of-the-test',
    ROUTER_ADMIN_TOKEN: 'router-admin-of-the-test',
    NEO_DAEMON_TOKEN: token,
  };
  for (const prefix of ['CHRONOS', 'ROUTER', 'NEO']) {
    const { certificate, key } = await ours.issue();
    Object.assign(settings, {
      [`${prefix}_TLS_CERT`]: certificate,
      [`${prefix}_TLS_KEY`]: key,
      [`${prefix}_PORT`]: '0',
    });
  }
  const start = async (name: string, more: Record<string, string> = {}) => {
    Object.assign(settings, more);
    const lines = Object.entries(settings).map(([variable, value]) => `${variable}: ${JSON.stringify(value)}\n`);
    writeFileSync(join(home, 'config.yaml'), lines.join(''), { mode: 0o600 });
    const daemon = startReveille(t, home, [name, '--json']);
    await daemon.until(({ stdout }) => stdout.includes('\n'));
    const { url } = JSON.parse(daemon.outcome.stdout) as { url: string };
    assert.match(url, /^https:\/\/127\.0\.0\.1:\d+$/);
    return { url, port: new URL(url).port };
  };
  const router = await start('router');
  const chronosd = await start('chronosd', {
    ROUTER_PORT: router.port,
    CHRONOS_ROUTER_WAKE_URL: `${router.url}/internal/wake`,
  });
  const neo = await start('neo', { CHRONOS_PORT: chronosd.port, NEO_CHRONOS_URL: chronosd.url });

  const run = async (...args: string[]) => {
    const { status, stdout, stderr } = await reveille(home, [...args, '--json']);
    assert.deepEqual([status, stderr], [0, ''], args.join(' '));
    return JSON.parse(stdout);
  };
  await run('agent', 'whoami');
  await run('machine', 'put', '--provider', 'http', '--url', neo.url, '--token', token);
  const { id } = await run('alarm', 'set', '--in', '1s', 'Say that you came over TLS.');
  type Shown = { fires?: { reached?: string; turn?: { ok?: boolean } }[] };
  let shownAlarm: Shown = {};
  await eventually('the turn is finished', async () => {
    shownAlarm = await run('alarm', 'show', id);
    return shownAlarm.fires?.[0]?.reached === 'turn_finished';
  });
  assert.equal(shownAlarm.fires?.[0]?.turn?.ok, true);
});

test('the rail uses TLS: a task is submitted to an executor and read back, and without the authority it is not', async (t) => {
  const folder = temporaryFolder(t);
  const ours = await makeAuthority(folder, 'ours');
  const { certificate, key } = await ours.issue();
  const executor = await startedExecutor(t, folder, { EXECUTOR_TLS_CERT: certificate, EXECUTOR_TLS_KEY: key });
  assert.match(executor.url, /^https:/);
  const env = { NEO_EXECUTOR_URL: executor.url, NEO_EXECUTOR_TOKEN: RAIL_TOKEN, MATRIX_USER_ID: 'ada' };
  const home = join(folder, 'home');
  const run = (args: string[], more = {}) => reveille(home, [...args, '--json'], { env: { ...env, ...more } });
  const distrusted = await run(['intent', 'list']);
  assert.equal(distrusted.status, 1);
  assert.match(distrusted.stderr, /UNABLE_TO_VERIFY_LEAF_SIGNATURE|SELF_SIGNED_CERT_IN_CHAIN/);
  const trust = { REVEILLE_TLS_CA: ours.file };
  const task = join(folder, 'task.json');
  writeFileSync(task, JSON.stringify(readOnlyPlan()));
  const submitted = await run(['intent', 'submit', '--json-file', task], trust);
  assert.equal(submitted.status, 0, submitted.stderr);
  const listed = await run(['intent', 'list'], trust);
  assert.equal(listed.status, 0, listed.stderr);
  assert.ok(listed.stdout.includes((JSON.parse(submitted.stdout) as { intent_id: string }).intent_id));
});
