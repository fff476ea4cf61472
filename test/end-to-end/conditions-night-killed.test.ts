/** A night of alarms with conditions, with separate daemons that are killed at each step. */

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
import { startReveille } from '../support/command-line.ts';
import { eventually } from '../support/eventually.ts';
import { reservePort } from '../support/ports.ts';
import { atEnd } from '../support/temporary.ts';
import { needs } from '../support/tools.ts';
import {
  addChannel,
  assertLedger,
  assertLog,
  assertNotifications,
  assertRedeliveries,
  assertTurns,
  BODIES,
  calmDown,
  EVENTS,
  FIELDS,
  LABELS,
  type Label,
  type Model,
  type NightHome,
  openHome,
  openModel,
  openNight,
  openPage,
  setAbsence,
  setChain,
} from './conditions-night.ts';

/** Daemons as separate processes on fixed ports, which a test kills and starts again. */
async function startDaemons(t: TestContext, at: NightHome, model: Model, page: { url: string }) {
  makeHome(at.home);
  const secrets = loadOrMakeSecrets(at.home);
  const label = loadOrMakeLabel(at.home);
  loadOrCreateKey(at.home.keyFile);
  const [chronosPort, routerPort, publicPort] = [await reservePort(), await reservePort(), await reservePort()];
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

test('no turn and no notification is lost or repeated when each daemon is killed at each step', {
  skip: needs('bubblewrap'),
}, async (t) => {
  const at = await openHome(t);
  const [model, page] = [await openModel(t), await openPage(t, Number.POSITIVE_INFINITY)];
  const { chronosd, router } = await startDaemons(t, at, model, page);
  const night = openNight(at, {});
  await addChannel(night);
  const notifier = startReveille(t, at.home.path, ['notifier', '--json']);
  await notifier.until(({ stdout }) => stdout.includes('"system":"notifier"'));
  const kills = { chronosd: 0, router: 0, neo: 0 };
  const crash = async (...daemons: Daemon[]) => {
    for (const daemon of daemons) {
      kills[daemon === router ? 'router' : 'chronosd']++;
      await daemon.kill();
      await daemon.start();
    }
  };
  /** Kills Neo in the middle of turns, which continue. */
  const crashNeo = async (...names: Label[]) => {
    const before = names.map((name) => model.asked(name).length);
    kills.neo++;
    process.kill(night.neo()!.pid, 'SIGKILL');
    for (const [n, name] of names.entries())
      await eventually(`Neo asks again for ${name}`, () => model.asked(name).length > before[n]!);
  };
  const checksGoOn = () => {
    const { hits } = page;
    return eventually('checks go on', () => page.hits >= hits + 2);
  };
  let sent = 0;
  const deploy = async (address: string) => {
    for (const end = sent + EVENTS / 3; sent < end; sent++) {
      // A killed daemon may have recorded it before it answered.
      const { recorded, known } = await night.post(address, BODIES[sent]!, `d${sent}`);
      assert.equal(recorded + known, 1);
    }
  };

  // A check says no, and webhooks come.
  model.hold('inbox', 'deploys', 'fetch', 'sum', 'report');
  await night.set('inbox', FIELDS.inbox(page.url));
  const { hook } = await night.set('deploys', FIELDS.deploys('PT2S'));
  const { address } = hook!;
  const order = (action: 'pause' | 'resume', name: Label) => night.cli('alarm', action, night.ids.get(name)!);
  await checksGoOn();
  // On a busy computer, a start may take longer than the burst should be quiet.
  await order('pause', 'deploys');
  await deploy(address);
  await crash(chronosd);
  await checksGoOn();
  await deploy(address);
  await crash(router);
  await deploy(address);
  // A wake that met no router is tried again half a minute later.
  await order('pause', 'inbox');
  for (const name of ['inbox', 'deploys'] as const) await order('resume', name);
  await checksGoOn();

  // The check says yes, and the webhooks have been quiet.
  page.yesAt = page.hits + 2;
  await Promise.all([model.isAsked('inbox'), model.isAsked('deploys')]);
  await crashNeo('inbox', 'deploys');
  await crash(chronosd, router);
  for (const name of ['inbox', 'deploys'] as const) {
    model.release(name);
    await night.finished(name);
  }
  await assertRedeliveries(night, address);

  // A turn that does not end, and a chain beside it: in each turn, and between the end of one and its follower.
  await setAbsence(night, model);
  const calmed = model.isAsked('watch').then(() => calmDown(night));
  await setChain(night);
  await Promise.all([model.isAsked('nightly'), model.isAsked('fetch')]);
  await crashNeo('nightly', 'fetch');
  model.release('fetch');
  await crash(chronosd);
  await model.isAsked('sum');
  await crash(router);
  model.release('sum');
  await crash(chronosd);
  await Promise.all([model.isAsked('report'), calmed]);
  await crashNeo('nightly', 'report', 'watch');
  await crash(router, chronosd);
  for (const name of ['report', 'watch', 'nightly'] as const) {
    model.release(name);
    await night.finished(name);
  }

  // A command that fails. A new router finds its output, but not how it ended.
  await night.set('backup', FIELDS.backup, true);
  await eventually('the command runs', () => existsSync(join(at.workspace, 'runs')));
  await crash(chronosd, router);
  writeFileSync(join(at.workspace, 'go'), '');
  await night.finished('backup');

  // A router that is killed between the start of a turn and its answer gets the wake again, half a minute later.
  for (const name of LABELS)
    await eventually(`the wake of ${name} is answered`, async () =>
      (await night.fires(name)).some(({ outcome }) => outcome === 'delivered'),
    );
  const ledger = await assertLedger(night, 'unknown');
  await assertTurns(night, ledger);
  await assertLog(night, ledger, 'unknown');
  await assertNotifications(night, 'unknown');
  t.diagnostic(
    `kills: ${JSON.stringify(kills)}; ${ledger.inbox.length} checks, ${EVENTS} events, ${LABELS.length} turns`,
  );
});
