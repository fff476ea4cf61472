/**
 * A night of a user: `reveille up` with the shipped Neo and executor, git, a page and a scripted model. Reveille's
 * programs are separate processes, and the test uses only the actions of a person.
 */
import assert from 'node:assert/strict';
import { execFileSync, spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, mkdirSync, readFileSync } from 'node:fs';
import { createServer } from 'node:http';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { DatabaseSync } from 'node:sqlite';
import { type TestContext, test } from 'node:test';
import { readKeyFile } from '../../src/kit/identity/keys.ts';
import { calling, modelEndpoint, type Script, saying } from '../../src/kit/model/testing/model-endpoint.ts';
import { openEnvelope } from '../../src/wire/envelope.ts';
import { PROGRAM, START_LIMIT_MS } from '../support/cluster/processes.ts';
import { reveille } from '../support/command-line.ts';
import { eventually, eventuallyBy } from '../support/eventually.ts';
import { atEnd, listening, temporaryFolder } from '../support/temporary.ts';
import { needs } from '../support/tools.ts';
import { balancesOf } from '../system/rail/executor-process.ts';

type Verify = (content: string, key?: string, approvers?: string[]) => { ok: boolean; ends_with?: string }[];
const VERIFIER = join(import.meta.dirname, '../contract/second-verifier/verifier.mjs');
const { verify } = (await import(VERIFIER)) as { verify: Verify };

const LIMIT_MS = 2 * START_LIMIT_MS;
const WAKE = 'Write the price down and commit it, then see to the money.';
const COMMIT = 'Commit the file notes.md with the message "Note the price".';
const MONEY = 'Exchange 10.00 EUR, then send what came out to bob and wake me in an hour to look.';

const LOOK = 'look what came out';

const call = (id: string, tool: string, args: object) => ({ id, kind: 'call', tool, args });
const sequence = (verb: string, ...nodes: object[]) =>
  calling({ name: 'submit_intent', args: { verb, plan: { id: 'all', kind: 'sequence', nodes } } });
const $ref = (reference: string) => ({ $ref: reference });

/** The compiler queries the accounts before it makes a plan with money. */
const compiler: Script = (response, request) => {
  const { messages } = request.body;
  if (!messages.some(({ content }) => content.includes('10.00 EUR')))
    return sequence(
      'commit',
      call('stage', 'git/add', { paths: ['notes.md'] }),
      call('record', 'git/commit', { message: 'Note the price' }),
    )(response, request);
  if (messages.at(-1)!.role !== 'tool') return calling({ name: 'ledger__accounts', args: {} })(response, request);
  return sequence(
    'exchange and send',
    call('exchange', 'ledger/exchange', { from: 'alice', to: 'alice-usd', amount: '10.00', currency: 'EUR' }),
    call('send', 'ledger/transfer', {
      ...{ from: 'alice-usd', to: 'bob-usd', amount: $ref('exchange#/received/amount'), currency: 'USD' },
    }),
    call('wake', 'chronos/alarm_set', {
      kind: 'once',
      delay_seconds: 3600,
      wake_message: LOOK,
      conversation_id: 'night',
    }),
  )(response, request);
};

/** The agent reads, edits and submits two tasks; for any other message it takes a note. */
const agent =
  (page: string, workspace: string): Script =>
  (response, request) => {
    const { messages } = request.body;
    const asked = messages.findLastIndex(({ role }) => role === 'user');
    if (!messages[asked]!.content.includes(WAKE)) return saying('Noted.')(response, request);
    const results = messages.slice(asked).filter(({ role }) => role === 'tool');
    const price = /The price is ([\d.]+\d)/.exec(results[0]?.content ?? '')?.[1];
    const steps = [
      calling({ name: 'fetch__fetch', args: { url: page } }),
      calling({ name: 'fs__write_file', args: { path: join(workspace, 'notes.md'), content: `price: ${price}\n` } }),
      calling({ name: 'core_execute', args: { intent: COMMIT } }),
      calling({ name: 'core_execute', args: { intent: MONEY } }),
    ];
    const outcome = results.slice(2).map(({ content }) => content);
    return (steps[results.length] ?? saying(outcome.join('\n\n')))(response, request);
  };

type FireLine = { alarm_id: string; machine_start_ms: number | null };

