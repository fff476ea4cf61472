import assert from 'node:assert/strict';
import { join } from 'node:path';
import { type TestContext, test } from 'node:test';
import { neoChild } from '../../../src/agents/neo/testing/neo-child.ts';
import { accepted, ask, readEvents, settledTurns } from '../../../src/agents/neo/testing/workbench.ts';
import { calling, modelEndpoint, type Script, saying } from '../../../src/kit/model/testing/model-endpoint.ts';
import { wakeBody } from '../../../src/turns/testing/wakes.ts';
import { signedAnswer } from '../../support/cluster/approval.ts';
import { eventually } from '../../support/eventually.ts';
import { temporaryFolder } from '../../support/temporary.ts';
import { balancesOf, EXECUTOR_TOKEN, startExecutorProcess } from './executor-process.ts';
import { AGENT_MODEL, COMPILER_MODEL } from './spender.ts';

const USER = 'alice';
const TASK = 'Pay the rent in EUR from alice to rent, the amount that was given.';

/**
 * Submits the rent without its amount. The compiling model takes the newest given amount; without one, the agent's own.
 */
const payer: Script = (response, request) => {
  const { model, messages } = request.body;
  const last = messages.at(-1)!;
  if (model === COMPILER_MODEL) {
    if (last.role === 'tool')
      return calling({ name: 'clarify', args: { question: 'What amount?' } })(response, request);
    const given = [...last.content.matchAll(/\{"amount":"([\d.]+)"\}/g)];
    const amount = given.at(-1)?.[1] ?? '9.99';
    const args = { from: 'alice', to: 'rent', amount, currency: 'EUR' };
    const plan = { id: 'pay', kind: 'call', tool: 'ledger/transfer', args };
    return calling({ name: 'submit_intent', args: { verb: 'transfer', plan } })(response, request);
  }
  if (last.role === 'tool') return saying(last.content)(response, request);
  if (last.content.includes('What is the rent?')) return saying('The rent is 9.99 EUR.')(response, request);
  return calling({ name: 'core_execute', args: { intent: TASK } })(response, request);
};

async function startAll(t: TestContext) {
  const home = temporaryFolder(t);
  const endpoint = await modelEndpoint(t, payer);
  const executor = await startExecutorProcess(home, {
    EXECUTOR_MODEL: COMPILER_MODEL,
    EXECUTOR_MODEL_BASE_URL: endpoint.baseUrl,
    // No process listens there; agents can be parked, and are woken once a listener exists.
    EXECUTOR_CHRONOS_URL: 'http://127.0.0.1:9',
    EXECUTOR_CHRONOS_TOKEN: 'a-token-of-chronosd',
  });
  t.after(() => executor.end('SIGKILL'));
  const env = {
    NEO_MODEL: AGENT_MODEL,
    NEO_MODEL_BASE_URL: endpoint.baseUrl,
    NEO_CHEAP_MODEL: 'none',
    NEO_EXECUTOR_URL: executor.url,
    NEO_EXECUTOR_TOKEN: EXECUTOR_TOKEN,
    MATRIX_USER_ID: USER,
  };
  const start = async () => {
    const neo = await neoChild(join(home, 'neo'), env);
    t.after(() => neo.end('SIGKILL'));
    return neo;
  };
  return { home, executor, start };
}

test('an amount that only the agent named is neither paid nor asked about', async (t) => {
  const { home, executor, start } = await startAll(t);
  const neo = await start();
  await accepted(neo, { message: 'What is the rent?', conversation_id: 'c' });
  await settledTurns(neo, 'c');
  await accepted(neo, { message: 'Pay it.', conversation_id: 'c' });
  const [, turn] = await settledTurns(neo, 'c');
  assert.match(turn?.reply ?? '', /Nothing was done: the executor has a question .*What amount\?/s);
  const { intents } = JSON.parse(await executor.get(USER, '/intents')) as { intents: { intent_id: string }[] };
  const receipt = await executor.get(USER, `/intents/${intents[0]!.intent_id}/receipt`);
  assert.equal(/gate\.asked|call\.started/.test(receipt), false);
  assert.equal(balancesOf(home).rent, '0.00');
});

test('two alarms at night: the second task waits behind the first, both are parked, and a later approver pays each once', async (t) => {
  const { home, executor, start } = await startAll(t);
  const neo = await start();
  const due = 1_795_000_000_000;
  for (const [n, amount] of ['7.25', '3.50'].entries()) {
    const message = { conversation_id: 'night', message: `Rent, part ${n}.`, payload: { amount } };
    await accepted(neo, wakeBody(due + n, message));
    const turns = await settledTurns(neo, 'night');
    assert.match(turns[n]!.reply!, /It is parked/, executor.log());
  }
  const turns = await settledTurns(neo, 'night');
  assert.match(turns[1]!.reply!, /begins when intent \S+ of the same user has ended/);
  await neo.end('SIGKILL');

  const restarted = await start();
  const events = await readEvents(t, restarted, '?conversation_id=night');
  const paid = new Set<unknown>();
  for (let n = 0; n < 2; n++) {
    const { data } = await events.next(
      (event) => event.event === 'gate' && event.data.state === 'asked' && !paid.has(event.data.intent_id),
    );
    paid.add(data.intent_id);
    const answer = await ask(restarted, `/intents/${data.intent_id}/gates/${data.node_id}/answer`, {
      method: 'POST',
      body: JSON.stringify(
        await signedAnswer(
          { url: executor.url, token: EXECUTOR_TOKEN },
          USER,
          String(data.intent_id),
          String(data.node_id),
        ),
      ),
      headers: { 'content-type': 'application/json' },
    });
    assert.equal(answer.status, 200, answer.text);
    const ended = async () =>
      /"status":"completed"/.test(await executor.get(USER, `/messages/async/${data.intent_id}`));
    await eventually('the part is paid', ended, 20_000);
  }
  assert.deepEqual([balancesOf(home).alice, balancesOf(home).rent], ['4989.25', '10.75']);
});
