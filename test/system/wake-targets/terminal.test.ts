import assert from 'node:assert/strict';
import { chmodSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, test } from 'node:test';
import { DAEMON_PROVIDERS } from '../../../src/router/providers/descriptors.ts';
import { isAlive } from '../../../src/router/testing/bench.ts';
import { eventually } from '../../support/eventually.ts';
import { behave, callsIn } from '../../support/stand-ins/agents/executable.ts';
import { startTargetBench, type TargetBench } from './router.ts';

const claude = (cwd: string, more: object = {}) => ({ provider: 'command', spec: { preset: 'claude', cwd, ...more } });

const lastCall = ({ home }: TargetBench, count: number) =>
  eventually(`call ${count}`, () => (callsIn(home).length >= count ? callsIn(home)[count - 1] : undefined));

describe('programs that run for a turn', () => {
  test('a hanging one is ended at its timeout, by force if necessary', async (t) => {
    const bench = await startTargetBench(t);
    await bench.put('alice', claude(bench.work, { timeout_seconds: 100 }));
    for (const [index, mode] of ['hang', 'hang-hard'].entries()) {
      behave(bench.home, { mode });
      const answer = await bench.wake('alice', { conversation_id: mode });
      const { pid } = await lastCall(bench, index + 1);
      bench.clock.advance(100_000);
      if (mode === 'hang-hard') {
        // The signal has been sent; its grace period ends.
        await new Promise((resolve) => setImmediate(resolve));
        bench.clock.advance(8_000);
      }
      const turn = await bench.turn('alice', answer.json.data.turn_id!, 'failed');
      assert.match(turn.error ?? '', /^claude took longer than 100 s and was ended/);
      assert.equal(isAlive(pid), false);
    }
  });

  test('100 MB of output exhaust neither the memory nor the answer', async (t) => {
    const bench = await startTargetBench(t);
    await bench.put('alice', claude(bench.work));
    behave(bench.home, { mode: 'flood' });
    const before = process.memoryUsage.rss();
    const turn = await bench.wakeToEnd('alice');
    const grown = process.memoryUsage.rss() - before;
    assert.equal(turn.status, 'done', turn.error);
    assert.match(turn.reply ?? '', /^heard \d+ bytes$/);
    assert.ok(grown < 64 * 1024 * 1024, `${grown} bytes`);
    await eventually('no process of the run remains', () => readdirSync(join(bench.dataDir, 'runs')).length === 0);
  });

  test('one that writes without end is ended', async (t) => {
    const bench = await startTargetBench(t);
    const script = '#!/bin/sh\nwhile :; do head -c 60000000 /dev/zero; sleep 0.1; done\n';
    writeFileSync(join(bench.home, 'bin', 'claude'), script);
    await bench.put('alice', claude(bench.work));
    const turn = await bench.wakeToEnd('alice');
    assert.match(turn.error ?? '', /^claude wrote more than 256 MiB and was ended/);
    assert.ok((turn.error ?? '').length < 2000);
  });

  test('a program that is missing, or not executable, is named before the wake is accepted', async (t) => {
    const bench = await startTargetBench(t);
    const put = await bench.put('alice', claude(bench.work, { bin: 'no-such-agent' }));
    const missing = /the program "no-such-agent" is not on the PATH of the router; install it \(npm install -g .*--bin/;
    assert.match(put.text, /"warnings":\["the program \\"no-such-agent\\"/);
    const refused = await bench.wake('alice');
    assert.equal(refused.status, 503);
    assert.match(refused.json.error.message, missing);
    const plain = join(bench.home, 'not-a-program');
    writeFileSync(plain, 'text');
    chmodSync(plain, 0o644);
    await bench.put('alice', claude(bench.work, { bin: plain }));
    assert.match((await bench.wake('alice')).json.error.message, /is not executable; try: chmod \+x/);
    await bench.put('alice', claude(join(bench.home, 'nowhere')));
    assert.match((await bench.wake('alice')).json.error.message, /folder ".*nowhere" is not an existing folder/);
    assert.deepEqual((await bench.turns('alice')).counts, {});
    // Once it exists, the repeated wake is accepted.
    await bench.put('alice', claude(bench.work));
    assert.equal((await bench.wakeToEnd('alice')).status, 'done');
  });

  test('its environment contains no secret of the daemons', async (t) => {
    const bench = await startTargetBench(t);
    bench.environment.ANTHROPIC_API_KEY = 'key-of-the-user';
    bench.environment.NEO_MODEL_API_KEY = 'canary-of-neo';
    await bench.put('alice', claude(bench.work, { env: { MINE: 'yes', BORROWED: `\${ANTHROPIC_API_KEY}` } }));
    assert.equal((await bench.wakeToEnd('alice')).status, 'done');
    const { env } = callsIn(bench.home)[0]!;
    assert.ok(!JSON.stringify(env).includes('canary'), JSON.stringify(env));
    assert.deepEqual(
      [env.HOME, env.MINE, env.BORROWED, env.ANTHROPIC_API_KEY],
      [bench.home, 'yes', 'key-of-the-user', 'key-of-the-user'],
    );
    assert.deepEqual(Object.keys(env).sort(), [
      ...[
        'ANTHROPIC_API_KEY',
        'BORROWED',
        'HOME',
        'LANG',
        'MINE',
        'PATH',
        'REVEILLE_CONVERSATION_ID',
        'REVEILLE_SPAWN_ID',
      ],
    ]);
  });

  test('a conversation has one turn at a time, in order; others continue beside it', async (t) => {
    const bench = await startTargetBench(t);
    await bench.put('alice', claude(bench.work));
    behave(bench.home, { mode: 'wait' });
    const ids: string[] = [];
    for (const message of ['first', 'second', 'third'])
      ids.push((await bench.wake('alice', { message, conversation_id: 'one' })).json.data.turn_id!);
    const beside = (await bench.wake('alice', { message: 'beside', conversation_id: 'two' })).json.data.turn_id!;
    await lastCall(bench, 2);
    await bench.turn('alice', ids[0]!, 'running');
    await bench.turn('alice', beside, 'running');
    assert.deepEqual((await bench.turns('alice')).counts, { running: 2, queued: 2 });
    writeFileSync(join(bench.home, 'go'), '');
    for (const id of [...ids, beside]) await bench.turn('alice', id, 'done');
    const inputs = callsIn(bench.home).map(({ stdin }) => stdin!);
    const order = inputs.map((text) => /\n(first|second|third|beside)\n/.exec(text)?.[1]);
    assert.deepEqual(
      order.filter((label) => label !== 'beside'),
      ['first', 'second', 'third'],
    );
  });

  test('no more than four turns of a user run at a time, and a conversation has a limit of waiting wakes', async (t) => {
    const bench = await startTargetBench(t);
    await bench.put('alice', { ...claude(bench.work), budget: { breaker: { failures: 1 } } });
    behave(bench.home, { mode: 'wait' });
    for (let index = 0; index < 6; index++)
      assert.equal((await bench.wake('alice', { conversation_id: `c${index}` })).status, 202);
    await lastCall(bench, 4);
    assert.deepEqual((await bench.turns('alice')).counts, { running: 4, queued: 2 });
    const statuses: number[] = [];
    let refused = '';
    for (let index = 0; index < 33; index++) {
      const answer = await bench.wake('alice', { conversation_id: 'c5' });
      statuses.push(answer.status);
      if (answer.status === 503) refused = `${answer.headers.get('retry-after')} ${answer.json.error.message}`;
    }
    assert.equal(statuses.filter((status) => status === 202).length, 31);
    assert.equal(refused, '60 the conversation c5 has 32 waiting turns already');
    assert.equal((await bench.wake('alice', { conversation_id: 'another' })).status, 202, 'that is no failed start');
    await bench.admin('DELETE', '/alice');
  });

  test('a suspended machine has its turns ended, and the waiting ones continue when it is restored', async (t) => {
    const bench = await startTargetBench(t);
    await bench.put('alice', claude(bench.work));
    behave(bench.home, { mode: 'hang', times: 1 });
    const running = (await bench.wake('alice')).json.data.turn_id!;
    const waiting = (await bench.wake('alice')).json.data.turn_id!;
    const { pid } = await lastCall(bench, 1);
    assert.equal((await bench.admin('POST', '/alice/suspend')).status, 200);
    assert.equal(isAlive(pid), false);
    const ended = await bench.turn('alice', running, 'failed');
    assert.match(ended.error ?? '', /was ended because the machine was suspended/);
    assert.equal((await bench.wake('alice')).status, 451);
    await eventually('the other waits', async () => {
      const { turns } = await bench.turns('alice', '?status=queued');
      return turns.some(({ waits_for }) => waits_for === 'the machine is suspended');
    });
    await bench.admin('POST', '/alice/restore');
    bench.clock.advance(60_000);
    await bench.turn('alice', waiting, 'done');
  });

  test('processes that an agent leaves running end with its turn', async (t) => {
    const bench = await startTargetBench(t);
    const script = join(bench.home, 'bin', 'claude');
    const child = join(bench.home, 'child.pid');
    writeFileSync(
      script,
      `#!/bin/sh\nsleep 600 & echo $! > ${child}\necho '{"type":"result","subtype":"success","num_turns":1,"result":"left"}'\n`,
    );
    await bench.put('alice', claude(bench.work));
    assert.equal((await bench.wakeToEnd('alice')).reply, 'left');
    const pid = Number(readFileSync(child, 'utf8'));
    await eventually('it has ended', () => !isAlive(pid));
  });
});

describe('presets of a user', () => {
  const own = {
    kind: 'terminal',
    about: 'an agent of my own',
    bin: 'plain',
    install: 'it is in bin/',
    new: { stdin: ['<args>'] },
    words: 'bare',
    reads: 'plain-text',
  };

  test('a file in the folder of presets is enough for another agent', async (t) => {
    const bench = await startTargetBench(t);
    writeFileSync(join(bench.presets, 'mine.json'), JSON.stringify(own));
    await bench.put('alice', { provider: 'command', spec: { preset: 'mine', cwd: bench.work } });
    const turn = await bench.wakeToEnd('alice', { message: 'good morning', payload: { a: 1 } });
    assert.deepEqual([turn.status, turn.reply], ['done', 'plainly heard 21 bytes']);
    assert.equal(callsIn(bench.home)[0]!.stdin, 'good morning\n\n{"a":1}');
    // A change applies at once.
    writeFileSync(join(bench.presets, 'mine.json'), JSON.stringify({ ...own, words: 'framed' }));
    await bench.wakeToEnd('alice');
    assert.match(callsIn(bench.home)[1]!.stdin!, /^An alarm that you set earlier has fired/);
  });

  test('a wrong or missing file is reported with the remedy', async (t) => {
    const bench = await startTargetBench(t);
    const complaint = async (preset: unknown) => {
      if (preset !== undefined)
        writeFileSync(join(bench.presets, 'mine.json'), typeof preset === 'string' ? preset : JSON.stringify(preset));
      const spec = { preset: preset === undefined ? 'nobody' : 'mine', cwd: bench.work };
      const answer = await bench.admin('PUT', '/alice', { provider: 'command', spec });
      assert.equal(answer.status, 400, answer.text);
      return answer.json.error.message;
    };
    assert.match(
      await complaint(undefined),
      new RegExp(
        `^spec\\.preset must be one of a2a, claude, codex, gemini, openclaw, opencode, webhook, or the name of a file in .*presets \\(got "nobody"\\); providers are ${DAEMON_PROVIDERS.map(({ name }) => name).join(', ')}$`,
      ),
    );
    assert.match(await complaint('{'), /^the preset .*mine\.json must be JSON/);
    assert.match(
      await complaint({ ...own, reads: 'xml' }),
      /mine\.json cannot be used: reads must be one of claude-json, codex-jsonl/,
    );
    assert.match(
      await complaint({ ...own, new: { argument: ['-p'] } }),
      /new\.argument must have "<message>" as one of its entries/,
    );
    assert.match(await complaint({ ...own, spell: 1 }), /unknown field "spell"/);
  });
});
