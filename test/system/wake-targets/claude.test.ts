import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, test } from 'node:test';
import { behave, callsIn } from '../../support/stand-ins/agents/executable.ts';
import { startTargetBench } from './router.ts';

const machine = (cwd: string, more: object = {}) => ({ provider: 'command', spec: { preset: 'claude', cwd, ...more } });

describe('claude', () => {
  test('a conversation is begun, kept, and gone on with in its own folder', async (t) => {
    const bench = await startTargetBench(t);
    const { work, home } = bench;
    await bench.put('alice', machine(work));
    const first = await bench.ring('alice', { conversation_id: 'daily' });
    assert.equal(first.status, 'done');
    assert.match(first.reply ?? '', /^heard \d+ bytes$/);
    // The folder of the machine changes; the conversation stays where its session is.
    const elsewhere = join(home, 'elsewhere');
    mkdirSync(elsewhere);
    await bench.put('alice', machine(elsewhere));
    const second = await bench.ring('alice', { conversation_id: 'daily' });
    assert.equal(second.status, 'done', second.error);
    assert.equal(second.session, first.session);
    const [one, two] = callsIn(home);
    assert.deepEqual(
      one!.argv.filter((word) => word.startsWith('-')),
      ['-p', '--output-format'],
    );
    assert.deepEqual(two!.argv.slice(0, 3), ['-p', '--resume', first.session]);
    assert.deepEqual([one!.cwd, two!.cwd], [work, work]);
    // What the program sets alarms with defaults to the conversation that it was started for.
    assert.deepEqual([one!.env.REVEILLE_CONVERSATION_ID, two!.env.REVEILLE_CONVERSATION_ID], ['daily', 'daily']);
    const other = await bench.ring('alice', { conversation_id: 'weekly' });
    assert.notEqual(other.session, first.session);
    assert.equal(callsIn(home)[2]!.cwd, elsewhere);
  });

  test('message and payload arrive unchanged, with the facts of the alarm before them', async (t) => {
    const bench = await startTargetBench(t);
    await bench.put('alice', machine(bench.work));
    const message = '--dangerously-skip-permissions; $(touch /tmp/x) `id` "quoted"\n\n\t/clear\nünï😀\u2028end ';
    await bench.ring('alice', { message, label: 'night "shift"', missed_count: 2, set_at: '2026-06-14T08:10:00.000Z' });
    // Raw, so that no digit is lost on the way here.
    const body = `{"user_id":"alice","message":"x","payload":{"n":12345678901234567890,"b":1.0,"a":[]},"alarm_id":"018f3b1c-0000-7000-8000-000000000001","origin":"chronos","fire_id":"018f3b1c-0000-7000-8000-000000000001@5","scheduled_for":"2026-06-15T08:10:00.000Z","attempt":1,"missed_count":0}`;
    const answer = await bench.send('POST', '/internal/wake', 'wake-token-of-the-tests', body);
    assert.equal(answer.status, 202, answer.text);
    await bench.turn('alice', answer.json.data.turn_id!, 'done');
    const [first, second] = callsIn(bench.home).map(({ stdin }) => stdin!);
    assert.ok(first!.includes(`\n${message}\n`), first);
    for (const fact of [
      'Due at: 2026-06-15T08:10:00.000Z',
      'Label: "night \\"shift\\""',
      'missed: 2',
      'Conversation id: conv-1',
    ]) {
      assert.ok(first!.includes(fact), fact);
    }
    assert.ok(second!.includes('\n{"n":12345678901234567890,"b":1.0,"a":[]}\n'), second);
    const listed = await bench.admin('GET', '/alice/turns');
    assert.ok(listed.text.includes('12345678901234567890'));
  });

  test('words that cannot be an argument go over standard input', async (t) => {
    const bench = await startTargetBench(t);
    await bench.put('alice', machine(bench.work));
    const long = 'x'.repeat(140_000);
    for (const message of ['before\0after', long]) {
      const turn = await bench.ring('alice', { message, conversation_id: 'daily' });
      assert.equal(turn.status, 'done', turn.error);
    }
    const calls = callsIn(bench.home);
    assert.ok(calls[0]!.stdin!.includes('before\0after'));
    assert.ok(calls[1]!.stdin!.includes(long));
    assert.ok(calls[1]!.argv.includes('--resume'));
  });

  test('an agent may name its own session as the conversation of an alarm', async (t) => {
    const bench = await startTargetBench(t);
    await bench.put('alice', machine(bench.work));
    const { session } = await bench.ring('alice', { conversation_id: 'daily' });
    const named = await bench.ring('alice', { conversation_id: session });
    assert.equal(named.session, session);
    assert.equal(named.status, 'done');
    // A UUID that is no session is a name like any other.
    const conversation = randomUUID();
    const begun = await bench.ring('alice', { conversation_id: conversation });
    assert.equal(begun.status, 'done', begun.error);
    assert.notEqual(begun.session, conversation);
    const again = await bench.ring('alice', { conversation_id: conversation });
    assert.equal(again.session, begun.session);
  });

  test('a wake without a conversation begins one, whose id the agent is told', async (t) => {
    const bench = await startTargetBench(t);
    await bench.put('alice', machine(bench.work));
    const one = await bench.ring('alice', { conversation_id: undefined });
    const two = await bench.ring('alice', { conversation_id: undefined });
    assert.notEqual(one.conversation_id, two.conversation_id);
    assert.ok(callsIn(bench.home)[0]!.stdin!.includes(`Conversation id: ${one.conversation_id}`));
    const more = await bench.ring('alice', { conversation_id: one.conversation_id });
    assert.equal(more.session, one.session);
  });

  test('a session that is gone fails the turn, and no other takes its place', async (t) => {
    const bench = await startTargetBench(t);
    await bench.put('alice', machine(bench.work));
    await bench.ring('alice', { conversation_id: 'daily' });
    behave(bench.home, { mode: 'says', text: 'No conversation found with session ID: 1', code: 1 });
    const turn = await bench.ring('alice', { conversation_id: 'daily' });
    assert.equal(turn.status, 'failed');
    assert.match(turn.error ?? '', /claude does not have the conversation daily any more, and no other was begun/);
    assert.equal(callsIn(bench.home).length, 2);
  });

  test('success is read from the result and not from the exit code', async (t) => {
    const bench = await startTargetBench(t);
    await bench.put('alice', machine(bench.work));
    const cases = [
      [{ mode: 'is-error' }, 'failed', /^claude reports an error: API Error: 529 overloaded$/],
      [{ mode: 'max-turns' }, 'failed', /^claude reports error_max_turns/],
      [{ mode: 'denied' }, 'failed', /^claude was not allowed to use Bash \(2 times\), Write; allow it/],
      [
        { mode: 'says', text: 'Invalid API key', code: 1 },
        'failed',
        /^claude ended with exit code 1: Invalid API key$/,
      ],
      [{ mode: 'says', text: '', code: 0 }, 'unknown', /ended with exit code 0, but its output cannot be parsed/],
      [{ mode: 'garbage' }, 'unknown', /its output cannot be parsed \(claude-json was expected\)/],
      [{ mode: 'garbage', code: 3 }, 'failed', /ended with exit code 3/],
    ] as const;
    for (const [mode, status, error] of cases) {
      behave(bench.home, mode);
      const turn = await bench.ring('alice', { conversation_id: randomUUID() });
      assert.equal(turn.status, status, JSON.stringify(turn));
      assert.match(turn.error ?? '', error);
    }
    const { counts } = await bench.turns('alice');
    assert.deepEqual(counts, { failed: 5, unknown: 2 });
  });

  test('a fire is one turn, however often its wake is repeated', async (t) => {
    const bench = await startTargetBench(t);
    await bench.put('alice', machine(bench.work));
    behave(bench.home, { mode: 'wait' });
    const fire_id = '018f3b1c-0000-7000-8000-000000000001@77';
    const answers = await Promise.all(Array.from({ length: 8 }, () => bench.wake('alice', { fire_id })));
    assert.deepEqual(answers.map(({ status }) => status).sort(), [200, 200, 200, 200, 200, 200, 200, 202]);
    const ids = new Set(answers.map(({ json }) => json.data.turn_id));
    assert.equal(ids.size, 1);
    writeFileSync(join(bench.home, 'go'), '');
    await bench.turn('alice', [...ids][0]!, 'done');
    assert.equal((await bench.wake('alice', { fire_id })).status, 200);
    assert.equal(callsIn(bench.home).length, 1);
  });
});
