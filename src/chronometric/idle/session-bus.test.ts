import assert from 'node:assert/strict';
import { test } from 'node:test';
import { busAddress } from '../../kit/process/session-bus.ts';
import type { IdleHost } from './idle.ts';
import { numberOfBusctl, numberOfGdbus, queryBus } from './linux.ts';

type Run = { path: string; args: readonly string[] };

function hostWith(environment: Record<string, string>, files: string[] = [], answer = 't 5\n'): [IdleHost, Run[]] {
  const runs: Run[] = [];
  const host: IdleHost = {
    platform: 'linux',
    environment,
    uid: 1000,
    exists: (path) => files.includes(path),
    async run(path, args) {
      runs.push({ path, args });
      return answer;
    },
  };
  return [host, runs];
}

const QUESTION = { service: 'org.example.Idle', path: '/Idle', interface: 'org.example.Idle', method: 'Get' };

test('only complete answers of busctl and gdbus are accepted', () => {
  assert.equal(numberOfBusctl('t 0\n'), 0);
  assert.equal(numberOfBusctl('u 4294967295\n'), 4_294_967_295);
  assert.equal(numberOfGdbus('(uint64 754321,)\n'), 754_321);
  assert.equal(numberOfGdbus('(uint32 0,)\n'), 0);
  const hostile = [
    '',
    '\n',
    't\n',
    't 12',
    't 12\nt 13\n',
    't -5\n',
    't 1e9\n',
    't 0x10\n',
    't 5 6\n',
    'x 5\n',
    's "5"\n',
    't ٥\n',
    `t ${'9'.repeat(60_000)}\n`,
    '(uint64 12',
    '(uint64 12,)',
    '(uint64 -1,)\n',
    '(int64 12,)\n',
    "('12',)\n",
    '(uint64 12,)\n(uint64 13,)\n',
    '<html>\n',
    't 5\n\u0000',
  ];
  for (const output of hostile) {
    for (const parse of [numberOfBusctl, numberOfGdbus]) {
      assert.throws(() => parse(output), { code: 'unavailable', message: 'its answer is not an unsigned number' });
    }
  }
});

test('the bus is the one of the environment, or else the one of the user', () => {
  const bus = (environment: Record<string, string>, files: string[] = []) =>
    busAddress(hostWith(environment, files)[0]);
  assert.equal(
    bus({ DBUS_SESSION_BUS_ADDRESS: 'unix:path=/run/user/7/bus,guid=ab' }),
    'unix:path=/run/user/7/bus,guid=ab',
  );
  assert.equal(bus({ DBUS_SESSION_BUS_ADDRESS: 'tcp:host=a;unix:abstract=/tmp/b' }), 'unix:abstract=/tmp/b');
  assert.equal(bus({}, ['/run/user/1000/bus']), 'unix:path=/run/user/1000/bus');
  assert.equal(bus({ XDG_RUNTIME_DIR: '/srv/run' }, ['/srv/run/bus']), 'unix:path=/srv/run/bus');
});

test('a bus over the network, and a bus that would have to be started, are refused', () => {
  for (const address of ['tcp:host=10.0.0.1,port=1', 'unixexec:path=/bin/sh', 'autolaunch:', 'unix:dir=/tmp', 'x']) {
    const [host] = hostWith({ DBUS_SESSION_BUS_ADDRESS: address }, ['/run/user/1000/bus']);
    assert.throws(() => busAddress(host), { code: 'unavailable', message: /names no local socket/ });
  }
  assert.throws(() => busAddress(hostWith({})[0]), { message: 'there is no session bus' });
});

test('busctl is called without auto-start; gdbus first checks that the service runs', async () => {
  const bus = '/run/user/1000/bus';
  const signal = new AbortController().signal;
  const [byBusctl, busctlRuns] = hostWith({}, [bus, '/usr/bin/busctl', '/usr/bin/gdbus']);
  assert.equal(await queryBus(byBusctl, QUESTION, signal), 5);
  assert.equal(busctlRuns.length, 1);
  assert.equal(busctlRuns[0]!.path, '/usr/bin/busctl');
  assert.ok(busctlRuns[0]!.args.includes('--auto-start=no'));

  const [byGdbus, gdbusRuns] = hostWith({}, [bus, '/usr/bin/gdbus'], '(false,)\n');
  await assert.rejects(queryBus(byGdbus, QUESTION, signal), { message: 'org.example.Idle is not on the session bus' });
  assert.equal(gdbusRuns.length, 1);

  const [without] = hostWith({}, [bus]);
  await assert.rejects(queryBus(without, QUESTION, signal), { message: 'neither busctl nor gdbus is installed' });
});
