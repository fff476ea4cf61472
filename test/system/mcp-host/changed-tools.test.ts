import assert from 'node:assert/strict';
import { join } from 'node:path';
import { describe, test } from 'node:test';
import { type Clock, systemClock } from '../../../src/kit/clock/clock.ts';
import { silentLogger } from '../../../src/kit/log/log.ts';
import { lockOf } from '../../../src/mcp-host/tool-lock.ts';
import { eventually } from '../../support/eventually.ts';
import { temporaryFolder } from '../../support/temporary.ts';
import { hostile, isAlive, startPool, textOf } from './bench.ts';

const declared = { tools: [{ name: 'work' }] };

describe('a server that changes its tools under way', () => {
  test('is quarantined when a description is not the pinned one, and its process is ended', async (t) => {
    const first = await startPool(t, [hostile('changes-description')]);
    const lock = lockOf(first.tools());
    const pool = await startPool(t, [hostile('changes-description'), { ...hostile('tame'), alias: 'good' }], { lock });
    const { pid } = pool.servers()[0]!;
    await pool.call('hostile', 'work', {}).catch(() => {});
    await eventually('it is in quarantine', () => pool.servers()[0]!.state === 'quarantined');
    assert.match(pool.warnings().join(), /"work" differs in description or schema from the pinned definition/);
    assert.deepEqual(
      pool.tools().map(({ alias }) => alias),
      ['good'],
    );
    const refused = await pool.call('hostile', 'work', {});
    assert.equal(refused.isError, true);
    assert.match(textOf(refused), /is in quarantine/);
    assert.equal((await pool.call('good', 'work', {})).isError, false);
    await eventually('it is gone', () => !isAlive(pid!));
  });

  test('is quarantined when it has a tool more than declared', async (t) => {
    const pool = await startPool(t, [hostile('adds-tool', declared)]);
    await pool.call('hostile', 'work', {}).catch(() => {});
    await eventually('it is in quarantine', () => pool.servers()[0]!.state === 'quarantined');
    assert.match(pool.warnings().join(), /"more-1" is not declared in the manifest/);
  });

  test('is followed where nothing is declared and nothing pinned', async (t) => {
    const pool = await startPool(t, [hostile('adds-tool')]);
    const changed = new Promise<void>((resolve) => {
      pool.onChange(() => pool.tools().length === 2 && resolve());
    });
    await pool.call('hostile', 'work', {});
    await changed;
    assert.deepEqual(
      pool.tools().map(({ functionName }) => functionName),
      ['hostile__more-1', 'hostile__work'],
    );
  });

  test('while it is being stopped is not watched for ever after', async (t) => {
    const healthIntervalMs = 7_654_321;
    let watches = 0;
    const after: Clock['after'] = (delayMs, callback) => {
      const isWatch = delayMs === healthIntervalMs;
      if (isWatch) watches++;
      const cancel = systemClock.after(delayMs, callback);
      let isPending = true;
      return () => {
        if (isWatch && isPending) watches--;
        isPending = false;
        cancel();
      };
    };
    const clock = { ...systemClock, after };
    const pool = await startPool(t, [hostile('answers-when-listed')], { clock, healthIntervalMs });
    assert.equal(watches, 1);
    const [result] = await Promise.all([pool.call('hostile', 'work', {}), pool.close()]);
    assert.equal(textOf(result), 'done');
    assert.equal(watches, 0);
  });

  test('without end is ended', async (t) => {
    const pool = await startPool(t, [hostile('changes-for-ever')]);
    await pool.call('hostile', 'work', {}).catch(() => {});
    await eventually('it was ended', () => pool.servers()[0]!.restarts > 0 || pool.servers()[0]!.state === 'down');
  });

  test('between two starts stops the start, naming the tool', async (t) => {
    const first = await startPool(t, [hostile('tame')]);
    const lock = lockOf(first.tools());
    lock.servers.hostile!.work = '0'.repeat(64);
    lock.servers.hostile!.gone = '1'.repeat(64);
    await assert.rejects(startPool(t, [hostile('tame')], { lock }), {
      code: 'conflict',
      message: /"work" differs in description.*\n.*"gone" is pinned, but the server does not have it/,
    });
  });
});

describe('a server that is not pinned and changes its tools', () => {
  const logged = () => {
    const lines: string[] = [];
    const warn = (fields: object, message: string) => lines.push(`${message} ${JSON.stringify(fields)}`);
    return { lines, log: { ...silentLogger, warn: warn as unknown as typeof silentLogger.warn } };
  };

  test('is warned of at a new listing, in the log too, and goes on', async (t) => {
    const { lines, log } = logged();
    const pool = await startPool(t, [hostile('changes-description')], { log });
    assert.deepEqual(pool.warnings(), []);
    await pool.call('hostile', 'work', {});
    const [warning] = await eventually('it is told', () => pool.warnings().length > 0 && pool.warnings());
    assert.match(
      warning!,
      /^server "hostile" is not pinned and has changed its tools: "work" has a changed description;/,
    );
    assert.match(warning!, /reveille neo server review hostile/);
    assert.equal(lines.filter((line) => /not pinned has changed.*a changed description/.test(line)).length, 1);
    assert.equal(pool.tools().length, 1);
  });

  test('is warned of when it was started again, and at the next start of the host', async (t) => {
    const dataDir = temporaryFolder(t);
    const server = hostile('other-at-each-start', declared, join(dataDir, 'starts'));
    const pool = await startPool(t, [server], { dataDir });
    assert.deepEqual(pool.warnings(), []);
    await pool.call('hostile', 'work', {}).catch(() => {});
    await eventually(
      'it is back and told',
      () => /changed its tools/.test(pool.warnings().join()) && pool.tools().length,
    );
    await pool.close();
    const later = await startPool(t, [server], { dataDir });
    assert.match(later.warnings().join(), /not pinned and has changed its tools: "work" has a changed description/);
    await later.close();
    // Pinned as it is, it is what was agreed on.
    const tame = await startPool(t, [hostile('tame', declared)], { dataDir });
    const lock = lockOf(tame.tools());
    assert.match(tame.warnings().join(), /changed its tools/);
    const pinned = await startPool(t, [hostile('tame', declared)], { dataDir, lock });
    assert.deepEqual(pinned.warnings(), []);
    assert.deepEqual((await startPool(t, [hostile('tame', declared)], { dataDir })).warnings(), []);
  });

  test('tells which tools are new and which are gone', async (t) => {
    const dataDir = temporaryFolder(t);
    const pool = await startPool(t, [hostile('adds-tool')], { dataDir });
    await pool.call('hostile', 'work', {});
    await eventually('it is told', () => /"more-1" is new/.test(pool.warnings().join()));
  });
});
