import assert from 'node:assert/strict';
import { test } from 'node:test';
import { systemClock } from '../../../src/kit/clock/clock.ts';
import { GuardedClient } from '../../../src/kit/http/guarded-client.ts';
import type { ChannelTools, Message } from '../../../src/notify/channels/channel.ts';
import { desktop, desktopCommand, noDesktop } from '../../../src/notify/channels/local-channels.ts';
import { lacks } from '../../support/tools.ts';
import { type BusAnswer, BusService, startBus } from '../idle-probes/bus-service.ts';

const NAME = 'org.freedesktop.Notifications';
const NOTIFY = `/org/freedesktop/Notifications ${NAME}.Notify`;

const message: Message = {
  ...{ id: 'ntf_1', kinds: ['approvals'], at: 0, about: {}, links: [] },
  // Quotes, markup and a word that looks like a type or an option must arrive unchanged.
  title: `@as [] "it's" -- --dest x`,
  text: 'alice → bob <b>5,000.00</b> & "more"\nuint32 7',
};

const toolsOn = (variables: ChannelTools['variables']): ChannelTools => ({
  ...{ http: new GuardedClient({ who: '', remedy: '' }), clock: systemClock, signal: new AbortController().signal },
  ...{ variables, vapid: { publicKey: '', privateKey: '', subject: '' } },
});

/** The texts at the beginning of a call's body: D-Bus puts a length before each, aligned to four. */
function notified(body: Buffer) {
  let at = 0;
  const number = () => {
    at = Math.ceil(at / 4) * 4 + 4;
    return body.readUInt32LE(at - 4);
  };
  const text = () => {
    const bytes = number();
    at += bytes + 1;
    return body.toString('utf8', at - bytes - 1, at - 1);
  };
  return { app: text(), replaces: number(), icon: text(), title: text(), text: text() };
}

test('a message is shown on a real session bus, verbatim, and a desktop that refuses is retried', async (t) => {
  if (lacks(t, ['dbus-daemon', 'gdbus'])) return;
  const socket = await startBus(t);
  const answers = new Map<string, BusAnswer>([[NOTIFY, { u: 7 }]]);
  const service = await BusService.start(socket, [NAME], answers);
  t.after(() => service.stop());
  const tools = toolsOn({ PATH: process.env.PATH, DBUS_SESSION_BUS_ADDRESS: `unix:path=${socket}` });
  assert.equal(noDesktop('linux', { ...tools.variables, DISPLAY: ':0' }), undefined);
  assert.match(noDesktop('linux', tools.variables)!, /neither DISPLAY nor WAYLAND_DISPLAY is set/);
  const remote = { ...tools.variables, DISPLAY: ':10', SSH_CONNECTION: '10.0.0.1 5 10.0.0.2 22' };
  assert.match(noDesktop('linux', remote)!, /an ssh session/);
  assert.deepEqual(await desktop.tell({}, message, tools), { result: 'done' });
  const body = service.bodies[service.calls.indexOf('Notify')]!;
  assert.deepEqual(notified(body), {
    ...{ app: 'Reveille', replaces: 0, icon: '', title: message.title },
    text: 'alice → bob &lt;b&gt;5,000.00&lt;/b&gt; &amp; "more"\nuint32 7',
  });
  answers.set(NOTIFY, { error: 'org.freedesktop.DBus.Error.Failed' });
  assert.equal((await desktop.tell({}, message, tools)).result, 'later');
  await service.stop();
  assert.equal((await desktop.tell({}, message, tools)).result, 'later');
});

test('without a session there is no desktop, and a bus without a local socket is not used', () => {
  assert.match(noDesktop('linux', { DISPLAY: ':0', XDG_RUNTIME_DIR: '/nowhere' })!, /there is no session bus/);
  assert.match(
    noDesktop('linux', { DISPLAY: ':0', DBUS_SESSION_BUS_ADDRESS: 'tcp:host=x,port=1' })!,
    /names no local socket/,
  );
});

test('on macOS and Windows the texts are arguments or variables, and never part of a script', () => {
  const mac = desktopCommand(message, 'darwin', {});
  assert.deepEqual(mac.command.slice(-2), [message.title, message.text]);
  assert.ok(mac.command.slice(0, -2).every((arg) => !arg.includes('alice')));
  const windows = desktopCommand(message, 'win32', { SystemRoot: 'C:\\Windows' });
  assert.deepEqual(windows.more, { REVEILLE_TITLE: message.title, REVEILLE_TEXT: message.text });
  const script = Buffer.from(windows.command.at(-1)!, 'base64').toString('utf16le');
  assert.ok(script.includes('$env:REVEILLE_TITLE') && !script.includes('alice'));
});
