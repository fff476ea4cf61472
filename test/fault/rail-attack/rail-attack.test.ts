/**
 * The attack on the approval path with real processes. A hostile program in place of an agent, and hostile MCP servers,
 * try to get a step approved; none of them has the approver's key. Then the person approves with it, and both verifiers
 * name the signer.
 */

import assert from 'node:assert/strict';
import { execFile, spawn } from 'node:child_process';
import { once } from 'node:events';
import {
  chmodSync,
  chownSync,
  existsSync,
  globSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  readlinkSync,
  realpathSync,
  renameSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, type TestContext, test } from 'node:test';
import { crc32 } from 'node:zlib';
import type { ReceiptEntry } from '../../../src/executor/receipt/bodies.ts';
import { signingKey } from '../../../src/executor/receipt/chain.ts';
import { readKeyFile } from '../../../src/kit/identity/keys.ts';
import { type PendingGate, testApprover } from '../../../src/kit/identity/testing/approver.ts';
import { modelEndpoint, saying } from '../../../src/kit/model/testing/model-endpoint.ts';
import type { IntentReceipt } from '../../../src/wire/intent-receipt.ts';
import { seal } from '../../contract/receipt-vectors/sealing.ts';
import { PROGRAM } from '../../support/cluster/processes.ts';
import { reveille } from '../../support/command-line.ts';
import { eventually } from '../../support/eventually.ts';
import { hasBubblewrap } from '../../support/tools.ts';
import { balancesOf } from '../../system/rail/executor-process.ts';
import type { Orders, Report, Target } from './hostile.ts';

const HOSTILE = join(import.meta.dirname, 'hostile.ts');
const SECOND_VERIFIER = join(import.meta.dirname, '..', '..', 'contract', 'second-verifier', 'verifier.mjs');
const COMPILED = join(PROGRAM, '..', '..', 'node_modules', '.cache', 'reveille');
const PASSPHRASE = 'seven words that nobody has written down';
const UNPRIVILEGED_ID = { uid: 65_534, gid: 65_534 };
const LIMIT_MS = 600_000;
/** The initial balance of the shipped ledger: only the person's approved payments may change it. */
const PAID = '12.50';

type Reply = { stdout: string; stderr: string; code: number };

/** Runs one of our commands. */
function ran(args: string[], env: Record<string, string>, cwd: string, input = ''): Promise<Reply> {
  return new Promise((resolve) => {
    const child = execFile(process.execPath, args, { env, cwd }, (error, stdout, stderr) =>
      resolve({ stdout, stderr, code: error === null ? 0 : Number(error.code) || 1 }),
    );
    child.stdin!.on('error', () => {}).end(input);
  });
}

type Options = {
  /** Whether programs run in a sandbox, where the system has one. */
  sandbox: boolean;
  /** Whether the key of the person is under a passphrase. */
  sealed?: boolean;
  /** The hostile MCP server's host; the executor by default. */
  server?: 'neo';
  /** Whether all shipped servers run, not the ledger alone. */
  whole?: boolean;
};

