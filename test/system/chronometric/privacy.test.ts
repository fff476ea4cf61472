import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { mkdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, type TestContext, test } from 'node:test';
import { namesBelow } from '../../support/temporary.ts';
import { lacks } from '../../support/tools.ts';
import { modulesBelow, recordModules } from '../idle-probes/loaded-modules.ts';
import { type Person, personOf, type ServerChanges, type ServerProcess, startServer } from './server-process.ts';

const CONSENT = 'privacy:\n  os_idle_consent: true\n';

/** Records, in a line of a file, each request that would leave the machine, and forbids it. Unix sockets are exempt. */
function forbidNetwork(file: string): string {
  const preload = `
    import { appendFileSync } from 'node:fs';
    import { createRequire, syncBuiltinESMExports } from 'node:module';
    const require = createRequire('file:///');
    const refuse = (what) => {
      appendFileSync(${JSON.stringify(file)}, what + '\\n');
      throw new Error('no network');
    };
    const net = require('node:net');
    const { connect } = net.Socket.prototype;
    net.Socket.prototype.connect = function (...args) {
      const [to] = Array.isArray(args[0]) ? args[0] : args;
      if (typeof to?.path === 'string') return connect.apply(this, args);
      return refuse('connect ' + JSON.stringify(to));
    };
    const { listen } = net.Server.prototype;
    net.Server.prototype.listen = function (...args) {
      return typeof args[0]?.path === 'string' ? listen.apply(this, args) : refuse('listen');
    };
    for (const [module, names] of Object.entries({
      dgram: ['createSocket'],
      dns: ['lookup', 'resolve', 'resolve4', 'resolve6'],
      http: ['request', 'get'],
      https: ['request', 'get'],
      http2: ['connect'],
      tls: ['connect'],
    })) {
      const found = require('node:' + module);
      for (const name of names) found[name] = () => refuse(module + '.' + name);
    }
    globalThis.fetch = () => refuse('fetch');
    syncBuiltinESMExports();`;
  return `--import=data:text/javascript,${encodeURIComponent(preload)}`;
}

/** Calls everything that exists. */
async function useAll(server: ServerProcess): Promise<void> {
  const answers = [
    await server.call('get_time_context'),
    await server.call('mark_session_start', { intent: 'offline' }),
    await server.call('request_break_if_needed', { threshold_minutes: 1 }),
    await server.call('idle_status'),
    await server.call('mark_session_end', { summary: 'still offline' }),
  ];
  assert.deepEqual(
    answers.map(({ isError }) => isError),
    Array(5).fill(false),
  );
  const { result } = await server.request('resources/read', { uri: 'chronometric://sessions/week' });
  assert.match(result.contents[0].text, /still offline/);
}

const canUnshare = process.platform === 'linux' && spawnSync('unshare', ['-rn', 'true']).status === 0;

describe('no network', () => {
  test('is requested by any part, with consent too', async (t) => {
    const person = personOf(t);
    writeFileSync(person.profile, CONSENT);
    const record = join(person.home, 'network');
    writeFileSync(record, '');
    const env = { REVEILLE_PROFILE: person.profile, XDG_RUNTIME_DIR: person.home };
    const server = await startServer(t, person, { env, nodeFlags: [forbidNetwork(record)] });
    await useAll(server);
    assert.equal(await server.end(), 0);
    assert.equal(readFileSync(record, 'utf8'), '');
  });

  test('is detected by this test itself when it is requested', (t) => {
    const person = personOf(t);
    const record = join(person.home, 'network');
    for (const attempt of [
      "fetch('http://127.0.0.1:1')",
      "(await import('node:net')).connect(1, '127.0.0.1')",
      "(await import('node:http')).get('http://127.0.0.1:1')",
      "(await import('node:dgram')).createSocket('udp4')",
      "(await import('node:dns')).lookup('localhost', () => {})",
    ]) {
      writeFileSync(record, '');
      spawnSync(process.execPath, [forbidNetwork(record), '--input-type=module', '--eval', attempt], { env: {} });
      assert.notEqual(readFileSync(record, 'utf8'), '', attempt);
    }
  });

  test('is needed: everything works on a machine without one', async (t) => {
    if (lacks(t, 'unshare')) return;
    if (!canUnshare) return t.skip('this computer lets no process have a network of its own (unshare -rn)');
    const person = personOf(t);
    const server = await startServer(t, person, { under: ['unshare', '-rn'] });
    await useAll(server);
    assert.equal(await server.end(), 0);
  });
});

