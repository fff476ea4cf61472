import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { Turn } from '../../../turns/turn.ts';
import { type SystemFacts, systemBlock } from './system-block.ts';
import { relevantTurns, renderOlder } from './window.ts';

const NOW = Date.UTC(2026, 5, 15, 8, 10);

function turn(members: Partial<Turn> = {}): Turn {
  const facts = { seq: 1, id: 't1', conversationId: 'c1', origin: 'user', message: 'Hello', createdAt: NOW } as const;
  return { ...facts, status: 'running', attempts: 1, retries: 0, ...members };
}

const tool = (name: string) => ({ name, description: '', parameters: {} });

const block = (members: Partial<SystemFacts> = {}) =>
  systemBlock({
    turn: turn(),
    now: NOW,
    isComplete: true,
    tools: [],
    warnings: [],
    step: 3,
    steps: 50,
    contextUsed: 0.124,
    ...members,
  });

test('the block says without tools that the model cannot act; with them, when work is done, and its budget', () => {
  assert.match(block(), /You have no tools in this conversation/);
  assert.doesNotMatch(block(), /Budget/);
  const acting = block({ tools: [tool('fs__read')] });
  assert.match(acting, /Say that something is done only when a result in this turn says so/);
  assert.match(acting, /Budget: step 3 of 50 \(47 more are possible\); about 12 % of the context is taken\.$/);
  assert.doesNotMatch(acting, /core_execute|memory_recall/);
  const all = block({ tools: [tool('core_execute'), tool('memory_recall')], warnings: ['server "x"\nis down'] });
  assert.match(all, /goes through core_execute, and only there/);
  assert.match(all, /memory_recall looks for what is not shown/);
  assert.match(all, /^- server "x" is down$/m);
});

test('the cause of the turn, and its conversation, are in every block', () => {
  assert.match(block(), /caused by a person, who waits for your answer\. It is 2026-06-15T08:10:00\.000Z\./);
  const woken = turn({ origin: 'chronos', label: 'a\nb', scheduledFor: NOW - 5, attempts: 2 });
  assert.match(
    block({ turn: woken }),
    /caused by a timer: your alarm "a\\nb", due at 2026-06-15T08:09:59\.995Z\..*begun 1 time\(s\) before.*The id of this conversation is "c1"/,
  );
});

test('the turn of an alarm knows how to send no notification, and a person always gets an answer', () => {
  const woken = block({ turn: turn({ origin: 'chronos' }) });
  assert.match(
    woken,
    /If the user needs to know nothing, answer exactly NOTHING_TO_REPORT: no notification is sent\.$/m,
  );
  assert.doesNotMatch(block(), /NOTHING_TO_REPORT/);
});

test("the active skill is shown in its author's words", () => {
  assert.match(
    block({ guide: '§GUIDE\n  Be brief.\nend\n' }),
    /in your operator's words:\n§GUIDE\n {2}Be brief\.\nend\n\n/,
  );
  assert.doesNotMatch(block(), /skill/);
});

test('profile, memories and older turns are shown if there are any', () => {
  const shown = block({ profile: 'PROFILE', memories: 'MEMORIES', older: 'OLDER', isComplete: false });
  assert.match(shown, /PROFILE\n\nThe beginning of this conversation is not shown\.\n\nOLDER\n\nMEMORIES/);
});

test('older turns are shown that share rare words with this one, not common ones', () => {
  const older = Array.from({ length: 20 }, (_, n) =>
    turn({ seq: n, id: `o${n}`, message: `the daily report number ${n}`, status: 'done', reply: 'done as usual' }),
  );
  older[4] = turn({ seq: 4, id: 'o4', message: 'Deploy the quokka build', status: 'done', reply: 'It is at 0xABC.' });
  const now = turn({ seq: 99, message: 'What came of the quokka build in the daily report?' });
  assert.deepEqual(
    relevantTurns(now, older).map(({ id }) => id),
    ['o4'],
  );
  assert.match(renderOlder(now, older)!, /a person: Deploy the quokka build\nyour answer: It is at 0xABC\./);
  assert.equal(renderOlder(turn({ message: 'the report' }), older), undefined);
  assert.equal(renderOlder(now, []), undefined);
});