/** A person with an installation and a key, and a second user of the executor, elsewhere, with their own key. */
async function startPerson(t: TestContext, { sandbox, sealed = false, server, whole = false }: Options) {
  const folder = realpathSync(mkdtempSync(join(tmpdir(), 'reveille-attack-')));
  const person = join(folder, 'ada');
  const locations = {
    home: join(person, '.reveille'),
    approver: join(person, '.config', 'reveille-approver'),
    runtime: join(folder, 'run'),
    work: join(folder, 'agents', 'ada'),
    serverWork: join(folder, 'server-work'),
  };
  for (const path of [person, ...Object.values(locations)]) mkdirSync(path, { recursive: true, mode: 0o700 });
  writeFileSync(join(person, '.bashrc'), '# as it was\n');
  const keyStore = createServer().listen(join(locations.runtime, 'bus'));
  await once(keyStore, 'listening');
  const bundled = JSON.parse(readFileSync(join(PROGRAM, '..', '..', 'agents', 'executor.json'), 'utf8')) as {
    servers: object[];
  };
  const args = [HOSTILE, 'mcp', locations.serverWork];
  const hostile = { alias: 'hostile', command: process.execPath, args, writable: [locations.serverWork] };
  // A person may keep it here too. Its statements about tools decide which calls need an approval.
  const executorManifest = join(folder, 'executor.json');
  const neoManifest = join(locations.home, 'neo.json');
  if (!whole) bundled.servers.length = 1;
  if (server !== 'neo') bundled.servers.push(hostile);
  writeFileSync(executorManifest, JSON.stringify(bundled));
  writeFileSync(neoManifest, JSON.stringify({ servers: server === 'neo' ? [hostile] : [] }));
  const model = await modelEndpoint(t, saying('Good morning.'));
  const env: Record<string, string> = {
    PATH: process.env.PATH ?? '',
    ...{ HOME: person, REVEILLE_HOME: locations.home, XDG_RUNTIME_DIR: locations.runtime, TMPDIR: folder },
    ...{ CHRONOS_PORT: '0', ROUTER_PORT: '0', EXECUTOR_PORT: '0', REVEILLE_APPROVER_STORE: 'file' },
    ...{ EXECUTOR_MANIFEST: executorManifest, NEO_MANIFEST: neoManifest },
    ...{ NEO_MODEL: 'm', NEO_CHEAP_MODEL: 'none', NEO_MODEL_BASE_URL: model.baseUrl },
    REVEILLE_SEPARATION: sandbox ? 'required' : 'off',
  };
  const up = spawn(process.execPath, [PROGRAM, 'up', '--json'], {
    env,
    cwd: folder,
    stdio: ['ignore', 'ignore', 'inherit'],
  });
  const ended = once(up, 'exit');
  t.after(async () => {
    up.kill('SIGTERM');
    await ended;
    keyStore.close();
    rmSync(folder, { recursive: true, force: true, maxRetries: 10 });
  });
  await eventually('up is there', () => up.exitCode === null && existsSync(join(locations.home, 'run.json')), LIMIT_MS);
  const attempt = async (args: string[], input = ''): Promise<Reply> => {
    const { status, stdout, stderr } = await reveille(locations.home, args, { env, input });
    return { stdout, stderr, code: status! };
  };
  /** @returns the `--json` output of a command, which must succeed */
  const runJson = async (args: string[], input = '') => {
    const { stdout, stderr, code } = await attempt([...args, '--json'], input);
    assert.equal(code, 0, `${args.join(' ')}: ${stderr}${stdout}`);
    return JSON.parse(stdout);
  };
  const secretsIn = (name: string) =>
    JSON.parse(readFileSync(join(locations.home, name), 'utf8')) as Record<string, string>;
  const { approver } = await runJson(['approver', 'show']);
  if (sealed) await runJson(['approver', 'seal'], `${PASSPHRASE}\n`);
  const { executor_url: url } = secretsIn('run.json');
  const { EXECUTOR_TOKEN: token } = secretsIn('executor-secrets.json');
  const { EXECUTOR_ADMIN_TOKEN: admin } = secretsIn('executor-admin.json');
  const at = { folder, locations, person, attempt, runJson, url: url!, token: token!, admin: admin! };
  const owner = (await runJson(['machine', 'show'])).user_id as string;
  return { ...at, approver: approver as string, owner, secretsIn, passphrase: sealed ? `${PASSPHRASE}\n` : '' };
}

type Person = Awaited<ReturnType<typeof startPerson>>;

/** Calls the executor as a user, with the operator's token. */
async function call<T>({ url, token }: Person, user: string, method: string, path: string, body?: unknown): Promise<T> {
  const response = await fetch(url + path, {
    method,
    headers: { authorization: `Bearer ${token}`, 'x-matrix-user': user, 'content-type': 'application/json' },
    ...(body === undefined ? {} : { body: JSON.stringify(body) }),
  });
  const reply = (await response.json()) as { data: T };
  assert.equal(response.status, 200, JSON.stringify(reply));
  return reply.data;
}

