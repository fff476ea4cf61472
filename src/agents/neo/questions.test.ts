/** Questions of MCP servers in turns: a person answers in the conversation, and the turn of an alarm parks meanwhile. */
import assert from 'node:assert/strict';
import { type TestContext, test } from 'node:test';
import { eventually } from '../../../test/support/eventually.ts';
import { temporaryFolder } from '../../../test/support/temporary.ts';
import { ManualClock } from '../../kit/clock/testing/manual-clock.ts';
import { silentLogger } from '../../kit/log/log.ts';
import type { ModelMessage } from '../../kit/model/model.ts';
import type { NewTurn } from '../../turns/turn.ts';
import type { QuestionText } from '../../wire/question.ts';
import { openConversationStore } from './conversations/store.ts';
import { createApprovers } from './delegate/approvers.ts';
import type { NeoModel } from './model.ts';
import { createQuestions } from './questions.ts';
import { createRunner } from './runner.ts';
import { createToolSet } from './tools/tool-set.ts';

const WHERE: QuestionText = {
  mode: 'form',
  message: 'Where to?',
  fields: [{ name: 'city', kind: 'text', title: 'City', required: true }],
};

const textOf = (messages: readonly ModelMessage[]) => messages.map(({ content }) => content).join('\n');

/** A model that books until a result has a booking, or a note says that it must not. */
const bookingModel = (requests: string[]): NeoModel => ({
  name: 'booker',
  callsTools: true,
  generate({ messages, onText, turn }) {
    const text = textOf(messages);
    if (turn.message !== 'hello') requests.push(text);
    const calls = text.split('booked nothing').length - 1;
    const isOver = turn.message === 'hello' || /booked a room|Do not make that call again/.test(text);
    const isNoted = text.includes('Make that call again');
    if (isOver || (calls > 0 && !isNoted)) {
      onText('over');
      return Promise.resolve({ text: 'over', model: 'booker' });
    }
    const toolCalls = [{ id: `c${requests.length}`, name: 'hotel__book', input: '{}' }];
    return Promise.resolve({ text: '', model: 'booker', toolCalls });
  },
});

function workbench(t: TestContext, asked: QuestionText = WHERE) {
  const clock = new ManualClock();
  const dataDir = temporaryFolder(t);
  const requests: string[] = [];
  const answers: unknown[] = [];
  const begin = () => {
    const store = openConversationStore({ dataDir, clock, onTurnReport: () => {} });
    const approvers = createApprovers(clock);
    const questions = createQuestions({ store: store.questions, approvers, clock, log: silentLogger });
    const tool = {
      ...{ alias: 'hotel', tool: 'book', functionName: 'hotel__book', uri: 'matrix://tool/mcp/hotel/book@1' },
      ...{ surface: 'natural' as const, definition: { inputSchema: { type: 'object' } } },
    };
    const tools = [tool];
    const surface = createToolSet({
      ...{ patterns: [], questions, log: silentLogger },
      host: {
        tools: () => tools,
        async call(_alias, _tool, _args, { ask, signal }) {
          const answer = await ask!(asked, signal);
          answers.push(answer);
          const text = answer.action === 'accept' ? 'booked a room' : 'booked nothing';
          return { content: [{ type: 'text', text }] };
        },
        warnings: () => [],
        close: async () => {},
      },
    });
    const runner = createRunner({
      ...{ store, model: bookingModel(requests), questions, clock, log: silentLogger },
      surface: async () => surface,
    });
    runner.start();
    const end = async () => {
      await runner.stop(0);
      await store.close();
    };
    t.after(end);
    const add = async (id: string, change: Partial<NewTurn> = {}) => {
      const wake: NewTurn = {
        ...{ id, conversationId: 'c', origin: 'chronos', userId: 'alice', message: 'book' },
        ...{ fireId: '0197f5a0-0000-7000-8000-000000000001@1', createdAt: clock.now() },
        ...change,
      };
      await store.accept(wake);
      runner.accepted();
    };
    const reports = () =>
      store.outbox.waiting({ after: 0, limit: 10 }).map(({ report }) => [report.stage, report.error ?? report.reply]);
    /** Time passes until a condition holds. */
    const until = (what: string, holds: () => unknown) =>
      eventually(what, async () => {
        if (holds()) return true;
        await clock.advance(1000);
        return false;
      });
    const asks = async () => {
      await until('a question is asked', () => questions.shown().length > 0);
      return questions.shown()[0]!;
    };
    const isParked = () => store.turnById('t1')!.retryAt !== undefined;
    return {
      store,
      approvers,
      questions,
      runner,
      add,
      reports,
      until,
      asks,
      isParked,
      end,
      turn: () => store.turnById('t1')!,
    };
  };
  return { clock, begin, requests, answers };
}

