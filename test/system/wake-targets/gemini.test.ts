import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { behave, callsIn } from '../../support/stand-ins/agents/executable.ts';
import { startTargetBench } from './router.ts';

const machine = (cwd: string) => ({ provider: 'command', spec: { preset: 'gemini', cwd } });

describe('gemini', () => {
  test('a conversation continues, with the text on standard input', async (t) => {
    const bench = await startTargetBench(t);
    await bench.put('alice', machine(bench.work));
    const first = await bench.wakeToEnd('alice', { message: '--yolo' });
    assert.equal(first.status, 'done', first.error);
    const second = await bench.wakeToEnd('alice', { message: 'x'.repeat(140_000) });
    assert.equal(second.status, 'done', second.error);
    assert.equal(second.session, first.session);
    const [one, two] = callsIn(bench.home);
    assert.deepEqual(one!.argv.slice(0, 2), ['-p', 'Take up the message above.']);
    assert.ok(one!.stdin!.includes('\n--yolo\n'));
    assert.deepEqual(two!.argv.slice(0, 4), ['--resume', first.session, '-p', 'Take up the message above.']);
    assert.ok(two!.stdin!.includes('x'.repeat(140_000)));
  });

  test('each exit code has a sentence', async (t) => {
    const bench = await startTargetBench(t);
    await bench.put('alice', machine(bench.work));
    const codes = [
      [41, /it is not logged in: as said \(exit code 41\)/],
      [42, /it did not accept its input or its arguments: as said/],
      [52, /its configuration is wrong: as said/],
      [53, /it reached the limit of its turns: as said/],
      [54, /one of its tools failed: as said/],
      [130, /it was cancelled: as said/],
      [1, /^gemini reports: as said \(exit code 1\)$/],
    ] as const;
    for (const [code, error] of codes) {
      behave(bench.home, { mode: 'exit', text: 'as said', code });
      const turn = await bench.wakeToEnd('alice');
      assert.equal(turn.status, 'failed');
      assert.match(turn.error ?? '', error);
    }
    behave(bench.home, { mode: 'garbage' });
    assert.equal((await bench.wakeToEnd('alice')).status, 'unknown');
  });

  test('a missing session fails the turn', async (t) => {
    const bench = await startTargetBench(t);
    await bench.put('alice', machine(bench.work));
    await bench.wakeToEnd('alice');
    behave(bench.home, { mode: 'says', text: 'Error resuming session: Invalid session identifier "x".', code: 42 });
    assert.match((await bench.wakeToEnd('alice')).error ?? '', /gemini does not have the conversation conv-1 any more/);
  });
});