describe('without consent', () => {
  /** A server with this profile, and the idle probes it has loaded so far. */
  async function watched(t: TestContext, profile: string, changes: ServerChanges = {}) {
    const person = personOf(t);
    writeFileSync(person.profile, profile);
    const record = join(person.home, 'modules');
    // No desktop: the probes report that there is none.
    const env = { REVEILLE_PROFILE: person.profile, XDG_RUNTIME_DIR: person.home };
    const server = await startServer(t, person, { env, nodeFlags: [recordModules(record)], ...changes });
    return { person, server, loaded: () => modulesBelow('chronometric/idle', record) };
  }

  const NONE = { consent_granted: false, hyperfocus_signal: 'unknown' };

  for (const profile of [
    '',
    'privacy:\n  os_idle_consent: yes\n',
    'privacy:\n  os_idle_consent: "true"\n',
    'privacy: {\n',
  ]) {
    test(`no probe is even loaded: ${JSON.stringify(profile)}`, async (t) => {
      const { server, loaded } = await watched(t, profile);
      for (let asked = 0; asked < 3; asked++) assert.deepEqual((await server.call('idle_status')).structured, NONE);
      await server.call('get_time_context');
      assert.equal(await server.end(), 0);
      assert.deepEqual(loaded(), []);
    });
  }

  test('given and withdrawn while the server runs, applies to each call as the profile says then', async (t) => {
    const { person, server, loaded } = await watched(t, '');
    const granted = async () => (await server.call('idle_status')).structured.consent_granted;
    assert.equal(await granted(), false);
    assert.deepEqual(loaded(), []);
    writeFileSync(person.profile, CONSENT);
    const { structured } = await server.call('idle_status');
    assert.equal(structured.consent_granted, true);
    assert.equal(structured.hyperfocus_signal, 'unknown');
    assert.ok(structured.unavailable.length > 0);
    assert.ok(loaded().includes('open-idle.ts'));
    writeFileSync(person.profile, CONSENT.replace('true', 'false'));
    assert.equal(await granted(), false);
  });
});

/** Every byte in a folder. */
function contentsOf(folder: string): string {
  return namesBelow(folder)
    .map((name) => join(folder, name))
    .filter((path) => statSync(path).isFile())
    .map((path) => readFileSync(path, 'latin1'))
    .join('\n');
}

describe('user input', () => {
  const CANARY = 'canary-7f3a91';
  const START = 'mark_session_start';

  /** Calls with the canary in every place that can be refused. */
  const REFUSED: readonly [tool: string, args: unknown][] = [
    [START, { intent: `${CANARY} `.repeat(2000) }],
    [START, { intent: `${CANARY} \ud800` }],
    [START, { intent: [CANARY] }],
    [START, { intent: { [CANARY]: CANARY } }],
    [START, { intent: CANARY }],
    ['mark_session_end', { summary: `${CANARY} `.repeat(2000) }],
    ['mark_session_end', { summary: { [CANARY]: 1 } }],
    ['mark_session_end', { summary: `\udfff${CANARY}` }],
    ['request_break_if_needed', { threshold_minutes: CANARY }],
    ['request_break_if_needed', { threshold_minutes: { intent: CANARY } }],
    [START, CANARY],
    [START, [CANARY]],
  ];
  const NONSENSE: readonly string[] = [
    `{"jsonrpc":"2.0","id":7001,"method":"tools/call","params":{"name":"${START}","arguments":{"intent":"${CANARY}"`,
    `{"intent": ${CANARY}}`,
    `{"jsonrpc":"2.0","method":"tools/call","intent":"${CANARY}"}`,
    `{"jsonrpc":"1.0","id":7002,"method":"tools/call","params":{"name":"${START}","arguments":{"intent":"${CANARY}"}}}`,
    `{"jsonrpc":"2.0","id":7003,"method":"tools/call","params":"${CANARY}"}`,
    `{"jsonrpc":"2.0","id":{"x":"${CANARY}"},"method":"tools/call"}`,
    `[{"jsonrpc":"2.0","id":7004,"method":"${CANARY}"}]`,
  ];

  async function provoke(server: ServerProcess): Promise<void> {
    for (const [tool, args] of REFUSED) assert.equal((await server.call(tool, args)).isError, true, tool);
    for (const line of NONSENSE) server.write(line);
    await server.call('get_time_context');
  }

  function assertSilent(server: ServerProcess): void {
    assert.ok(!server.stderr().includes(CANARY), server.stderr());
    const failures = server
      .stdout()
      .trim()
      .split('\n')
      .filter((line) => {
        const answer = JSON.parse(line);
        return answer.error !== undefined || answer.result?.isError === true;
      });
    assert.ok(failures.length >= REFUSED.length);
    for (const line of failures) assert.ok(!line.includes(CANARY), line);
  }

  async function withOpenSession(t: TestContext): Promise<{ person: Person; server: ServerProcess }> {
    const person = personOf(t);
    writeFileSync(person.profile, 'chronometric:\n  session_overlap_policy: error\n');
    const env = { REVEILLE_PROFILE: person.profile, REVEILLE_LOG: 'trace' };
    const server = await startServer(t, person, { env });
    assert.equal((await server.call(START, { intent: `the one that is kept: ${CANARY}` })).isError, false);
    return { person, server };
  }

  test('never occurs in an error or in the log, whatever is refused', async (t) => {
    const { server } = await withOpenSession(t);
    await provoke(server);
    assert.equal(await server.end(), 0);
    assertSilent(server);
  });

  test('never occurs there when the profile breaks or the state is damaged', async (t) => {
    const { person, server } = await withOpenSession(t);
    writeFileSync(person.profile, 'chronometric: {\n');
    await provoke(server);
    assert.ok(contentsOf(person.dataDir).includes(CANARY), 'the state keeps it, and nothing else does');
    // Another file in its place, which is not a database.
    rmSync(person.dataDir, { recursive: true });
    mkdirSync(person.dataDir);
    writeFileSync(join(person.dataDir, 'chronometric.db'), 'x'.repeat(8192));
    for (const [tool, args] of REFUSED) assert.equal((await server.call(tool, args)).isError, true, tool);
    assert.equal((await server.call('mark_session_end', { summary: CANARY })).protocolError?.code, -32603);
    assert.equal(await server.end(), 0);
    assertSilent(server);
    assert.notEqual(server.stderr(), '');
  });
});
