import assert from 'node:assert/strict';
import { readFileSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { after, test } from 'node:test';
import { testCall, textOf } from '../../../src/agents/neo/testing/tool-call.ts';
import { parseToolConfig } from '../../../src/agents/neo/tools/settings.ts';
import { spawnTools } from '../../../src/agents/neo/tools/start-host.ts';
import { textAnswer } from '../../../src/agents/neo/tools/surface.ts';
import { systemClock } from '../../../src/kit/clock/clock.ts';
import { silentLogger } from '../../../src/kit/log/log.ts';
import { loadManifest } from '../../../src/mcp-host/manifest.ts';
import { APPROVER, signedAnswer } from '../../support/cluster/approval.ts';
import { reveille } from '../../support/command-line.ts';
import { eventually } from '../../support/eventually.ts';
import { MOST } from '../../support/stand-ins/chain-server.ts';
import { atEnd, temporaryFolder } from '../../support/temporary.ts';
import { EXECUTOR_TOKEN, type ExecutorProcess, startExecutorProcess } from './executor-process.ts';

const RECIPE = join(import.meta.dirname, '../../../examples/chain');
const SERVER = join(import.meta.dirname, '../../support/stand-ins/chain-server.ts');
const RECIPIENT = '0x5aAeb6053F3E94C9b9A09f33669435E7Ef1BeAed';
const VARIABLES = { PAXEER_RPC_URL: 'http://127.0.0.1:9', PAXEER_SIGNING_KEY: 'only-the-executor-has-this-key' };

const owner = { after };
const home = temporaryFolder(owner);
/** Apart from the home, which servers do not see. */
const made = join(temporaryFolder(owner), 'transfers');

/** The manifest of the recipe, with the stand-in replacing the server. */
function manifest(name: 'executor' | 'neo'): string {
  const recipe = JSON.parse(readFileSync(join(RECIPE, `${name}.json`), 'utf8')) as {
    servers: { args?: string[]; command: string }[];
  };
  Object.assign(recipe.servers[0]!, { command: process.execPath, args: [SERVER, made], writable: [dirname(made)] });
  const path = join(home, `${name}.json`);
  writeFileSync(path, JSON.stringify(recipe));
  return path;
}

const start = () =>
  startExecutorProcess(home, {
    ...VARIABLES,
    EXECUTOR_MANIFEST: manifest('executor'),
    EXECUTOR_POLICY: join(RECIPE, 'policy.yaml'),
  });
let executor: ExecutorProcess = await start();
atEnd(owner, () => executor.end('SIGKILL'));

async function submit(...nodes: object[]): Promise<string> {
  const plan = { id: 'all', kind: 'sequence', nodes };
  const answer = await fetch(`${executor.url}/messages/async`, {
    method: 'POST',
    headers: {
      authorization: `Bearer ${EXECUTOR_TOKEN}`,
      'x-matrix-user': 'alice',
      'content-type': 'application/json',
    },
    body: JSON.stringify({ intent: { verb: 'send', plan } }),
  });
  assert.equal(answer.status, 200);
  return ((await answer.json()) as { data: { intent_id: string } }).data.intent_id;
}

const query = async <T>(path: string) => JSON.parse(await executor.get('alice', path)) as T;
type State = { status: string; error?: { message: string }; receipt?: { sha256: string } };
/** Waits until the intent has ended or waits for a person. */
async function reaches(id: string, status: string): Promise<State> {
  const settled = ['awaiting_approval', 'completed', 'failed', 'denied', 'unknown'];
  const state = await eventually(
    `${id} is ${status}`,
    async () => {
      const now = await query<State>(`/messages/async/${id}`);
      return (
        settled.includes(now.status) && (status === 'awaiting_approval' || now.status !== 'awaiting_approval') && now
      );
    },
    20_000,
  );
  assert.equal((state as State).status, status, JSON.stringify(state));
  return state as State;
}

const balance = { id: 'balance', kind: 'call', tool: 'paxeer-net/get_balance', args: { address: '0xa11ce' } };
const send = (amount: unknown, to = '0xb0b') => ({
  ...{ id: 'send', kind: 'call', tool: 'paxeer-net/transfer' },
  args: { to, token: 'PAX', amount },
});

test('the recipe’s manifests are valid, and only the executor’s names the signing key', () => {
  const [rail, agent] = (['executor', 'neo'] as const).map((name) =>
    loadManifest(join(RECIPE, `${name}.json`), VARIABLES),
  );
  assert.ok(rail!.servers[0]!.variables.includes('PAXEER_SIGNING_KEY'));
  assert.deepEqual(agent!.servers[0]!.variables, ['PAXEER_RPC_URL']);
});

test('the agent sees paxeer-net__get_balance with all digits, and no transfer, which escalates', async () => {
  const surface = await spawnTools({
    config: parseToolConfig({ NEO_MANIFEST: manifest('neo') }, home),
    variables: { PATH: process.env.PATH, ...VARIABLES },
    ...{ dataDir: join(home, 'neo'), clock: systemClock, log: silentLogger },
    delegate: async () => textAnswer('handed over'),
  });
  atEnd(owner, () => surface.close());
  const names = surface.schemas().map(({ name }) => name);
  assert.deepEqual(names, ['paxeer-net__get_balance', 'paxeer-net__simulate_transfer', 'core_execute']);
  const toolResult = await surface.dispatch('paxeer-net__get_balance', { address: '0xa11ce' }, testCall());
  assert.ok(textOf(toolResult).includes(`"wei":${MOST}`), textOf(toolResult));
  const refused = await surface.dispatch('paxeer-net__transfer', { to: '0xb0b' }, testCall());
  assert.ok(refused.isError);
  assert.match(textOf(refused), /core_execute/);
});

test('a number that no call can represent exactly is refused before the transfer, and limits hold for 256 bits', async () => {
  const number = await submit(balance, send({ $ref: 'balance#/wei' }));
  assert.match(
    (await reaches(number, 'failed')).error!.message,
    /\/amount refers to balance#\/wei.*cannot be represented exactly/,
  );
  const small = await submit(send('1000000000000000000', RECIPIENT));
  await reaches(small, 'completed');
  const tooMuch = await submit(balance, send({ $ref: 'balance#/balance' }, RECIPIENT));
  assert.match((await reaches(tooMuch, 'denied')).error!.message, /1000000000000000000/);
});

test('the whole of a 256-bit balance is sent digit for digit, after a question that survives a kill, and proved', async () => {
  const id = await submit(balance, send({ $ref: 'balance#/balance' }));
  await reaches(id, 'awaiting_approval');
  await executor.end('SIGKILL');
  executor = await start();
  type Gates = { pending: { question: string; call: { args: { amount: string } } }[] };
  const { pending } = await query<Gates>(`/intents/${id}/gates`);
  assert.equal(pending[0]!.call.args.amount, MOST);
  assert.ok(pending[0]!.question.includes(`/amount = "${MOST}" from step balance: /balance`), pending[0]!.question);
  assert.ok(!readFileSync(made, 'utf8').includes(id), 'nothing is sent before the answer');
  const answer = await signedAnswer({ url: executor.url, token: EXECUTOR_TOKEN }, 'alice', id, 'send');
  const taken = await fetch(`${executor.url}/intents/${id}/gates/send/answer`, {
    method: 'POST',
    headers: {
      authorization: `Bearer ${EXECUTOR_TOKEN}`,
      'x-matrix-user': 'alice',
      'content-type': 'application/json',
    },
    body: JSON.stringify(answer),
  });
  assert.equal(taken.status, 200, await taken.text());
  const { receipt } = await reaches(id, 'completed');
  const sent = readFileSync(made, 'utf8')
    .trimEnd()
    .split('\n')
    .map((line) => JSON.parse(line) as { args: object });
  assert.deepEqual(
    sent.slice(1).map(({ args }) => args),
    [{ to: '0xb0b', token: 'PAX', amount: MOST, request_id: `${id}.send` }],
  );
  const text = await executor.get('alice', `/intents/${id}/receipt`);
  const verifyArgs = ['receipt', 'verify', '--trust-embedded', '--approver', APPROVER.approver, '--json'];
  const { status, stdout } = await reveille(home, verifyArgs, { input: text });
  assert.equal(status, 0, stdout);
  assert.equal((JSON.parse(stdout) as { receipt_sha256: string }).receipt_sha256, receipt!.sha256);
});