/** `reveille up` with only the settings of a person, and the command line beside it. */
async function startUp(t: TestContext, home: string, more: Record<string, string>) {
  const ports = { CHRONOS_PORT: '0', ROUTER_PORT: '0', EXECUTOR_PORT: '0' };
  const env = { PATH: process.env.PATH ?? '', HOME: home, REVEILLE_HOME: home, ...ports, ...more };
  const up = spawn(process.execPath, [PROGRAM, 'up', '--json'], { env, stdio: ['ignore', 'pipe', 'inherit'] });
  const exited = once(up, 'exit');
  const fires: FireLine[] = [];
  createInterface({ input: up.stdout }).on('line', (line) => fires.push(JSON.parse(line)));
  const end = async () => {
    up.kill('SIGTERM');
    await exited;
  };
  atEnd(t, end);
  await eventuallyBy(up, 'up is there', () => existsSync(join(home, 'run.json')));
  /** The output of a command, a JSON value for each line. */
  const run = async <T>(...commandArgs: string[]): Promise<T[]> => {
    const { status, stdout, stderr } = await reveille(home, [...commandArgs, '--json'], { env: ports });
    assert.equal(status, 0, stderr);
    return stdout.split('\n').flatMap((line) => (line === '' ? [] : [JSON.parse(line) as T]));
  };
  return { rings: fires, run, end };
}

/** The answer of the Neo that the router has started, as source text. */
async function askNeo(home: string, path: string): Promise<string> {
  const { NEO_DAEMON_TOKEN } = JSON.parse(readFileSync(join(home, 'secrets.json'), 'utf8'));
  const db = new DatabaseSync(join(home, 'router', 'router.db'), { readOnly: true });
  const { port } = db.prepare('SELECT port FROM processes').get() as { port: number };
  db.close();
  const headers = { authorization: `Bearer ${NEO_DAEMON_TOKEN}` };
  const answer = await fetch(`http://127.0.0.1:${port}${path}`, { headers });
  return openEnvelope(await answer.text(), answer.status, 'neo').text;
}

type Gate = { node_id: string; question: string; displayed_sha256: string; call: { args: Record<string, string> } };
type Intent = { intent_id: string; status: string; origin: string; gates: Gate[] };
type Alarm = Record<'id' | 'status' | 'conversation_id' | 'wake_message' | 'created_at' | 'fire_at', string>;
type Turn = { alarm_id: string; status: string; attempts: number; message: string; reply: string };
type Call = { node_id: string; answered?: { approver: string } };
type Envelope = { kind: string; body: { node_id?: string; resolved?: object } };

