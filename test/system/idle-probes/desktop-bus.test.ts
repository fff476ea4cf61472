import assert from 'node:assert/strict';
import { type TestContext, test } from 'node:test';
import type { IdleHost, IdleProbe } from '../../../src/chronometric/idle/idle.ts';
import { gnomeMutterProbe, kdeProbe } from '../../../src/chronometric/idle/linux.ts';
import { readIdle } from '../../../src/chronometric/idle/open-idle.ts';
import { programHost } from '../../../src/chronometric/idle/program-host.ts';
import { systemClock } from '../../../src/kit/clock/clock.ts';
import { lacks } from '../../support/tools.ts';
import { type BusAnswer, BusService, startBus } from './bus-service.ts';
import { type DesktopTool, pathOf } from './desktop-tools.ts';

const MUTTER = 'org.gnome.Mutter.IdleMonitor';
const MUTTER_METHOD = `/org/gnome/Mutter/IdleMonitor/Core ${MUTTER}.GetIdletime`;
const KDE_NAMES = ['org.freedesktop.ScreenSaver', 'org.kde.screensaver'];
const KDE_METHOD = '/ScreenSaver org.freedesktop.ScreenSaver.GetSessionIdleTime';

async function startService(t: TestContext, socket: string, names: string[], answers: [string, BusAnswer][]) {
  const service = await BusService.start(socket, names, new Map(answers));
  t.after(() => service.stop());
  return service;
}

/** A host on that bus that has only one of the two programs. */
function hostOn(socket: string, tool: DesktopTool, more: Record<string, string> = {}): IdleHost {
  const host = programHost({ XDG_SESSION_TYPE: 'x11', ...more, DBUS_SESSION_BUS_ADDRESS: `unix:path=${socket}` });
  return { ...host, exists: (path) => path === pathOf(tool) };
}

const read = (probe: IdleProbe) => readIdle([probe], systemClock);

for (const tool of ['busctl', 'gdbus'] as const) {
  const needs = ['dbus-daemon', tool] as const;

  test(`GNOME's idle time comes over a session bus by ${tool}`, async (t) => {
    if (lacks(t, needs)) return;
    const socket = await startBus(t);
    await startService(t, socket, [MUTTER], [[MUTTER_METHOD, { t: 754_321n }]]);
    for (const session of ['x11', 'wayland']) {
      const host = hostOn(socket, tool, { XDG_SESSION_TYPE: session });
      assert.deepEqual(await read(gnomeMutterProbe(host)), { idleMs: 754_321, source: 'gnome-mutter' });
    }
  });

  test(`KDE's idle time comes over a session bus by ${tool}, and not its 0 under Wayland`, async (t) => {
    if (lacks(t, needs)) return;
    const socket = await startBus(t);
    const answers = new Map<string, BusAnswer>([[KDE_METHOD, { u: 4_294_967 }]]);
    const service = await BusService.start(socket, KDE_NAMES, answers);
    t.after(() => service.stop());
    const x11 = kdeProbe(hostOn(socket, tool));
    const wayland = kdeProbe(hostOn(socket, tool, { XDG_SESSION_TYPE: 'wayland' }));
    assert.deepEqual(await read(x11), { idleMs: 4_294_967, source: 'kde' });
    answers.set(KDE_METHOD, { u: 0 });
    assert.deepEqual(await read(x11), { idleMs: 0, source: 'kde' });
    assert.deepEqual(await read(wayland), { unavailable: 'kde: under Wayland it always answers 0' });
    answers.set(KDE_METHOD, { error: 'org.freedesktop.DBus.Error.NotSupported' });
    assert.match(unavailable(await read(wayland)), /^kde: \/usr\/bin\/\w+ ended with 1/);
  });

  test(`${tool} does not ask a screen saver other than KDE's, because its unit is unknown`, async (t) => {
    if (lacks(t, needs)) return;
    const socket = await startBus(t);
    const service = await startService(t, socket, ['org.freedesktop.ScreenSaver'], [[KDE_METHOD, { u: 12 }]]);
    assert.match(unavailable(await read(kdeProbe(hostOn(socket, tool)))), /^kde: /);
    assert.deepEqual(service.calls, []);
  });

  test(`a desktop that answers nonsense or errors by ${tool} is unavailable, and the answer is not repeated`, async (t) => {
    if (lacks(t, needs)) return;
    const socket = await startBus(t);
    const answers = new Map<string, BusAnswer>();
    const service = await BusService.start(socket, [MUTTER], answers);
    t.after(() => service.stop());
    const probe = gnomeMutterProbe(hostOn(socket, tool));
    const expected: [BusAnswer, RegExp][] = [
      [{ s: '754321' }, /not an unsigned number$/],
      [{ t: 2n ** 64n - 1n }, /longer than a year$/],
      [{ error: 'org.freedesktop.DBus.Error.Failed' }, /ended with 1/],
    ];
    for (const [answer, reason] of expected) {
      answers.set(MUTTER_METHOD, answer);
      const unavailableReason = unavailable(await read(probe));
      assert.match(unavailableReason, reason);
      assert.doesNotMatch(unavailableReason, /754321|18446744073709551615/);
    }
  });

  test(`a desktop that never answers is abandoned after two seconds by ${tool}`, async (t) => {
    if (lacks(t, needs)) return;
    const socket = await startBus(t);
    const service = await startService(t, socket, [MUTTER], [[MUTTER_METHOD, 'silence']]);
    const probe = gnomeMutterProbe(hostOn(socket, tool));
    assert.equal(unavailable(await read(probe)), 'gnome-mutter: no answer within 2 s');
    assert.ok(service.calls.includes('GetIdletime'), 'it was asked');
  });

  test(`a bus without a desktop, and a socket without a bus, are unavailable by ${tool}`, async (t) => {
    if (lacks(t, needs)) return;
    const socket = await startBus(t);
    assert.match(unavailable(await read(gnomeMutterProbe(hostOn(socket, tool)))), /^gnome-mutter: .*/);
    assert.match(
      unavailable(await read(gnomeMutterProbe(hostOn(`${socket}-gone`, tool)))),
      /^gnome-mutter: .*ended with/,
    );
  });
}

function unavailable(reading: Awaited<ReturnType<typeof readIdle>>): string {
  assert.ok('unavailable' in reading, JSON.stringify(reading));
  return reading.unavailable;
}
