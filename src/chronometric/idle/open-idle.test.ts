import assert from 'node:assert/strict';
import { test } from 'node:test';
import { ManualClock } from '../../kit/clock/testing/manual-clock.ts';
import { probesFor } from './open-idle.ts';
import { programHost } from './program-host.ts';

test('each platform has its probes, in the order of their queries', async () => {
  const namesOn = async (platform: NodeJS.Platform) =>
    (await probesFor({ ...programHost({}), platform }, new ManualClock())).map(({ name }) => name);
  assert.deepEqual(await namesOn('linux'), ['gnome-mutter', 'x11', 'kde', 'logind']);
  assert.deepEqual(await namesOn('darwin'), ['macos']);
  assert.deepEqual(await namesOn('win32'), ['windows']);
  assert.deepEqual(await namesOn('aix'), []);
});