/** A user's transfer that waits for an answer. */
async function asking(person: Person, user: string): Promise<Target> {
  const args = { from: 'alice', to: 'bob', amount: PAID, currency: 'EUR' };
  const intent = { verb: 'transfer', plan: { id: 'pay', kind: 'call', tool: 'ledger/transfer', args } };
  const { intent_id } = await call<{ intent_id: string }>(person, user, 'POST', '/messages/async', { intent });
  let gate: PendingGate | undefined;
  const look = async () => {
    const { pending } = await call<{ pending: PendingGate[] }>(person, user, 'GET', `/intents/${intent_id}/gates`);
    gate = pending[0];
    return gate !== undefined;
  };
  await eventually('a person is asked', look, LIMIT_MS);
  return { intent: intent_id, user, gate: gate! };
}

/** The person approves on their command line. */
async function approves({ runJson, passphrase }: Person, { intent, gate }: Target): Promise<void> {
  await runJson(['intent', 'approve', intent, '--displayed-sha256', gate.displayed_sha256], passphrase);
}

const receiptOf = (person: Person, { intent, user }: Pick<Target, 'intent' | 'user'>) =>
  call<IntentReceipt>(person, user, 'GET', `/intents/${intent}/receipt`);

const kindsOf = ({ envelopes }: IntentReceipt, kind: string) => envelopes.filter((envelope) => envelope.kind === kind);

/** The result of both verifiers for a receipt, offline. */
async function verified({ folder, attempt }: Person, receipt: IntentReceipt, executor: string, approver: string) {
  const file = join(folder, 'receipt.json');
  writeFileSync(file, JSON.stringify(receipt));
  const args = [file, '--key', executor, '--approver', approver];
  const first = await attempt(['receipt', 'verify', ...args]);
  const second = await ran([SECOND_VERIFIER, ...args], { PATH: process.env.PATH ?? '' }, folder);
  return { holds: [first.code, second.code], text: first.stdout.replace(/\s+/g, ' '), second: second.stdout };
}

/** Enrols a second user's approver: with the operator's signature, and with that of the executor's owner. */
async function enrollBob(person: Person, executor: string) {
  const bob = testApprover();
  const file = join(person.folder, 'request.json');
  const enrollment = bob.enrollment(executor, 'bob');
  writeFileSync(file, JSON.stringify({ request: enrollment }));
  await person.runJson(['approver', 'enroll', '--request-file', file], person.passphrase);
  return { bob, enrollment };
}

/**
 * The waiting questions, and the attackers' orders: all public facts, and the tokens of an executor as if they had
 * leaked.
 */
async function ordersFor(person: Person) {
  const { url, locations, approver, owner, runJson, folder } = person;
  const executor = await executorKeyOfPerson(person);
  const { bob, enrollment } = await enrollBob(person, executor);
  const before = await asking(person, owner);
  await approves(person, before);
  const receipt = await receiptOf(person, before);
  const answered = kindsOf(receipt, 'gate.answered')[0]?.body as Record<string, unknown>;
  const { at: _, by: __, name: ___, ...signed } = answered;
  const targets = [await asking(person, owner), await asking(person, 'bob')];
  const { token: submitter } = await runJson(['submitter', 'add', 'an agent']);
  const orders: Orders = {
    targets,
    person: { user: owner, approver },
    executor: { url, key: executor },
    own: owner,
    locations: {
      ...{ home: locations.home, approver: locations.approver, ledger: join(locations.home, 'ledger') },
      sockets: [join(locations.runtime, 'bus')],
      files: [
        ...['config.yaml', 'secrets.json', 'executor-secrets.json', 'executor-admin.json', 'run.json'],
        ...['neo.json', 'executor/journal.db', 'executor/executor.key', 'ledger/ledger.db'],
      ]
        .map((name) => join(locations.home, name))
        .concat(join(locations.approver, 'approver.json'), join(folder, 'ada', '.bashrc'), PROGRAM)
        // Our next command runs the contents of that folder.
        .concat(
          COMPILED,
          join(folder, 'executor.json'),
          join(folder, 'node-compile-cache'),
          locations.home,
          locations.approver,
        ),
    },
    leaked: [person.token, person.admin, submitter as string],
    seen: { answer: { ...signed, intent_id: before.intent }, enrollment },
  };
  return { executor, bob, targets, orders, submitter: submitter as string };
}

