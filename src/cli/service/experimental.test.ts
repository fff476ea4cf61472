import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { reveille } from '../../../test/support/command-line.ts';
import { temporaryFolder } from '../../../test/support/temporary.ts';
import { ManualClock } from '../../kit/clock/testing/manual-clock.ts';
import type { CliContext } from '../context.ts';
import { isolationCheck } from '../doctor/disabled.ts';
import { PACKAGE_ROOT } from '../home/package-root.ts';
import { checkSleep } from '../sleep/wake-text.ts';
import { EXPERIMENTAL } from './experimental.ts';
import { serviceLocation, switchTo } from './folders.ts';
import { checkService } from './health.ts';

/** A context with no more than the home of a user. */
function contextOf(home: string): CliContext {
  const parts = { environment: { HOME: home, LOCALAPPDATA: join(home, 'Local') }, home: { path: home }, settings: {} };
  return { ...parts, clock: new ManualClock(0) } as unknown as CliContext;
}

test('help and documentation say what is experimental', async (t) => {
  const home = temporaryFolder(t);
  for (const words of [['service', 'install'], ['service', 'wake'], ['service']]) {
    const { stdout } = await reveille(home, [...words, '--help']);
    assert.match(
      stdout.replaceAll(/\s+/g, ' '),
      new RegExp(`\\(${EXPERIMENTAL} on macOS and Windows\\)`),
      words.join(' '),
    );
  }
  const guide = readFileSync(join(PACKAGE_ROOT, 'docs/guides/run-as-a-service.md'), 'utf8');
  assert.match(guide, /experimental: launchd, the Windows Task Scheduler/);
  for (const system of ['macOS', 'Windows']) assert.ok(guide.includes(`| ${system} (${EXPERIMENTAL}) |`), system);
});

test('the doctor says which service manager is experimental, once a service is installed', (t) => {
  const context = contextOf(temporaryFolder(t));
  for (const [platform, manager] of [
    ['darwin', 'launchd'],
    ['win32', 'the Task Scheduler'],
  ] as const) {
    assert.equal(checkService(context, platform), undefined);
    const place = serviceLocation(context.environment, context.home.path, platform);
    switchTo(place, join(place.versions, '0.1.0'));
    const detail = `"reveille up" is a service of ${manager} (${EXPERIMENTAL})`;
    assert.deepEqual(checkService(context, platform), { name: 'service', status: 'note', detail });
  }
  assert.equal(checkService(context, 'linux'), undefined);
});

test('the doctor says where waking the computer and the sandbox are experimental', (t) => {
  const context = contextOf(temporaryFolder(t));
  for (const platform of ['darwin', 'win32'] as const)
    assert.ok(checkSleep(context, platform).detail.endsWith(`(${EXPERIMENTAL})`), platform);
  assert.ok(!checkSleep(context, 'linux').detail.includes(EXPERIMENTAL));
  const facts = { mode: 'auto', by: 'sandbox-exec', why: undefined, noRunAs: undefined, isRoot: false } as const;
  assert.ok(isolationCheck(facts).detail.includes(EXPERIMENTAL));
});
