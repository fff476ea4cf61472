/** A night of alarms with conditions, with `reveille up` and the actions of a person. */

import assert from 'node:assert/strict';
import { existsSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { START_LIMIT_MS } from '../support/cluster/processes.ts';
import { startReveille } from '../support/command-line.ts';
import { eventually } from '../support/eventually.ts';
import { atEnd } from '../support/temporary.ts';
import { needs } from '../support/tools.ts';
import {
  addChannel,
  assertConsole,
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
  openHome,
  openModel,
  openNight,
  openPage,
  setAbsence,
  setChain,
} from './conditions-night.ts';

const NOES = 20;

test('a night with reveille up: checks, events, a chain, an absence and a command are shown as they happened', {
  skip: needs('bubblewrap'),
}, async (t) => {
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
  const { hook } = await night.set('deploys', FIELDS.deploys('PT10S'));
  for (const [n, body] of BODIES.entries())
    assert.deepEqual(await night.post(hook!.address, body, `d${n}`), { recorded: 1, known: 0 });
  await setAbsence(night, model);
  await setChain(night);
  writeFileSync(join(at.workspace, 'go'), '');
  await night.set('backup', FIELDS.backup, true);

  // A series that has only been skipped so far is shown too.
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
  await assertConsole(night, ledger);
  await assertLog(night, ledger);
  await assertNotifications(night);
  t.diagnostic(`${ledger.inbox.length} checks, ${EVENTS} events, ${LABELS.length} turns`);
});
