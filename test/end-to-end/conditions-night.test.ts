/** A night of alarms with conditions: with `reveille up`, and with daemons that are killed at each step. */
import assert from 'node:assert/strict';
import { existsSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { type TestContext, test } from 'node:test';
import { loadOrMakeLabel, loadOrMakeSecrets, makeHome, writeRun } from '../../src/cli/home/home.ts';
import { PROGRAM } from '../../src/cli/home/package-root.ts';
import { loadOrCreateKey } from '../../src/kit/identity/keys.ts';
import { createRouterClient } from '../../src/router/client.ts';
import { ownerOf } from '../../src/wire/did.ts';
import { formatInstant } from '../../src/wire/rfc3339.ts';
import { Daemon } from '../support/cluster/daemon.ts';
import { freePort, START_LIMIT_MS } from '../support/cluster/processes.ts';
import { startReveille } from '../support/command-line.ts';
import { eventually } from '../support/eventually.ts';
import { atEnd } from '../support/temporary.ts';
import {
  assertLedger,
  assertLog,
  assertNotifications,
  assertTurns,
  BODIES,
  EVENTS,
  FIELDS,
  LABELS,
  type Label,
  type Model,
  type Night,
  type NightHome,
  openHome,
  openModel,
  openNight,
  openPage,
} from './conditions-night.ts';

const NOES = 20;

/** A channel that keeps each notification in a file of its own. */
const addChannel = ({ cli, told }: Night) =>
  cli('notify', 'add', 'command', '--about', 'all', '--', '/bin/sh', '-c', 'cat > "$(mktemp "$0/XXXXXXXX")"', told);

/** Daemons as separate processes on fixed ports, which a test kills and starts again. */
async function startDaemons(t: TestContext, at: NightHome, model: Model, page: { url: string }) {
  makeHome(at.home);
  const secrets = loadOrMakeSecrets(at.home);
  const label = loadOrMakeLabel(at.home);
  loadOrCreateKey(at.home.keyFile);
  const [chronosPort, routerPort, publicPort] = [await freePort(), await freePort(), await freePort()];
  const chronosUrl = `http://127.0.0.1:${chronosPort}`;
  const routerUrl = `http://127.0.0.1:${routerPort}`;
  const env = { REVEILLE_HOME: at.home.path, ...secrets };
  const daemon = (name: string, url: string, more: Record<string, string>) =>
    new Daemon({ name, command: [name], url, logFile: join(at.folder, `${name}.log`), env: { ...env, ...more } });
  const router = daemon('router', routerUrl, {
    ...{ ROUTER_PORT: String(routerPort), ROUTER_PUBLIC_PORT: String(publicPort), ROUTER_CHRONOS_URL: chronosUrl },
    ...{ ROUTER_WAKE_TOKEN: secrets.CHRONOS_WAKE_TOKEN, ROUTER_CHECK_ALLOW: new URL(page.url).host },
  });
  const chronosd = daemon('chronosd', chronosUrl, {
    ...{ CHRONOS_PORT: String(chronosPort), CHRONOS_ROUTER_WAKE_URL: `${routerUrl}/internal/wake` },
    CHRONOS_MIN_INTERVAL_SECONDS: '1',
  });
  for (const one of [router, chronosd]) atEnd(t, () => one.end());
  await Promise.all([router.start(), chronosd.start()]);
  const machines = createRouterClient({ url: routerUrl, token: secrets.ROUTER_ADMIN_TOKEN });
  const neoEnv = {
    ...{ NEO_MODEL: 'agent', NEO_MODEL_BASE_URL: model.baseUrl, NEO_CHEAP_MODEL: 'none', NEO_MANIFEST: 'none' },
    ...{ NEO_WORKSPACE: at.workspace, NEO_DATA_DIR: join(at.folder, 'neo') },
  };
  const spec = { command: [process.execPath, PROGRAM, 'neo'], env: neoEnv };
  await machines.put(ownerOf(label), { provider: 'process', spec, token: secrets.NEO_DAEMON_TOKEN });
  const started_at = formatInstant(Date.now());
  const places = { chronos_url: chronosUrl, router_url: routerUrl, public_url: `http://127.0.0.1:${publicPort}` };
  writeRun(at.home, { pid: process.pid, ...places, started_at });
  return { chronosd, router };
}

/** Sets three alarms that follow one another; the first one fires in a second. */
async function setChain({ set, patch, ids }: Night): Promise<void> {
  await set('fetch', { delay_seconds: 3600 });
  await set('sum', { kind: 'event', after: { alarm: ids.get('fetch')! } });
  await set('report', { kind: 'event', after: { alarm: ids.get('sum')! } });
  await patch('fetch', { delay_seconds: 1 });
}

/** Sets an alarm whose turn does not end, and one that expects its end. */
async function setAbsence({ set, ids }: Night, model: Model): Promise<void> {
  model.hold('nightly', 'watch');
  await set('nightly', { delay_seconds: 1 });
  const expect = { every: 'PT8S', grace: 'PT1S' };
  await set('watch', { kind: 'event', after: { alarm: ids.get('nightly')! }, expect });
}

/** The absence was told: the next one would be tomorrow. */
const calmDown = ({ patch }: Night) => patch('watch', { expect: { every: 'P1D' } });

/** All webhooks again, as their sender does when it has lost the answers. */
async function assertRedeliveries({ post }: Night, address: string): Promise<void> {
  for (const [n, body] of BODIES.entries())
    assert.deepEqual(await post(address, body, `again-${n}`), { recorded: 0, known: 1 });
}

test('a night with reveille up: checks, events, a chain, an absence and a command are told as they happened', async (t) => {
  const at = await openHome(t);
  const [model, page] = [await openModel(t), await openPage(t, NOES + 1)];
  const env = {
    ...{ CHRONOS_PORT: '0', ROUTER_PORT: '0', ROUTER_PUBLIC_PORT: '0', EXECUTOR_PORT: '0' },
    ...{ NEO_MODEL: 'agent', NEO_MODEL_BASE_URL: model.baseUrl, NEO_CHEAP_MODEL: 'none', NEO_WORKSPACE: at.workspace },
    ...{ CHRONOS_MIN_INTERVAL_SECONDS: '1', ROUTER_CHECK_ALLOW: new URL(page.url).host },
  };
  const up = startReveille(t, at.home.path, ['up', '--json'], { env });
  atEnd(t, () => up.end('SIGTERM'));
  await eventually(
    'up is running',
    () => {
      assert.equal(up.outcome.status, null, up.outcome.stderr);
      return existsSync(at.home.runFile);
    },
    START_LIMIT_MS,
  );
  const night = openNight(at, env);
  await addChannel(night);
  await night.set('inbox', FIELDS.inbox(page.url));
  const { hook } = await night.set('deploys', FIELDS.deploys);
  for (const [n, body] of BODIES.entries())
    assert.deepEqual(await night.post(hook!.address, body, `d${n}`), { recorded: 1, known: 0 });
  await setAbsence(night, model);
  await setChain(night);
  writeFileSync(join(at.workspace, 'go'), '');
  await night.set('backup', FIELDS.backup, true);

  // A series that has only been skipped so far is told too.
  await eventually('a check has said no', () => page.hits >= 3);
  assert.match(await night.cli('log'), /skipped {2}inbox/);
  await model.isAsked('watch');
  await calmDown(night);
  model.release('watch');
  await night.finished('watch');
  model.release('nightly');
  for (const name of LABELS) await night.finished(name);
  await assertRedeliveries(night, hook!.address);

  const ledger = await assertLedger(night);
  assert.equal(ledger.inbox.length, NOES + 1);
  assert.equal(page.hits, NOES + 1);
  await assertTurns(night, ledger);
  for (const name of LABELS) assert.equal(model.asked(name).length, name === 'backup' ? 0 : 1, name);
  const [request] = model.asked('deploys');
  const prompt = request!.body.messages.map(({ content }) => content).join('\n');
  assert.ok(
    BODIES.every((body) => prompt.includes(body)),
    prompt,
  );
  await assertLog(night, ledger);
  await assertNotifications(night);
  t.diagnostic(`${ledger.inbox.length} checks, ${EVENTS} events, ${LABELS.length} turns`);
});

test('a night in which each daemon is killed at each step: no turn and no notification is lost or repeated', async (t) => {
  const at = await openHome(t);
  const [model, page] = [await openModel(t), await openPage(t, Number.POSITIVE_INFINITY)];
  const { chronosd, router } = await startDaemons(t, at, model, page);
  const night = openNight(at, {});
  await addChannel(night);
  const notifier = startReveille(t, at.home.path, ['notifier', '--json']);
  await notifier.until(({ stdout }) => stdout.includes('"system":"notifier"'));
  let kills = 0;
  const crash = async (...daemons: Daemon[]) => {
    for (const daemon of daemons) {
      kills++;
      await daemon.kill();
      await daemon.start();
    }
  };
  /** Kills Neo in the middle of turns, which continue. */
  const crashNeo = async (...names: Label[]) => {
    const before = names.map((name) => model.asked(name).length);
    kills++;
    process.kill(night.neo()!.pid, 'SIGKILL');
    for (const [n, name] of names.entries())
      await eventually(`Neo asks again for ${name}`, () => model.asked(name).length > before[n]!);
  };

  // A check: while it says no, and in the turn after its yes.
  model.hold('inbox', 'deploys', 'fetch', 'sum', 'report');
  await night.set('inbox', FIELDS.inbox(page.url));
  for (const daemon of [chronosd, router]) {
    const { hits } = page;
    await eventually('checks go on', () => page.hits >= hits + 2);
    await crash(daemon);
  }
  page.yesAt = page.hits + 2;
  await model.isAsked('inbox');
  await crashNeo('inbox');
  await crash(chronosd, router);
  model.release('inbox');
  await night.finished('inbox');

  // A burst of webhooks, and the turn that has them.
  const { hook } = await night.set('deploys', FIELDS.deploys);
  for (const [n, body] of BODIES.entries()) {
    if (n === EVENTS / 3) await crash(chronosd);
    if (n === (2 * EVENTS) / 3) await crash(router);
    // A killed daemon may have recorded it before it answered.
    const { recorded, known } = await night.post(hook!.address, body, `d${n}`);
    assert.equal(recorded + known, 1);
  }
  await model.isAsked('deploys');
  await crashNeo('deploys');
  await crash(chronosd, router);
  model.release('deploys');
  await night.finished('deploys');
  await assertRedeliveries(night, hook!.address);

  // A chain: in each turn, and between the end of a turn and its follower.
  await setChain(night);
  for (const name of ['fetch', 'sum', 'report'] as const) {
    await model.isAsked(name);
    await crashNeo(name);
    await crash(router, chronosd);
    model.release(name);
    await crash(name === 'sum' ? router : chronosd);
  }
  await night.finished('report');

  // An absence: before it is due, and in its turn.
  await setAbsence(night, model);
  await model.isAsked('nightly');
  await crash(chronosd, router);
  await model.isAsked('watch');
  await calmDown(night);
  await crashNeo('nightly', 'watch');
  await crash(chronosd, router);
  model.release('watch');
  await night.finished('watch');
  model.release('nightly');
  await night.finished('nightly');

  // A command that fails: while it runs.
  await night.set('backup', FIELDS.backup, true);
  await eventually('the command runs', () => existsSync(join(at.workspace, 'runs')));
  await crash(chronosd, router);
  writeFileSync(join(at.workspace, 'go'), '');
  await night.finished('backup');

  const ledger = await assertLedger(night);
  await assertTurns(night, ledger);
  await assertLog(night, ledger);
  await assertNotifications(night);
  t.diagnostic(`${kills} kills, ${ledger.inbox.length} checks, ${EVENTS} events, ${LABELS.length} turns`);
});
