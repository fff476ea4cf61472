import assert from 'node:assert/strict';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { neoChild } from '../../../src/agents/neo/testing/neo-child.ts';
import { accepted, ask, readEvents, settledTurns } from '../../../src/agents/neo/testing/workbench.ts';
import type { PendingGate } from '../../../src/kit/identity/testing/approver.ts';
import { modelEndpoint } from '../../../src/kit/model/testing/model-endpoint.ts';
import { APPROVER, enrolled } from '../../support/cluster/approval.ts';
import { reveille } from '../../support/command-line.ts';
import { temporaryFolder } from '../../support/temporary.ts';
import { balancesOf, EXECUTOR_TOKEN, startExecutorProcess } from './executor-process.ts';
import { AGENT_MODEL, COMPILER_MODEL, spender, TASK } from './spender.ts';

const CONVERSATION = 'rent';
const USER = 'alice';

test('a transfer that a person asks Neo for is approved over its API, made once, and proved by a receipt', async (t) => {
  const home = temporaryFolder(t);
  const endpoint = await modelEndpoint(t, spender);
  const executor = await startExecutorProcess(home, {
    EXECUTOR_MODEL: COMPILER_MODEL,
    EXECUTOR_MODEL_BASE_URL: endpoint.baseUrl,
  });
  t.after(() => executor.end('SIGKILL'));
  const neo = await neoChild(join(home, 'neo'), {
    NEO_MODEL: AGENT_MODEL,
    NEO_MODEL_BASE_URL: endpoint.baseUrl,
    NEO_CHEAP_MODEL: 'none',
    NEO_EXECUTOR_URL: executor.url,
    NEO_EXECUTOR_TOKEN: EXECUTOR_TOKEN,
    MATRIX_USER_ID: USER,
  });
  t.after(() => neo.end('SIGKILL'));

  const events = await readEvents(t, neo, `?conversation_id=${CONVERSATION}`);
  await accepted(neo, { message: TASK, conversation_id: CONVERSATION });
  const { data: gate } = await events.next(({ event, data }) => event === 'gate' && data.state === 'asked');
  assert.match(String(gate.question), /ledger\/transfer/);
  assert.match(String(gate.question), /12\.50/);
  const call = gate.call as { tool: string; args: Record<string, string>; call_sha256: string };
  assert.deepEqual([call.tool, call.args.amount, call.args.to], ['ledger/transfer', '12.50', 'rent']);
  assert.equal(call.args.idempotency_key, `${gate.intent_id}.${gate.node_id}`);
  assert.deepEqual([balancesOf(home).alice, balancesOf(home).rent], ['5000.00', '0.00']);

  await enrolled(executor.url, USER);
  const answer = await ask(neo, `/intents/${gate.intent_id}/gates/${gate.node_id}/answer`, {
    method: 'POST',
    body: JSON.stringify(APPROVER.answer(String(gate.intent_id), gate as unknown as PendingGate)),
    headers: { 'content-type': 'application/json' },
  });
  assert.equal(answer.status, 200, answer.text);
  const [turn] = await settledTurns(neo, CONVERSATION);
  assert.match(turn?.reply ?? '', /was completed/, executor.log());
  assert.deepEqual([balancesOf(home).alice, balancesOf(home).rent], ['4987.50', '12.50']);

  const receipt = await executor.get(USER, `/intents/${gate.intent_id}/receipt`);
  const file = join(home, 'receipt.json');
  writeFileSync(file, receipt);
  const { public_key: key } = JSON.parse(receipt) as { public_key: string };
  const { receipt: pointer } = JSON.parse(await executor.get(USER, `/messages/async/${gate.intent_id}`)) as {
    receipt: { sha256: string; path: string };
  };
  assert.equal(pointer.path, `/intents/${gate.intent_id}/receipt`);
  const finished = events.received.find(({ event, data }) => event === 'tool' && data.state === 'finished')?.data;
  assert.match(
    String(finished?.output),
    new RegExp(`was completed\\.\nReceipt: sha256 ${pointer.sha256}, .*GET ${pointer.path} `),
  );
  // The person fetches it from their agent, and verifies it through a pipe.
  const fetched = await ask(neo, pointer.path, {});
  const piped = await reveille(home, ['receipt', 'verify', '--key', key, '--json'], { input: fetched.text });
  assert.equal(piped.status, 0, piped.stderr + piped.stdout);
  const facts = JSON.parse(piped.stdout) as { receipt_sha256: string; file: string };
  assert.deepEqual([facts.receipt_sha256, facts.file], [pointer.sha256, 'standard input']);
  const verified = await reveille(home, ['receipt', 'verify', file, '--key', key]);
  assert.equal(verified.status, 0, verified.stderr + verified.stdout);
  writeFileSync(file, receipt.replaceAll('12.50', '99.99'));
  const forged = await reveille(home, ['receipt', 'verify', file, '--key', key]);
  assert.equal(forged.status, 1, forged.stderr + forged.stdout);
});