async function executorKeyOfPerson({ url, admin }: Person): Promise<string> {
  const response = await fetch(`${url}/approvers`, { headers: { authorization: `Bearer ${admin}` } });
  return ((await response.json()) as { data: { executor: string } }).data.executor;
}

/** Sends the orders, and reads the outcome. */
async function runAttack(folder: string, kind: 'daemon' | 'mcp', orders: Orders): Promise<Report> {
  const file = join(folder, `report-${kind}.json`);
  const ordersFile = join(folder, 'orders.json');
  writeFileSync(`${ordersFile}.new`, JSON.stringify(orders), { mode: 0o644 });
  renameSync(`${ordersFile}.new`, ordersFile);
  await eventually('the attack is over', () => existsSync(file), LIMIT_MS);
  const report = JSON.parse(readFileSync(file, 'utf8')) as Report | { failed: string };
  if ('failed' in report) throw new Error(report.failed);
  return report;
}

function reportDiagnostics(t: TestContext, setting: string, { attempts, found, powers, can, uid }: Report): void {
  const approvals = attempts.filter(({ approved }) => approved).length;
  const say = (line: string) => {
    t.diagnostic(line);
    console.error(`  ${setting}: ${line}`);
  };
  say(`attempts ${attempts.length}, approvals ${approvals}`);
  say(
    `uid ${uid}, with ${powers.caller} tokens of callers and ${powers.admin} of administrators; found by itself: ${found.secrets.length} tokens, ${found.files.length} files, ${found.sockets.length} sockets; may write ${found.writable.length} of our files`,
  );
  for (const one of can) say(`power of the attacker: ${one}`);
}

/** No attempt approved anything: by the answers to the attacker, by the executor's records, and by the money. */
async function nothingWasApproved(person: Person, targets: readonly Target[], reports: readonly Report[]) {
  for (const { attempts } of reports) {
    assert.ok(attempts.length > 200, `there were ${attempts.length} attempts`);
    assert.deepEqual(
      attempts.filter(({ approved }) => approved),
      [],
    );
  }
  for (const target of targets) {
    const { status } = await call<{ status: string }>(person, target.user, 'GET', `/messages/async/${target.intent}`);
    assert.equal(status, 'awaiting_approval');
    const receipt = await receiptOf(person, target);
    for (const kind of ['gate.answered', 'call.started']) assert.deepEqual(kindsOf(receipt, kind), []);
  }
  const { intents } = await call<{ intents: { intent_id: string }[] }>(
    person,
    person.owner,
    'GET',
    '/intents?limit=500',
  );
  const started: string[] = [];
  for (const { intent_id: intent } of intents) {
    const receipt = await receiptOf(person, { intent, user: person.owner });
    if (kindsOf(receipt, 'call.started').some(({ body }) => body.surface === 'escalate')) started.push(intent);
  }
  assert.equal(started.length, 1, 'only calls that the person approved before were made');
}

/** Both verifiers name the approver, and refuse the receipt in another approver's name. */
async function receiptNamesApprover(person: Person, target: Target, executor: string, approver: string): Promise<void> {
  const isSettled = async () =>
    (await call<{ status: string }>(person, target.user, 'GET', `/messages/async/${target.intent}`)).status ===
    'completed';
  await eventually('it is completed', isSettled, LIMIT_MS);
  const receipt = await receiptOf(person, target);
  const { holds, text } = await verified(person, receipt, executor, approver);
  assert.deepEqual(holds, [0, 0], text);
  assert.match(text, new RegExp(`signed by ${approver}`));
  const other = await verified(person, receipt, executor, testApprover().approver);
  assert.deepEqual(other.holds, [1, 1]);
}

