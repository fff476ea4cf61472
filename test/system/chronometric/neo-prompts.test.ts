import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { openState } from '../../../src/chronometric/state/open-state.ts';
import { systemClock } from '../../../src/kit/clock/clock.ts';
import { firstLine } from '../../support/cluster/processes.ts';
import { eventually } from '../../support/eventually.ts';
import { temporaryFolder } from '../../support/temporary.ts';

const PROGRAM = join(import.meta.dirname, '..', '..', '..', 'bin', 'reveille.mjs');
const TOKEN = 'the-daemon-token-of-this-neo';
const LIMIT_MS = 20_000;

test("a person's message to Neo is a prompt, an alarm's is not, and neither waits for chronometric", async (t) => {
  const home = temporaryFolder(t);
  const env = { PATH: process.env.PATH, HOME: home, REVEILLE_HOME: home, TZ: 'Europe/Berlin', NEO_MANIFEST: 'none' };
  const neo = spawn(process.execPath, [PROGRAM, 'neo', '--port', '0', '--json'], {
    env: { ...env, NEO_DAEMON_TOKEN: TOKEN },
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  const exited = once(neo, 'close');
  t.after(async () => {
    neo.kill('SIGKILL');
    await exited;
  });
  let log = '';
  neo.stderr.setEncoding('utf8').on('data', (text: string) => {
    log += text;
  });
  const line = await firstLine(neo);
  const { url } = JSON.parse(line) as { url: string };
  const send = async (body: object) => {
    const headers = { authorization: `Bearer ${TOKEN}`, 'content-type': 'application/json' };
    const { status } = await fetch(`${url}/chat`, { method: 'POST', headers, body: JSON.stringify(body) });
    assert.equal(status, 202);
  };
  const dataDir = join(home, 'chronometric');
  const state = openState({ dataDir, clock: systemClock, dayEnd: (instant) => instant });
  t.after(() => state.close());

  await send({ message: 'wake up', origin: 'chronos', alarm_id: '0197a6a0-0000-7000-8000-000000000001' });
  const before = systemClock.now();
  await send({ message: 'good morning' });
  await eventually('the prompt is reported', () => state.lastPromptAt() !== undefined, LIMIT_MS);
  const first = state.lastPromptAt()!;
  assert.ok(first >= before, 'the wake was no prompt');

  // A folder that can no longer be created: the prompt is accepted all the same.
  state.close();
  rmSync(dataDir, { recursive: true });
  writeFileSync(dataDir, 'a file where a folder should be');
  await send({ message: 'and once more' });
  await eventually('it is logged', () => /chronometric did not receive a prompt/.test(log), LIMIT_MS);
  assert.equal(neo.exitCode, null);
});
