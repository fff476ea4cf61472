import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { IdleHost } from './idle.ts';
import { idleOfIoreg, macosProbe } from './macos.ts';

/** The shape of `ioreg -c IOHIDSystem -r -d 1`, shortened. */
const node = (
  idle: string,
) => `+-o IOHIDSystem  <class IOHIDSystem, id 0x100000411, registered, matched, active, busy 0 (0 ms), retain 26>
    {
      "IOClass" = "IOHIDSystem"
      "HIDParameters" = {"HIDClickTime"=500000000,"HIDF12EjectDelay"=250,"HIDPointerAcceleration"=45056}
      "HIDIdleTime" = ${idle}
      "NotificationPort" = "(nil)"
    }

`;

test('ioreg returns nanoseconds, and the node with the latest input counts', () => {
  assert.equal(idleOfIoreg(node('754321999999')), 754_321);
  assert.equal(idleOfIoreg(node('0')), 0);
  assert.equal(idleOfIoreg(node('900000000') + node('300000000')), 300);
  // The whole tree has bars before each line.
  assert.equal(idleOfIoreg('  | |   |     "HIDIdleTime" = 5000000\n'), 5);
  // Beyond 2^53 ns, which is 104 days.
  assert.equal(idleOfIoreg(node('18446744073709551615')), 18_446_744_073_709);
});

test('output of ioreg without a complete line is unavailable', () => {
  const hostile = [
    '',
    node('-5'),
    node('<00000002540be400>'),
    node('"5"'),
    node('5 6'),
    '      "HIDIdleTime" = 75432',
    '      "XHIDIdleTime" = 75432\n',
    '"Product" = "\\"HIDIdleTime\\" = 5"\n',
    '"Product" = "HIDIdleTime" = 5\n',
  ];
  for (const output of hostile) assert.throws(() => idleOfIoreg(output), { code: 'unavailable' }, output);
});

test('ioreg is started by its absolute path', async () => {
  const host: IdleHost = {
    platform: 'darwin',
    environment: {},
    exists: () => true,
    run: async (path, args) => {
      assert.equal(path, '/usr/sbin/ioreg');
      assert.deepEqual(args.slice(0, 2), ['-c', 'IOHIDSystem']);
      return node('754321000000');
    },
  };
  const reading = await macosProbe(host).read(new AbortController().signal);
  assert.deepEqual(reading, { idleMs: 754_321, source: 'macos' });
});