/** The person approves what the attackers could not; the other user does the same elsewhere. */
async function usersApprove(
  person: Person,
  { targets, bob, executor }: Awaited<ReturnType<typeof ordersFor>>,
): Promise<void> {
  const [own, others] = targets as [Target, Target];
  await approves(person, own);
  await receiptNamesApprover(person, own, executor, person.approver);
  const answer = bob.answer(others.intent, others.gate);
  await call(person, 'bob', 'POST', `/intents/${others.intent}/gates/${others.gate.node_id}/answer`, answer);
  await receiptNamesApprover(person, others, executor, bob.approver);
}

/** Replaces Neo with the hostile program, with Neo's credentials, and lets an alarm start it. */
async function replaceNeo(
  { runJson, attempt, locations }: Person,
  submitter: string,
  flags: string[] = [],
): Promise<void> {
  const args = [
    'machine',
    'put',
    '--provider',
    'process',
    '--dir',
    locations.work,
    '--env',
    `NEO_EXECUTOR_TOKEN=${submitter}`,
  ];
  const { code, stderr } = await attempt([
    ...args,
    ...flags,
    '--',
    process.execPath,
    HOSTILE,
    'daemon',
    locations.work,
  ]);
  assert.equal(code, 0, stderr);
  await runJson(['alarm', 'set', 'go', '--in', '1s']);
}

/** The address of this installation's Neo, from the sockets of its process; on Linux. */
function neoUrl({ locations }: Person): string | undefined {
  const read = (path: string) => {
    try {
      return readFileSync(path, 'latin1');
    } catch {
      return '';
    }
  };
  const listening = new Map(
    read('/proc/net/tcp')
      .split('\n')
      .map((line) => line.trim().split(/\s+/))
      .filter(([, local, , state]) => state === '0A' && local?.startsWith('0100007F:'))
      .map(([, local, , , , , , , , inode]) => [`socket:[${inode}]`, Number.parseInt(local!.slice(9), 16)]),
  );
  for (const pid of existsSync('/proc') ? readdirSync('/proc').filter((name) => /^\d+$/.test(name)) : []) {
    if (!/reveille\.mjs\0neo\0/.test(read(`/proc/${pid}/cmdline`))) continue;
    if (!read(`/proc/${pid}/environ`).includes(locations.home)) continue;
    for (const fd of readdirSync(`/proc/${pid}/fd`)) {
      let port: number | undefined;
      try {
        port = listening.get(readlinkSync(`/proc/${pid}/fd/${fd}`));
      } catch {
        // Closed by now.
      }
      if (port !== undefined) return `http://127.0.0.1:${port}`;
    }
  }
  return undefined;
}

const balance = ({ locations }: Person) => balancesOf(locations.home).alice;

const NOTHING_FOUND = { secrets: [], files: [], writable: [], sockets: [] };
/** The credentials with which an agent of this installation sets alarms (docs/reference/wake-targets.md). */
const GIVEN = /\/(?:agent-access\.json|identity\.json|agent\.key)$/;

/** Its findings that were not given to it. */
function secretsFoundBy({ found }: Report, given: readonly string[] = []) {
  const { secrets, files, writable, sockets } = found;
  return {
    ...{ writable, sockets, files: files.filter((path) => !GIVEN.test(path)) },
    secrets: secrets.filter((token) => !given.includes(token)),
  };
}

/** Inserts its own line into all of our code that Node has cached there. @returns the number of changed files */
function injectCode(folder: string): number {
  const files = globSync('**/*', { cwd: folder }).map((name) => join(folder, name));
  const injected = files.filter((file) => {
    if (!statSync(file).isFile()) return false;
    const [head, text] = [readFileSync(file).subarray(0, 20), readFileSync(file).subarray(20)];
    // Code without its types is cached as text, after its lengths and checksums.
    if (!text.includes('import ')) return false;
    const code = Buffer.concat([Buffer.from('console.log("code of somebody else");'), text]);
    head.writeUInt32LE(code.length, 8);
    head.writeUInt32LE(crc32(code), 16);
    writeFileSync(file, Buffer.concat([head, code]));
    return true;
  });
  return injected.length;
}