test('a night: an alarm wakes Neo, it reads, edits and commits; the result of an exchange is transferred after two questions', {
  skip: needs('git'),
}, async (t) => {
  const home = temporaryFolder(t);
  const workspace = join(home, 'workspace');
  mkdirSync(workspace);
  const git = (...args: string[]) => execFileSync('git', args, { cwd: workspace, encoding: 'utf8' }).trim();
  git('init', '--quiet', '--initial-branch=main');
  const site = createServer((_, response) =>
    response.setHeader('content-type', 'text/html').end('<h1>Market</h1><p>The price is 12.50.</p>'),
  );
  const page = await listening(t, site);
  const parts: Record<string, Script> = { compiler, agent: agent(`${page}/`, workspace) };
  const model = await modelEndpoint(t, (response, request) => parts[request.body.model]!(response, request));
  const {
    rings: fires,
    run,
    end,
  } = await startUp(t, home, {
    ...{ NEO_MODEL: 'agent', NEO_MODEL_BASE_URL: model.baseUrl, NEO_CHEAP_MODEL: 'none' },
    ...{ EXECUTOR_MODEL: 'compiler', EXECUTOR_MODEL_BASE_URL: model.baseUrl },
    ...{ NEO_WORKSPACE: workspace, EXECUTOR_WORKSPACE: workspace, NEO_FETCH_ALLOW: new URL(page).host },
  });
  const [alarm] = await run<Alarm>('alarm', 'set', WAKE, '--in', '1s', '--conversation', 'night');

  const intents = () => run<Intent>('intent', 'list');
  const waiting = async () => (await intents()).find(({ status }) => status === 'awaiting_approval');
  const { intent_id: id } = await eventually('the transfer waits for an approver', waiting, LIMIT_MS);
  const turns = async () => JSON.parse(await askNeo(home, '/conversations/night')).turns as Turn[];
  await eventually('the turn has ended', async () => (await turns())[0]?.status === 'done', LIMIT_MS);
  assert.equal(readFileSync(join(workspace, 'notes.md'), 'utf8'), 'price: 12.50\n');
  assert.equal(git('log', '--format=%an: %s'), 'Agent: Note the price');
  assert.equal(git('status', '--short'), '');

  const gateOf = (node: string): Promise<Gate> =>
    eventually(
      `${node} is asked about`,
      async () => (await run<Intent>('intent', 'show', id))[0]!.gates.find(({ node_id }) => node_id === node),
      LIMIT_MS,
    );
  const approve = (gate: Gate) => run('intent', 'approve', id, '--displayed-sha256', gate.displayed_sha256);
  const balances = () => {
    const { alice, 'alice-usd': exchanged, 'bob-usd': sent } = balancesOf(home);
    return [alice, exchanged, sent];
  };
  const first = await gateOf('exchange');
  assert.match(first.question, /^Amount:\n {2}\| 10\.00 EUR$/m);
  assert.match(first.question, /^ {2}\| \/amount = "10\.00": from the task$/m);
  assert.deepEqual(balances(), ['5000.00', '0.00', '0.00']);
  await approve(first);
  const second = await gateOf('send');
  // 10.00 EUR at the ledger's 1.1637 are 11.637 USD, rounded down.
  assert.match(second.question, /^Amount:\n {2}\| 11\.63 USD\nRecipient:\n {2}\| "bob-usd"$/m);
  assert.match(second.question, /^ {2}\| \/amount = "11\.63" from step exchange: \/received\/amount/m);
  const { idempotency_key, ...args } = second.call.args;
  assert.deepEqual(args, { from: 'alice-usd', to: 'bob-usd', amount: '11.63', currency: 'USD' });
  assert.deepEqual([idempotency_key, balances()], [`${id}.send`, ['4990.00', '11.63', '0.00']]);
  await approve(second);

  await eventually('Neo got the outcome', async () => (await turns())[1]?.status === 'done', LIMIT_MS);
  assert.deepEqual(balances(), ['4990.00', '0.00', '11.63']);
  const book = new DatabaseSync(join(home, 'ledger', 'ledger.db'), { readOnly: true });
  const moved = book.prepare(
    'SELECT idempotency_key AS key FROM exchanges UNION ALL SELECT idempotency_key FROM transfers',
  );
  const keys = moved.all().flatMap((row) => row.key ?? []);
  book.close();
  assert.deepEqual(keys, [`${id}.exchange`, `${id}.send`]);
  const [woken, outcome, ...more] = await turns();
  assert.deepEqual([woken?.alarm_id, woken?.attempts, more], [alarm!.id, 1, []]);
  assert.match(outcome!.message, new RegExp(`has ended: intent ${id}[^]*It was completed`));
  assert.ok(
    fires.some(({ machine_start_ms }) => machine_start_ms !== null),
    'an alarm has started Neo',
  );
  const ended = (await intents()).map(({ status, origin }) => [status, origin]);
  assert.deepEqual(ended, [
    ['completed', 'chronos'],
    ['completed', 'chronos'],
  ]);
  const [set, ...others] = await run<Alarm>('alarm', 'list');
  assert.deepEqual([set?.wake_message, set?.conversation_id, others], [LOOK, 'night', []]);
  assert.equal(Date.parse(set!.fire_at) - Date.parse(set!.created_at), 3_600_000);

  const [, committed] = /was completed\.\nReceipt: .*GET (\/intents\/\S+\/receipt)/.exec(woken!.reply) ?? [];
  const receipts = [await askNeo(home, committed!), await askNeo(home, `/intents/${id}/receipt`)] as const;
  const [approver, ...otherApprovers] = (await run<{ approver: string }>('approver', 'list')).map(
    (one) => one.approver,
  );
  await end();
  const asked = receipts.map((text) => {
    const { envelopes } = JSON.parse(text) as { envelopes: Envelope[] };
    return envelopes.flatMap(({ kind, body }) => (kind === 'gate.asked' ? [body.node_id] : []));
  });
  assert.deepEqual(asked, [[], ['exchange', 'send']]);
  assert.match(receipts[0], /changes of the workspace are committed/);
  assert.ok(receipts[1].includes('"ref":"exchange#/received/amount"') && receipts[1].includes('"json":"\\"11.63\\""'));

  // All processes have ended: two programs without shared code verify the receipts with the keys alone.
  const key = readKeyFile(join(home, 'executor', 'executor.key')).publicKeyHex;
  const verified = async (text: string, ...who: string[]) => {
    const commandArgs = ['receipt', 'verify', '--key', key, ...who.flatMap((one) => ['--approver', one]), '--json'];
    const { status, stdout } = await reveille(home, commandArgs, { input: text });
    const [finding] = verify(text, key, who);
    assert.equal(finding?.ok, status === 0, JSON.stringify(finding) + stdout);
    return { ...finding, calls: (JSON.parse(stdout) as { calls: Call[] }).calls };
  };
  const [commit, money] = receipts;
  assert.equal((await verified(commit)).ends_with, 'intent.completed');
  const { ends_with, calls } = await verified(money, approver!);
  assert.deepEqual([ends_with, otherApprovers], ['intent.completed', []]);
  assert.deepEqual(
    calls.map(({ node_id, answered }) => [node_id, answered?.approver]),
    [
      ['exchange', approver],
      ['send', approver],
      ['wake', undefined],
    ],
  );
  assert.equal((await verified(money, key)).ok, false);
  assert.equal((await verified(money.replaceAll('11.63', '11.64'), approver!)).ok, false);
});
