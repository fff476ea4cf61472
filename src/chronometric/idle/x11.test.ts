import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { IdleHost } from './idle.ts';
import { idleOfXprintidle, x11Probe } from './linux.ts';

test('only complete output of xprintidle is accepted', () => {
  assert.equal(idleOfXprintidle('0\n'), 0);
  assert.equal(idleOfXprintidle('754321\n'), 754_321);
  for (const output of [
    '',
    '12',
    '-1\n',
    '1.5\n',
    '12 ms\n',
    '12\n13\n',
    ' 12\n',
    'couldn’t open display\n',
    '9'.repeat(99),
  ]) {
    assert.throws(() => idleOfXprintidle(output), { message: 'its answer is not a number of milliseconds' });
  }
});

async function reasonIn(environment: Record<string, string>, files: string[] = ['/usr/bin/xprintidle']) {
  const host: IdleHost = {
    platform: 'linux',
    environment,
    uid: 1000,
    exists: (path) => files.includes(path),
    run: async (path) => {
      assert.equal(path, '/usr/bin/xprintidle');
      return '754321\n';
    },
  };
  const reading = await x11Probe(host).read(new AbortController().signal);
  return 'unavailable' in reading ? reading.unavailable : reading.idleMs;
}

test('X is queried only on a display of this machine, and never in a Wayland session', async () => {
  assert.equal(await reasonIn({ DISPLAY: ':0' }), 754_321);
  assert.equal(await reasonIn({ DISPLAY: 'unix:1.0' }), 754_321);
  assert.match(String(await reasonIn({})), /DISPLAY is not set/);
  for (const display of ['desk:0', 'localhost:10.0', '10.0.0.1:0', '0', ':0;x', 'tcp/a:0']) {
    assert.match(String(await reasonIn({ DISPLAY: display })), /not a display of this computer/);
  }
  for (const wayland of [{ WAYLAND_DISPLAY: 'wayland-0' }, { XDG_SESSION_TYPE: 'wayland' }]) {
    assert.match(String(await reasonIn({ DISPLAY: ':0', ...wayland })), /Wayland/);
  }
});

test('without its variables a Wayland session is recognised by its socket', async () => {
  const files = ['/usr/bin/xprintidle', '/run/user/1000/wayland-0'];
  assert.match(String(await reasonIn({ DISPLAY: ':0' }, files)), /Wayland/);
  assert.equal(await reasonIn({ DISPLAY: ':0', XDG_SESSION_TYPE: 'x11' }, files), 754_321);
});

test('without xprintidle the probe reports that it is not installed', async () => {
  await assert.rejects(reasonIn({ DISPLAY: ':0' }, []), {
    code: 'unavailable',
    message: 'xprintidle is not installed',
  });
});