test("0: our commands do not run a program's files from the folder for temporary files", async (t) => {
  const folder = mkdtempSync(join(tmpdir(), 'reveille-attack-'));
  t.after(() => rmSync(folder, { recursive: true, force: true, maxRetries: 10 }));
  const env = { PATH: process.env.PATH ?? '', HOME: folder, REVEILLE_HOME: join(folder, 'home'), TMPDIR: folder };
  const version = () => ran([PROGRAM, '--version'], env, folder);
  const { stdout: expected } = await version();
  const kept = join(folder, 'node-compile-cache');
  if (existsSync(kept)) assert.ok(injectCode(kept) > 0);
  assert.equal((await version()).stdout, expected);
  // The attack itself is real: it works when Node caches our code in a folder that others may write to.
  const own = { ...env, NODE_COMPILE_CACHE: join(folder, 'named') };
  await ran([PROGRAM, '--version'], own, folder);
  assert.ok(injectCode(own.NODE_COMPILE_CACHE) > 0);
  assert.match((await ran([PROGRAM, '--version'], own, folder)).stdout, /code of somebody else/);
});

/**
 * A program that may write the executor's files can make it act. None of that has the person's signature, and both
 * verifiers report it.
 */
async function serverFilesAttack(
  t: TestContext,
  person: Person,
  { orders, executor }: Awaited<ReturnType<typeof ordersFor>>,
): Promise<void> {
  const { work, home } = person.locations;
  const takeOver = await asking(person, person.owner);
  rmSync(join(work, 'orders.json'));
  rmSync(join(work, 'report-daemon.json'));
  await person.attempt(['machine', 'suspend', person.owner]);
  await person.attempt(['machine', 'restore', person.owner]);
  await person.runJson(['alarm', 'set', 'go', '--in', '1s']);
  const report = await runAttack(work, 'daemon', { ...orders, targets: [], takeOver });
  reportDiagnostics(t, 'unsandboxed machine, with the files of the executor', report);
  assert.match(report.can.join('\n'), /moves money/);
  assert.match(report.can.join('\n'), /answers with it: 200/, 'this attack must succeed: the test documents it');
  // An approval is judged by its call, which starts after the answer was accepted.
  const started = async () => {
    const found = await receiptOf(person, takeOver);
    return kindsOf(found, 'call.started').length > 0 && found;
  };
  const receipt = await eventually('the call has started', started, LIMIT_MS);
  const refused = await verified(person, receipt, executor, person.approver);
  assert.deepEqual(refused.holds, [1, 1], 'it is not approved under the key of the person');

  // With the executor's own key it writes the person's into the receipt, and signs all of it anew.
  const key = signingKey(readKeyFile(join(home, 'executor', 'executor.key')));
  const forged = receipt.envelopes.map(({ kind, body }) => ({
    kind,
    body: kind === 'gate.answered' ? { ...body, approver: person.approver } : body,
  }));
  const envelopes = seal(forged as unknown as ReceiptEntry[], key);
  const again = await verified(person, { ...receipt, envelopes }, executor, person.approver);
  assert.deepEqual(again.holds, [1, 1]);
  assert.match(again.second, /"rule":"approver"/);
}

