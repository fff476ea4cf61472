import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { eventually } from '../../support/eventually.ts';
import { temporaryFolder } from '../../support/temporary.ts';
import { hostile, isAlive, tame } from './bench.ts';

const src = (path: string) => JSON.stringify(new URL(`../../../src/${path}`, import.meta.url).href);

/** A process that hosts the servers of a manifest until it is killed. */
const HOST = `
import { systemClock } from ${src('kit/clock/clock.ts')};
import { silentLogger } from ${src('kit/log/log.ts')};
import { loadManifest } from ${src('mcp-host/manifest.ts')};
import { ServerPool } from ${src('mcp-host/server-pool.ts')};
const [path, dataDir] = process.argv.slice(1);
const pool = await ServerPool.start(loadManifest(path, process.env), { clock: systemClock, log: silentLogger, dataDir });
console.log(JSON.stringify(pool.servers().map(({ pid }) => pid)));
`;

test('when the host is killed, no server remains, not even one that ignores every signal', async (t) => {
  const folder = temporaryFolder(t);
  const [path, pids] = [join(folder, 'agent.json'), join(folder, 'pids')];
  writeFileSync(path, JSON.stringify({ servers: [hostile('immortal', {}, pids), tame()] }));
  const host = spawn(process.execPath, ['--input-type=module', '--eval', HOST, path, folder], {
    cwd: fileURLToPath(new URL('../../..', import.meta.url)),
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  t.after(() => host.kill('SIGKILL'));
  const [line] = (await once(host.stdout, 'data')) as [Buffer];
  const leaders = JSON.parse(line.toString()) as number[];
  const immortal = Number(readFileSync(pids, 'utf8'));
  assert.equal(leaders.length, 2);
  for (const pid of [...leaders, immortal]) assert.ok(isAlive(pid));
  host.kill('SIGKILL');
  for (const pid of [...leaders, immortal]) await eventually(`${pid} is gone`, () => !isAlive(pid));
});
