import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { writeFileSync } from 'node:fs';
import { type TestContext, test } from 'node:test';
import { x11Probe } from '../../../src/chronometric/idle/linux.ts';
import { readIdle } from '../../../src/chronometric/idle/open-idle.ts';
import { programHost } from '../../../src/chronometric/idle/program-host.ts';
import { systemClock, wait } from '../../../src/kit/clock/clock.ts';
import { lacks } from '../../support/tools.ts';
import { personOf, startServer } from '../chronometric/server-process.ts';
import { pathOf } from './desktop-tools.ts';
import { startProgram } from './started-program.ts';

/** An X server without a screen, reachable only by its socket. */
async function startDisplay(t: TestContext): Promise<string> {
  const args = ['-displayfd', '3', '-screen', '0', '64x64x8', '-nolisten', 'tcp', '-noreset'];
  const { line } = await startProgram(t, pathOf('Xvfb'), args, 3);
  return `:${line.trim()}`;
}

const idleOn = (environment: Record<string, string>) => readIdle([x11Probe(programHost(environment))], systemClock);

async function idleMsOn(display: string): Promise<number> {
  const reading = await idleOn({ DISPLAY: display, XDG_SESSION_TYPE: 'x11' });
  assert.ok('idleMs' in reading, JSON.stringify(reading));
  assert.equal(reading.source, 'x11');
  return reading.idleMs;
}

/** Queries the idle time until the display is idle this long. */
async function untilIdle(display: string, ms: number): Promise<number> {
  for (;;) {
    const idleMs = await idleMsOn(display);
    if (idleMs >= ms) return idleMs;
    await wait(systemClock, 100);
  }
}

/** Gives input and reads the idle time; more than once, because on a busy machine the same time may pass in between. */
async function fallsBelow(before: number, display: string, input: readonly string[]): Promise<boolean> {
  for (let round = 0; round < 10; round++) {
    const given = spawnSync(pathOf('xdotool'), [...input], { env: { DISPLAY: display }, encoding: 'utf8' });
    assert.equal(given.status, 0, given.stderr);
    if ((await idleMsOn(display)) < before) return true;
  }
  return false;
}

test('X11 idle time grows on a real X server and restarts with a key and with the pointer', async (t) => {
  if (lacks(t, ['Xvfb', 'xdotool', 'xprintidle'])) return;
  const display = await startDisplay(t);
  for (const input of [
    ['key', 'a'],
    ['mousemove_relative', '1', '1'],
  ]) {
    const before = await untilIdle(display, 1000);
    assert.ok(await fallsBelow(before, display, input), `idle time did not fall below ${before} ms after ${input[0]}`);
  }
});

test('with consent idle_status answers with the idle time of a real desktop, and without it no longer', async (t) => {
  if (lacks(t, ['Xvfb', 'xprintidle'])) return;
  const person = personOf(t);
  const env = {
    REVEILLE_PROFILE: person.profile,
    DISPLAY: await startDisplay(t),
    XDG_SESSION_TYPE: 'x11',
    XDG_RUNTIME_DIR: person.home,
  };
  writeFileSync(person.profile, 'privacy: {os_idle_consent: true}\n');
  const server = await startServer(t, person, { env });
  const { structured } = await server.call('idle_status');
  assert.deepEqual([structured.consent_granted, structured.source], [true, 'x11']);
  assert.match(structured.os_idle_duration, /^PT/);
  assert.notEqual(structured.hyperfocus_signal, 'unknown');
  writeFileSync(person.profile, 'privacy: {os_idle_consent: false}\n');
  const withdrawn = { consent_granted: false, hyperfocus_signal: 'unknown' };
  assert.deepEqual((await server.call('idle_status')).structured, withdrawn);
  assert.equal(await server.end(), 0);
});

test('the X server of a Wayland session is not queried, though it would answer', async (t) => {
  if (lacks(t, ['Xvfb', 'xprintidle'])) return;
  const display = await startDisplay(t);
  for (const wayland of [{ XDG_SESSION_TYPE: 'wayland' }, { WAYLAND_DISPLAY: 'wayland-0' }]) {
    assert.deepEqual(await idleOn({ DISPLAY: display, ...wayland }), {
      unavailable: 'x11: a Wayland session, in which X does not see input',
    });
  }
});

test('a missing display is unavailable with the message of xprintidle', async (t) => {
  if (lacks(t, ['xprintidle'])) return;
  const reading = await idleOn({ DISPLAY: ':54321', XDG_SESSION_TYPE: 'x11' });
  assert.ok('unavailable' in reading);
  assert.match(reading.unavailable, /^x11: \/usr\/bin\/xprintidle ended with 1: /);
});