// In parallel: an attacker waits most of the time, for each wrong token.
describe('the attack on the approval path', { concurrency: 5 }, () => {
  test('1: in a sandbox, a hostile machine and a hostile server of the executor approve nothing', async (t) => {
    if (!(await hasBubblewrap(t))) return;
    const person = await startPerson(t, { sandbox: true, whole: true });
    const at = await ordersFor(person);
    const money = balance(person);
    await replaceNeo(person, at.submitter);
    const machine = await runAttack(person.locations.work, 'daemon', at.orders);
    reportDiagnostics(t, 'sandboxed machine', machine);
    const server = await runAttack(person.locations.serverWork, 'mcp', at.orders);
    reportDiagnostics(t, 'sandboxed server of the executor', server);
    assert.deepEqual([secretsFoundBy(machine, [at.submitter]), secretsFoundBy(server)], [NOTHING_FOUND, NOTHING_FOUND]);
    assert.deepEqual([machine.can, server.can], [[], []]);
    await nothingWasApproved(person, at.targets, [machine, server]);
    assert.equal(balance(person), money);
    await usersApprove(person, at);
  });

  test('2: under another user id, without a sandbox, a hostile machine approves nothing', async (t) => {
    if (process.geteuid?.() !== 0) {
      t.skip('only root can run a machine as somebody else');
      return;
    }
    const person = await startPerson(t, { sandbox: false });
    const { work } = person.locations;
    for (const path of [person.folder, join(work, '..'), work]) chmodSync(path, 0o755);
    chownSync(work, UNPRIVILEGED_ID.uid, UNPRIVILEGED_ID.gid);
    const at = await ordersFor(person);
    const money = balance(person);
    await replaceNeo(person, at.submitter, ['--run-as', `${UNPRIVILEGED_ID.uid}:${UNPRIVILEGED_ID.gid}`]);
    const machine = await runAttack(work, 'daemon', at.orders);
    reportDiagnostics(t, 'machine with another user id', machine);
    assert.deepEqual(
      [secretsFoundBy(machine, [at.submitter]), machine.can, machine.uid],
      [NOTHING_FOUND, [], UNPRIVILEGED_ID.uid],
    );
    await nothingWasApproved(person, at.targets, [machine]);
    assert.equal(balance(person), money);
    await usersApprove(person, at);
  });

  test('3: without a sandbox, as the same user, a hostile machine approves nothing under a sealed key', async (t) => {
    const person = await startPerson(t, { sandbox: false, sealed: true });
    const at = await ordersFor(person);
    await replaceNeo(person, at.submitter);
    const machine = await runAttack(person.locations.work, 'daemon', at.orders);
    reportDiagnostics(t, 'unsandboxed machine, sealed key', machine);
    assert.ok(machine.found.files.length > 0, 'files of the same user are readable without a sandbox');
    await nothingWasApproved(person, at.targets, [machine]);
    await usersApprove(person, at);
    await serverFilesAttack(t, person, at);
  });

  for (const sandbox of [true, false]) {
    const where = sandbox ? 'in a sandbox' : 'without a sandbox, as the same user';
    test(`4: ${where}, a hostile server of Neo approves nothing${sandbox ? '' : ' under a sealed key'}`, async (t) => {
      if (sandbox && !(await hasBubblewrap(t))) return;
      const person = await startPerson(t, { sandbox, sealed: !sandbox, server: 'neo' });
      const at = await ordersFor(person);
      const money = balance(person);
      await person.runJson(['alarm', 'set', 'go', '--in', '1s']);
      let neo: string | undefined;
      const look = () => {
        neo = neoUrl(person);
        return neo !== undefined || process.platform !== 'linux';
      };
      await eventually('Neo listens', look, LIMIT_MS);
      const { NEO_DAEMON_TOKEN } = person.secretsIn('secrets.json');
      const leaked = [...at.orders.leaked, NEO_DAEMON_TOKEN!];
      const server = await runAttack(person.locations.serverWork, 'mcp', { ...at.orders, leaked, neo });
      reportDiagnostics(t, `${sandbox ? 'sandboxed' : 'unsandboxed'} server of Neo`, server);
      await nothingWasApproved(person, at.targets, [server]);
      assert.ok(
        server.attempts.some(({ way }) => way.startsWith('has Neo forward')),
        'it found Neo',
      );
      if (sandbox) assert.equal(balance(person), money);
      await usersApprove(person, at);
    });
  }
});