test('the turn of an alarm parks, is notified, and goes on after the answer over a restart', async (t) => {
  const { begin, answers, requests, clock } = workbench(t);
  const first = begin();
  await first.add('t1');
  const { question_id: id } = await first.asks();
  await first.until('it is parked', first.isParked);
  assert.deepEqual(answers, [{ action: 'cancel' }], 'the server is told that nobody is there');
  assert.equal(requests.length, 1, 'the model is not asked meanwhile');
  assert.equal(first.runner.state().busy, false, 'its machine may sleep');
  const [, waits] = first.reports();
  assert.equal(waits![0], 'turn_waits');
  assert.match(
    String(waits![1]),
    new RegExp(`^waits for your answer to the server "hotel": "Where to\\?"; .*answer ${id}$`),
  );
  // Another turn of the conversation is not blocked, and its success does not make this one run again.
  await first.store.accept({
    id: 't2',
    conversationId: 'c',
    origin: 'user',
    message: 'hello',
    createdAt: clock.now(),
  });
  first.runner.accepted();
  await first.until('the other turn is done', () => first.store.turnById('t2')!.status === 'done');
  assert.ok(first.isParked());
  await first.end();
  const second = begin();
  assert.deepEqual(
    second.questions.shown().map(({ question_id }) => question_id),
    [id],
  );
  await assert.rejects(second.questions.answer(id, { action: 'accept', content: { city: 7 } }), /city must be a text/);
  await assert.rejects(second.questions.answer(id, { action: 'accept' }), /city is required/);
  await second.questions.answer(id, { action: 'accept', content: { city: 'Bonn' } });
  await assert.rejects(second.questions.answer(id, { action: 'decline' }), { code: 'not_found' });
  await second.until('the turn is done', () => second.turn().status === 'done');
  assert.deepEqual(answers, [{ action: 'cancel' }, { action: 'accept', content: { city: 'Bonn' } }]);
  assert.match(requests.at(-1)!, /booked a room/);
  assert.ok(
    requests.every((text) => !text.includes('Bonn')),
    'the model does not see the answer',
  );
  assert.deepEqual(second.store.questions.ofTurn('t1'), [], 'nothing of it is kept');
});

test('an answer that arrives while Neo is down after it was stored continues the turn at the start', async (t) => {
  const { begin } = workbench(t);
  const first = begin();
  await first.add('t1');
  const { question_id: id } = await first.asks();
  await first.until('it is parked', first.isParked);
  await first.store.questions.decide(id, 'declined', undefined);
  await first.end();
  const second = begin();
  await second.until('the turn is done', () => second.turn().status === 'done');
});

test('without an answer the turn ends at the time limit, and says so', async (t) => {
  const { begin, requests, clock } = workbench(t);
  const neo = begin();
  await neo.add('t1');
  await neo.asks();
  await neo.until('it is parked', neo.isParked);
  const { retryAt } = neo.turn();
  await clock.advance(retryAt! - clock.now() - 1000);
  assert.equal(requests.length, 1);
  await neo.until('the turn is done', () => neo.turn().status === 'done');
  assert.match(
    requests.at(-1)!,
    /the user did not answer the question about the call of book at the server "hotel" in time/,
  );
  assert.deepEqual(neo.questions.shown(), []);
});

test('a declined question ends the call of a parked turn', async (t) => {
  const { begin, requests, answers } = workbench(t);
  const neo = begin();
  await neo.add('t1');
  const { question_id: id } = await neo.asks();
  await neo.until('it is parked', neo.isParked);
  await neo.questions.answer(id, { action: 'decline' });
  await neo.until('the turn is done', () => neo.turn().status === 'done');
  assert.equal(answers.length, 1, 'the server is not called again');
  assert.match(requests.at(-1)!, /declined to answer/);
});

test('a follower of the conversation answers within the call, in a chat and in the turn of an alarm', async (t) => {
  const { begin, answers } = workbench(t);
  const neo = begin();
  neo.approvers.addStream('c');
  await neo.add('t1', { origin: 'user' });
  const { question_id: id } = await neo.asks();
  await neo.questions.answer(id, { action: 'accept', content: { city: 'Bonn' } });
  await neo.until('the turn is done', () => neo.turn().status === 'done');
  assert.deepEqual(answers, [{ action: 'accept', content: { city: 'Bonn' } }]);
});

test('a chat without a follower does not wait, and another conversation cannot answer for it', async (t) => {
  const { begin, answers } = workbench(t);
  const neo = begin();
  neo.approvers.addStream('another');
  await neo.add('t1', { origin: 'user' });
  const { question_id: id } = await neo.asks();
  assert.deepEqual(neo.questions.shown('another'), []);
  await neo.until('the turn is done', () => neo.turn().status === 'done');
  assert.deepEqual(answers, [{ action: 'cancel' }]);
  await assert.rejects(neo.questions.answer(id, { action: 'decline' }), { code: 'not_found' });
});

test('a cancelled turn withdraws its question', async (t) => {
  const { begin } = workbench(t);
  const neo = begin();
  await neo.add('t1');
  await neo.asks();
  await neo.until('it is parked', neo.isParked);
  await neo.runner.cancel('t1');
  assert.deepEqual(neo.questions.shown(), []);
  const events = neo.store.eventsAfter(0, 100, {}).filter(({ type }) => type === 'question');
  assert.deepEqual(
    events.map(({ data }) => (JSON.parse(data) as { state: string }).state),
    ['asked', 'lapsed'],
  );
});

test('a turn asks twenty different questions at most', async (t) => {
  let count = 0;
  const endless = { ...WHERE } as QuestionText;
  Object.defineProperty(endless, 'message', { enumerable: true, get: () => `Where to? ${count++}` });
  const { begin, answers } = workbench(t, endless);
  const neo = begin();
  neo.approvers.addStream('c');
  await neo.add('t1', { origin: 'user', message: 'Make that call again' });
  for (let at = 0; at < 20; at++) {
    const { question_id: id } = await neo.asks();
    await neo.questions.answer(id, { action: 'decline' });
    await neo.until('it is closed', () => neo.questions.shown().every(({ question_id }) => question_id !== id));
  }
  await neo.until('it is refused', () => answers.some((answer) => (answer as { action: string }).action === 'cancel'));
  assert.deepEqual(neo.questions.shown(), []);
});
