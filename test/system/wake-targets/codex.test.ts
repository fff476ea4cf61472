import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { describe, test } from 'node:test';
import { eventually } from '../../support/eventually.ts';
import { behave, callsIn } from '../../support/stand-ins/agents/executable.ts';
import { startTargetBench } from './router.ts';

const machine = (cwd: string, more: object = {}) => ({ provider: 'command', spec: { preset: 'codex', cwd, ...more } });

describe('codex', () => {
  test('the text uses standard input, and the thread continues', async (t) => {
    const bench = await startTargetBench(t);
    await bench.put('alice', machine(bench.work, { args: ['--skip-git-repo-check'] }));
    const message = '-c sandbox_mode="danger"\n\0binary';
    const first = await bench.wakeToEnd('alice', { message });
    assert.equal(first.status, 'done', first.error);
    assert.match(first.reply ?? '', /^heard \d+ bytes$/);
    const second = await bench.wakeToEnd('alice');
    assert.equal(second.session, first.session);
    // Codex counts the whole thread.
    for (const turn of [first, second]) assert.deepEqual(turn.usage, { input_tokens: 100, output_tokens: 7 });
    const [one, two] = callsIn(bench.home);
    assert.deepEqual(one!.argv, ['exec', '--skip-git-repo-check', '-', '--json']);
    assert.deepEqual(two!.argv, ['exec', '--skip-git-repo-check', 'resume', first.session, '-', '--json']);
    assert.ok(one!.stdin!.includes(`\n${message}\n`));
  });

  test('a thread that another program writes to is waited for, and never replaced by a new one', async (t) => {
    const bench = await startTargetBench(t);
    await bench.put('alice', machine(bench.work));
    const { session } = await bench.wakeToEnd('alice');
    for (const mode of ['writer', 'writer-event']) {
      behave(bench.home, { mode });
      const before = callsIn(bench.home).length;
      const answer = await bench.wake('alice');
      const id = answer.json.data.turn_id!;
      const waiting = await eventually('the turn waits', async () => {
        const { turns } = await bench.turns('alice');
        return turns.find((turn) => turn.id === id && turn.waits_for !== undefined);
      });
      assert.match(waiting.waits_for ?? '', /codex is busy: .*already has an active writer/);
      assert.equal(waiting.status, 'queued');
      behave(bench.home);
      bench.clock.advance(5_000);
      const turn = await bench.turn('alice', id, 'done');
      assert.equal(turn.session, session);
      assert.equal(turn.attempts, 2);
      const calls = callsIn(bench.home).slice(before);
      assert.deepEqual(
        calls.map(({ argv }) => argv[2]),
        [session, session],
      );
      assert.deepEqual(calls[0]!.stdin, calls[1]!.stdin);
    }
  });

  test('a thread that stays busy is abandoned in the end, with the reason', async (t) => {
    const bench = await startTargetBench(t);
    await bench.put('alice', machine(bench.work));
    await bench.wakeToEnd('alice');
    behave(bench.home, { mode: 'writer' });
    const answer = await bench.wake('alice');
    const id = answer.json.data.turn_id!;
    const isWaiting = async () => (await bench.turns('alice')).turns.some((turn) => turn.id === id && turn.waits_for);
    await eventually('the turn waits', isWaiting);
    bench.clock.advance(6 * 3600 * 1000);
    const turn = await bench.turn('alice', id, 'failed');
    assert.match(turn.error ?? '', /did not start: codex is busy: .*active writer/);
  });

  test('the events decide how a turn ended, whatever the exit code', async (t) => {
    const bench = await startTargetBench(t);
    await bench.put('alice', machine(bench.work));
    const cases = [
      ['turn-fails', 'failed', /^codex reports: usage limit reached$/],
      ['reconnects', 'done', /^$/],
      ['dies', 'failed', /^codex was ended by SIGKILL/],
      ['garbage', 'unknown', /its output cannot be parsed/],
    ] as const;
    for (const [mode, status, error] of cases) {
      behave(bench.home, { mode });
      const turn = await bench.wakeToEnd('alice', { conversation_id: randomUUID() });
      assert.equal(turn.status, status, JSON.stringify(turn));
      assert.match(turn.error ?? '', error);
    }
    behave(bench.home, { mode: 'says', text: 'Not inside a trusted directory', code: 1 });
    const refused = await bench.wakeToEnd('alice');
    assert.match(refused.error ?? '', /^codex ended with exit code 1: Not inside a trusted directory$/);
  });
});
