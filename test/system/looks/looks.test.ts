/**
 * Alarms that wait for files and processes, with chronosd and the router as real processes, a machine folder, and
 * `kill -9` in between: every change is reported, and none twice.
 */
import assert from 'node:assert/strict';
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { appendFileSync, mkdirSync, renameSync, symlinkSync, unlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { type TestContext, test } from 'node:test';
import { type ChronosClient, createChronosClient, holdPrincipal } from '../../../src/chronos/client.ts';
import { agentIdentity } from '../../../src/kit/identity/agent.ts';
import { generateKey } from '../../../src/kit/identity/keys.ts';
import { eventsOf, fixtureMachine, WAKE_TOKEN } from '../../../src/router/testing/bench.ts';
import { type RouterProcess, startRouterProcess } from '../../../src/router/testing/router-process.ts';
import type { EventSource } from '../../../src/wire/conditions.ts';
import { firstLine, PROGRAM, pause } from '../../support/cluster/processes.ts';
import { eventually } from '../../support/eventually.ts';
import { reservePort } from '../../support/ports.ts';
import { atEnd, temporaryFolder } from '../../support/temporary.ts';

const TOKEN = 'transport-token-of-the-looks';

type Event = { id: string; data: { change: string; name?: string; pid?: number; entries?: number } };

/** chronosd, a router, a machine of ada with a folder, and what was delivered to the machine. */
async function createSite(t: TestContext) {
  const home = temporaryFolder(t);
  const machine = temporaryFolder(t);
  const [routerPort, chronosPort] = [await reservePort(), await reservePort()];
  let router: RouterProcess;
  const startRouter = async () => {
    router = await startRouterProcess(t, join(home, 'router'), { ROUTER_PORT: String(routerPort) });
  };
  let chronosd: ChildProcess | undefined;
  let log = '';
  const startChronosd = async () => {
    const child = spawn(process.execPath, [PROGRAM, 'chronosd', '--json'], {
      env: {
        ...{ PATH: process.env.PATH, REVEILLE_HOME: join(home, 'chronosd'), CHRONOS_PORT: String(chronosPort) },
        ...{ CHRONOS_TOKEN: TOKEN, CHRONOS_AGENT_AUTH_SECRET: 'principal-secret-of-the-looks' },
        ...{ CHRONOS_ADMIN_TOKEN: 'admin-token-of-the-looks', CHRONOS_WAKE_TOKEN: WAKE_TOKEN },
        CHRONOS_ROUTER_WAKE_URL: `http://127.0.0.1:${routerPort}/internal/wake`,
      },
      stdio: ['ignore', 'pipe', 'pipe'],
    });
    child.stderr.setEncoding('utf8').on('data', (text: string) => {
      log += text;
    });
    chronosd = child;
    await firstLine(child);
  };
  const end = async (signal: NodeJS.Signals) => {
    if (!chronosd || chronosd.exitCode !== null || chronosd.signalCode !== null) return;
    const ended = once(chronosd, 'exit');
    chronosd.kill(signal);
    await ended;
  };
  atEnd(t, () => end('SIGTERM'));
  await startRouter();
  await startChronosd();
  const { spec, ...more } = fixtureMachine(machine, undefined, { idle_seconds: 3600 });
  await router!.put('ada', { ...more, spec: { ...spec, cwd: machine } });
  const client: ChronosClient = createChronosClient({
    ...{ url: `http://127.0.0.1:${chronosPort}`, token: TOKEN, principal: holdPrincipal(), timeoutMs: 20_000 },
    identity: agentIdentity('ada', generateKey()),
  });
  mkdirSync(join(machine, 'inbox'));

  /** The events of each wake, of one alarm, by fire id; a repeated wake has the same. */
  function wakesOf(alarm: string): Event[][] {
    const wakes = new Map<string, string>();
    for (const { body } of eventsOf(machine, 'chat')) {
      const { alarm_id, fire_id, payload } = JSON.parse(Buffer.from(body!, 'base64').toString('utf8'));
      if (alarm_id !== alarm) continue;
      const events = JSON.stringify(payload?.events);
      assert.equal(wakes.get(fire_id) ?? events, events, 'each try carries the same');
      wakes.set(fire_id, events);
    }
    return [...wakes.values()].map((text) => JSON.parse(text) as Event[]);
  }
  const reported = (alarm: string) =>
    wakesOf(alarm)
      .flat()
      .map(({ data: { change, name = '.' } }) => `${change} ${name}`)
      .sort();
  const set = async (fields: { event: EventSource }) =>
    (await client.createAlarm({ kind: 'event', wake_message: 'something came', ...fields })).id;
  return {
    ...{ machine, client, set, reported, wakesOf, startRouter, startChronosd },
    inbox: (name = '') => join(machine, 'inbox', name),
    killChronosd: () => end('SIGKILL'),
    killRouter: () => router.kill(),
    router: () => router,
    log: () => log,
  };
}

const watching = { source: 'file', path: 'inbox', look_every: 'PT1S', repeat: 'always', batch_up_to: 100 } as const;

test('every change of a folder is reported once, while chronosd and the router are killed', {
  timeout: 240_000,
}, async (t) => {
  const { inbox, machine, set, reported, wakesOf, client, ...site } = await createSite(t);
  for (let n = 0; n < 10; n++) writeFileSync(inbox(`before-${n}`), '');
  const id = await set({ event: watching });
  await pause(3000);
  assert.deepEqual(eventsOf(machine, 'start'), [], 'a look starts no machine');
  assert.deepEqual(reported(id), []);

  const names = Array.from({ length: 40 }, (_, n) => `file-${String(n).padStart(2, '0')}`);
  const expected: string[] = [];
  /** Does something with each file, some of it while a daemon is dead. */
  async function phase(what: string, act: (name: string) => readonly string[]): Promise<void> {
    for (const [index, name] of names.entries()) {
      expected.push(...act(name));
      if (index === 10) await site.killChronosd();
      if (index === 20) await site.startChronosd();
      if (index === 22) await site.killRouter();
      if (index === 30) await site.startRouter();
      await pause(40);
    }
    expected.sort();
    const isComplete = () => reported(id).length >= expected.length;
    await eventually(`all are reported: ${what}`, isComplete).catch(() => undefined);
    await pause(2500);
    assert.deepEqual(reported(id), expected, `${what}\n${site.log().slice(-2000)}`);
  }
  await phase('create', (name) => {
    writeFileSync(inbox(name), name);
    return [`created ${name}`];
  });
  await phase('change', (name) => {
    appendFileSync(inbox(name), 'more');
    return [`changed ${name}`];
  });
  await phase('rename', (name) => {
    renameSync(inbox(name), inbox(`${name}-renamed`));
    return [`deleted ${name}`, `created ${name}-renamed`];
  });
  await phase('delete', (name) => {
    unlinkSync(inbox(`${name}-renamed`));
    return [`deleted ${name}-renamed`];
  });
  const ids = wakesOf(id).flatMap((events) => events.map((event) => event.id));
  assert.equal(new Set(ids).size, ids.length);
  const { fires } = await client.listFires(id, { limit: 200 });
  const delivered = fires.filter(({ outcome }) => outcome === 'delivered');
  assert.equal(delivered.length, wakesOf(id).length, 'no look is in the ledger');
  assert.ok(fires.every(({ fire_id }) => fire_id.startsWith(id)));
});

test('a process that exits, quiet time, a deadline, and a folder with many files', { timeout: 120_000 }, async (t) => {
  const { inbox, set, reported, wakesOf, client, machine } = await createSite(t);
  const child = spawn('sleep', ['100']);
  t.after(() => child.kill('SIGKILL'));
  await once(child, 'spawn');
  const ofProcess = await set({ event: { source: 'process', pid: child.pid!, look_every: 'PT1S' } });
  const forever = await set({ event: { source: 'process', pid: child.pid!, look_every: 'PT1S', repeat: 'always' } });
  mkdirSync(join(machine, 'quiet'));
  const quiet = await set({ event: { ...watching, path: 'quiet', quiet_for: 'PT3S' } });
  mkdirSync(join(machine, 'silent'));
  const deadline = await set({
    event: { source: 'file', path: 'silent', look_every: 'PT1S', deadline: 'PT4S', repeat: 'once' },
  });
  const many = await set({ event: watching });

  child.kill('SIGKILL');
  for (let n = 0; n < 5; n++) {
    writeFileSync(join(machine, 'quiet', `${n}`), '');
    await pause(700);
  }
  for (let n = 0; n < 10_000; n++) writeFileSync(inbox(`${n}`), '');
  const ends = [ofProcess, forever, quiet, deadline];
  const isOver = () => ends.every((id) => wakesOf(id).length > 0) && reported(many).length > 0;
  await eventually('all have fired', isOver);
  await pause(4000);

  for (const id of [ofProcess, forever]) {
    assert.deepEqual(reported(id), ['exited .']);
    assert.equal((await client.getAlarm(id)).status, 'fired', 'nothing can come any more');
  }
  assert.deepEqual(
    wakesOf(quiet).map((events) => events.map(({ data }) => data.name)),
    [['0', '1', '2', '3', '4']],
    'one wake for all, in the order in which they came',
  );
  assert.deepEqual(wakesOf(deadline), [[]]);
  assert.equal((await client.getAlarm(deadline)).status, 'fired');
  const last = wakesOf(many).flat().at(-1)!;
  assert.deepEqual([last.data.change, last.data.entries], ['changed', 10_000]);
  assert.ok(reported(many).length < 1000, 'most are reported as one');
});

test('what cannot be looked at is refused when it is set, and failed looks are shown', {
  timeout: 120_000,
}, async (t) => {
  const { inbox, machine, set, client, killRouter, startRouter, reported } = await createSite(t);
  const outside = temporaryFolder(t);
  symlinkSync(outside, join(machine, 'out'));
  for (const path of ['out', '/etc', '..', 'out/../..', outside, '/proc/self/environ'])
    await assert.rejects(set({ event: { source: 'file', path } }), /not in a folder that the agent may read/, path);
  await assert.rejects(set({ event: { source: 'process', pid: 4_194_303 } }), /no process 4194303 runs/);

  const id = await set({ event: watching });
  await assert.rejects(
    client.patchAlarm(id, { event: { ...watching, path: '/etc' } }),
    /not in a folder that the agent may read/,
  );
  await client.patchAlarm(id, { event: { ...watching, quiet_for: 'PT1S' } });
  await killRouter();
  const shown = await eventually('the alarm shows it', async () => (await client.getAlarm(id)).last_error);
  assert.match(shown, /its source could not be looked at: cannot reach the router/);
  await assert.rejects(set({ event: watching }), /cannot reach the router/);
  writeFileSync(inbox('meanwhile'), '');
  await startRouter();
  await eventually('the look goes on', () => reported(id).length > 0);
  assert.deepEqual(reported(id), ['created meanwhile']);
  assert.equal((await client.getAlarm(id)).last_error, undefined);
  mkdirSync(join(machine, 'other'));
  await client.patchAlarm(id, { event: { ...watching, path: 'other' } });
  writeFileSync(join(machine, 'other', 'x'), '');
  await eventually('the other folder is looked at', () => reported(id).length > 1);
  assert.deepEqual(reported(id), ['created meanwhile', 'created x']);
});
