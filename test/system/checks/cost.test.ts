/** What 1,000 checks that say no cost beside the checks themselves: no start, and little time of both daemons. */

import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { test } from 'node:test';
import { eventsOf } from '../../../src/router/testing/bench.ts';
import { startPlainDaemon } from '../../../src/router/testing/plain-daemon.ts';
import { eventually } from '../../support/eventually.ts';
import { needs } from '../../support/tools.ts';
import { startSite } from './bench.ts';
import { checkProcesses } from './processes.ts';

const FIRES = 1000;
const COMMANDS = 100;
/** CPU time of one daemon for one check. The target is 5 ms; other tests run beside this one. */
const MOST_MS = 10;
/** Linux counts the CPU time of a process in hundredths of a second. */
const TICK_MS = 10;

function cpuMs(pid: number): number {
  const fields = readFileSync(`/proc/${pid}/stat`, 'latin1').split(') ').at(-1)!.split(' ');
  return (Number(fields[11]) + Number(fields[12])) * TICK_MS;
}

test(`${FIRES} checks that say no start nothing and cost little`, {
  timeout: 280_000,
  skip: process.platform === 'linux' ? needs('bubblewrap') : 'it reads /proc',
}, async (t) => {
  const site = await startSite(t);
  const plain = await startPlainDaemon(t);
  const { work, chronos, router, pidOf } = await checkProcesses(t, {
    ...{ CHRONOS_CREATES_PER_MINUTE: '100000', CHRONOS_MAX_ACTIVE_ALARMS: '5000', CHRONOS_USER_CONCURRENCY: '32' },
    ...{ ROUTER_CHECK_ALLOW: new URL(site.url).host },
  });
  const client = chronos();

  async function setAll(count: number, check: object | undefined, fire_at: string): Promise<string[]> {
    const ids: string[] = [];
    let asked = 0;
    const create = async () => {
      while (asked++ < count) {
        const alarm = { kind: 'once', wake_message: 'look', fire_at, ...(check && { check }) } as const;
        ids.push((await client.createAlarm(alarm)).id);
      }
    };
    await Promise.all(Array.from({ length: 16 }, create));
    return ids;
  }

  /** Fires as many alarms together, and returns the cost of one. */
  async function cost(fires: number, check: object | undefined, outcome: string) {
    // On a busy computer, setting them takes longer than the first time allows.
    let ids: string[];
    for (let leadMs = 15_000; ; leadMs *= 3) {
      const due = Date.now() + leadMs;
      ids = await setAll(fires, check, new Date(due).toISOString());
      if (Date.now() < due) break;
      await Promise.all(ids.map((id) => client.cancelAlarm(id)));
    }
    const before = [cpuMs(pidOf('router')), cpuMs(pidOf('chronosd'))];
    const ended = async () => (await client.listAlarms({ limit: 1, status: 'active' })).alarms.length === 0;
    await eventually('all have fired', ended, 120_000);
    const after = [cpuMs(pidOf('router')), cpuMs(pidOf('chronosd'))];
    const took: number[] = [];
    const checked: number[] = [];
    for (const id of ids.slice(0, 200)) {
      const [fire] = (await client.listFires(id)).fires;
      assert.equal(fire!.outcome, outcome, JSON.stringify(fire));
      took.push(Date.parse(fire!.finished_at) - Date.parse(fire!.started_at));
      checked.push(Number(/\((\d+) ms\)$/.exec(fire!.error ?? '')?.[1] ?? 0));
    }
    const mean = (values: number[]) => values.reduce((sum, value) => sum + value, 0) / values.length;
    const [routerMs, chronosMs] = [0, 1].map((at) => (after[at]! - before[at]!) / ids.length) as [number, number];
    const text = `CPU of router ${routerMs.toFixed(2)} ms, of chronosd ${chronosMs.toFixed(2)} ms; beside the check ${(mean(took) - mean(checked)).toFixed(1)} ms of ${mean(took).toFixed(1)} ms`;
    return { routerMs, chronosMs, text };
  }

  const results = [['an address', await cost(FIRES, { http: { url: site.url, status: 404 } }, 'skipped')]] as const;
  const command = { command: { argv: ['sh', '-c', 'exit 1'] } };
  const others = [['a command', await cost(COMMANDS, command, 'skipped')]] as const;
  assert.equal(eventsOf(work, 'start').length, 0);
  assert.ok(site.hits >= FIRES);
  await router.put('alice', { provider: 'http', spec: { url: plain.url } });
  const without = [['no check', await cost(FIRES, undefined, 'delivered')]] as const;
  for (const [name, { text }] of [...results, ...others, ...without]) t.diagnostic(`${name}: ${text}`);
  const [[, { routerMs, chronosMs }]] = results;
  assert.ok(routerMs <= MOST_MS && chronosMs <= MOST_MS, `${routerMs} ${chronosMs}`);
});
