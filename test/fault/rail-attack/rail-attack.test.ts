/**
 * The attack on the rail with real processes: a hostile program in the place of an agent, and hostile MCP servers, try
 * to get a step approved; none of them holds the approver's key. Then the person approves with it, and both verifiers
 * say who that was.
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
import { signingKey } from '../../../src/executor/receipt/signing-key.ts';
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
const NOBODY = { uid: 65_534, gid: 65_534 };
const LIMIT_MS = 600_000;
/** What the shipped ledger begins with: nothing of it may have moved but what the person approved. */
const PAID = '12.50';

type Said = { stdout: string; stderr: string; code: number };

/** Runs a command of ours. */
function ran(words: string[], env: Record<string, string>, cwd: string, input = ''): Promise<Said> {
  return new Promise((resolve) => {
    const child = execFile(process.execPath, words, { env, cwd }, (error, stdout, stderr) =>
      resolve({ stdout, stderr, code: error === null ? 0 : Number(error.code) || 1 }),
    );
    child.stdin!.on('error', () => {}).end(input);
  });
}

type Options = {
  /** Whether programs run behind walls, where the system has them. */
  walls: boolean;
  /** Whether the key of the person is under a passphrase. */
  sealed?: boolean;
  /** Whose MCP server is hostile; the executor's unless told. */
  server?: 'neo';
  /** Whether all servers that ship run beside it, not the ledger alone. */
  whole?: boolean;
};

/**
 * A person with an installation and a key, and a second user of the executor, who is elsewhere and has a key of their
 * own.
 */
async function startPerson(t: TestContext, { walls, sealed = false, server, whole = false }: Options) {
  const folder = realpathSync(mkdtempSync(join(tmpdir(), 'reveille-attack-')));
  const person = join(folder, 'ada');
  const places = {
    home: join(person, '.reveille'),
    approver: join(person, '.config', 'reveille-approver'),
    runtime: join(folder, 'run'),
    work: join(folder, 'agents', 'ada'),
    serverWork: join(folder, 'server-work'),
  };
  for (const path of [person, ...Object.values(places)]) mkdirSync(path, { recursive: true, mode: 0o700 });
  writeFileSync(join(person, '.bashrc'), '# as it was\n');
  const keyStore = createServer().listen(join(places.runtime, 'bus'));
  await once(keyStore, 'listening');
  const bundled = JSON.parse(readFileSync(join(PROGRAM, '..', '..', 'agents', 'executor.json'), 'utf8')) as {
    servers: object[];
  };
  const args = [HOSTILE, 'mcp', places.serverWork];
  const hostile = { alias: 'hostile', command: process.execPath, args, writable: [places.serverWork] };
  // Where a person may keep it, too; what it says of tools decides what is asked about.
  const executorManifest = join(folder, 'executor.json');
  const neoManifest = join(places.home, 'neo.json');
  if (!whole) bundled.servers.length = 1;
  if (server !== 'neo') bundled.servers.push(hostile);
  writeFileSync(executorManifest, JSON.stringify(bundled));
  writeFileSync(neoManifest, JSON.stringify({ servers: server === 'neo' ? [hostile] : [] }));
  const model = await modelEndpoint(t, saying('Good morning.'));
  const env: Record<string, string> = {
    PATH: process.env.PATH ?? '',
    ...{ HOME: person, REVEILLE_HOME: places.home, XDG_RUNTIME_DIR: places.runtime, TMPDIR: folder },
    ...{ CHRONOS_PORT: '0', ROUTER_PORT: '0', EXECUTOR_PORT: '0', REVEILLE_APPROVER_STORE: 'file' },
    ...{ EXECUTOR_MANIFEST: executorManifest, NEO_MANIFEST: neoManifest },
    ...{ NEO_MODEL: 'm', NEO_CHEAP_MODEL: 'none', NEO_MODEL_BASE_URL: model.baseUrl },
    REVEILLE_SEPARATION: walls ? 'required' : 'off',
  };
  const up = spawn(process.execPath, [PROGRAM, 'up', '--json'], {
    env,
    cwd: folder,
    stdio: ['ignore', 'ignore', 'inherit'],
  });
  const gone = once(up, 'exit');
  t.after(async () => {
    up.kill('SIGTERM');
    await gone;
    keyStore.close();
    rmSync(folder, { recursive: true, force: true, maxRetries: 10 });
  });
  await eventually('up is there', () => up.exitCode === null && existsSync(join(places.home, 'run.json')), LIMIT_MS);
  const attempt = async (words: string[], input = ''): Promise<Said> => {
    const { status, stdout, stderr } = await reveille(places.home, words, { env, input });
    return { stdout, stderr, code: status! };
  };
  /** @returns what a command printed with `--json`, which must succeed */
  const told = async (words: string[], input = '') => {
    const { stdout, stderr, code } = await attempt([...words, '--json'], input);
    assert.equal(code, 0, `${words.join(' ')}: ${stderr}${stdout}`);
    return JSON.parse(stdout);
  };
  const secretsIn = (name: string) =>
    JSON.parse(readFileSync(join(places.home, name), 'utf8')) as Record<string, string>;
  const { approver } = await told(['approver', 'show']);
  if (sealed) await told(['approver', 'seal'], `${PASSPHRASE}\n`);
  const { executor_url: url } = secretsIn('run.json');
  const { EXECUTOR_TOKEN: token } = secretsIn('executor-secrets.json');
  const { EXECUTOR_ADMIN_TOKEN: admin } = secretsIn('executor-admin.json');
  const at = { folder, places, person, attempt, told, url: url!, token: token!, admin: admin! };
  const owner = (await told(['machine', 'show'])).user_id as string;
  return { ...at, approver: approver as string, owner, secretsIn, passphrase: sealed ? `${PASSPHRASE}\n` : '' };
}

type Person = Awaited<ReturnType<typeof startPerson>>;

/** Speaks to the executor as a user, with the operator's token. */
async function call<T>({ url, token }: Person, user: string, method: string, path: string, body?: unknown): Promise<T> {
  const response = await fetch(url + path, {
    method,
    headers: { authorization: `Bearer ${token}`, 'x-matrix-user': user, 'content-type': 'application/json' },
    ...(body === undefined ? {} : { body: JSON.stringify(body) }),
  });
  const said = (await response.json()) as { data: T };
  assert.equal(response.status, 200, JSON.stringify(said));
  return said.data;
}

/** A transfer of a user's that waits for an answer. */
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

/** The person says yes at their own command line. */
async function approves({ told, passphrase }: Person, { intent, gate }: Target): Promise<void> {
  await told(['intent', 'approve', intent, '--displayed-sha256', gate.displayed_sha256], passphrase);
}

const receiptOf = (person: Person, { intent, user }: Pick<Target, 'intent' | 'user'>) =>
  call<IntentReceipt>(person, user, 'GET', `/intents/${intent}/receipt`);

const kindsOf = ({ envelopes }: IntentReceipt, kind: string) => envelopes.filter((envelope) => envelope.kind === kind);

/** What both verifiers say of a receipt, offline. */
async function verified({ folder, attempt }: Person, receipt: IntentReceipt, executor: string, approver: string) {
  const file = join(folder, 'receipt.json');
  writeFileSync(file, JSON.stringify(receipt));
  const words = [file, '--key', executor, '--approver', approver];
  const first = await attempt(['receipt', 'verify', ...words]);
  const second = await ran([SECOND_VERIFIER, ...words], { PATH: process.env.PATH ?? '' }, folder);
  return { holds: [first.code, second.code], words: first.stdout.replace(/\s+/g, ' '), second: second.stdout };
}

/** Lets a second user's approver in: on the operator's word, and on that of the person whose executor it is. */
async function letBobIn(person: Person, executor: string) {
  const bob = testApprover();
  const file = join(person.folder, 'request.json');
  const enrollment = bob.enrollment(executor, 'bob');
  writeFileSync(file, JSON.stringify({ request: enrollment }));
  await person.told(['approver', 'enroll', '--request-file', file], person.passphrase);
  return { bob, enrollment };
}

/**
 * What waits, and what the attackers are told: everything that is no secret, and the tokens of an executor as if they
 * had leaked.
 */
async function scene(person: Person) {
  const { url, places, approver, owner, told, folder } = person;
  const executor = await executorKeyOfPerson(person);
  const { bob, enrollment } = await letBobIn(person, executor);
  const before = await asking(person, owner);
  await approves(person, before);
  const receipt = await receiptOf(person, before);
  const answered = kindsOf(receipt, 'gate.answered')[0]?.body as Record<string, unknown>;
  const { at: _, by: __, name: ___, ...signed } = answered;
  const targets = [await asking(person, owner), await asking(person, 'bob')];
  const { token: submitter } = await told(['submitter', 'add', 'an agent']);
  const orders: Orders = {
    targets,
    person: { user: owner, approver },
    executor: { url, key: executor },
    own: owner,
    places: {
      ...{ home: places.home, approver: places.approver, ledger: join(places.home, 'ledger') },
      sockets: [join(places.runtime, 'bus')],
      files: [
        ...['config.yaml', 'secrets.json', 'executor-secrets.json', 'executor-admin.json', 'run.json'],
        ...['neo.json', 'executor/journal.db', 'executor/executor.key', 'ledger/ledger.db'],
      ]
        .map((name) => join(places.home, name))
        .concat(join(places.approver, 'approver.json'), join(folder, 'ada', '.bashrc'), PROGRAM)
        // What lies there is run by our next command.
        .concat(
          COMPILED,
          join(folder, 'executor.json'),
          join(folder, 'node-compile-cache'),
          places.home,
          places.approver,
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

/** Gives the orders, and reads what came of them. */
async function raid(folder: string, kind: 'daemon' | 'mcp', orders: Orders): Promise<Report> {
  const file = join(folder, `report-${kind}.json`);
  const ordersFile = join(folder, 'orders.json');
  writeFileSync(`${ordersFile}.new`, JSON.stringify(orders), { mode: 0o644 });
  renameSync(`${ordersFile}.new`, ordersFile);
  await eventually('the attack is over', () => existsSync(file), LIMIT_MS);
  const report = JSON.parse(readFileSync(file, 'utf8')) as Report | { failed: string };
  if ('failed' in report) throw new Error(report.failed);
  return report;
}

function tell(t: TestContext, setting: string, { attempts, found, powers, can, uid }: Report): void {
  const approvals = attempts.filter(({ approved }) => approved).length;
  const say = (line: string) => {
    t.diagnostic(line);
    console.error(`  ${setting}: ${line}`);
  };
  say(`attempts ${attempts.length}, approvals ${approvals}`);
  say(
    `uid ${uid}, with ${powers.caller} tokens of callers and ${powers.admin} of administrators; found by itself: ${found.secrets.length} tokens, ${found.files.length} files, ${found.sockets.length} sockets; may write ${found.writable.length} of our files`,
  );
  for (const one of can) say(`what it CAN do: ${one}`);
}

/**
 * No attempt approved anything: by what the attacker was told, by what the executor has on record, and by the money.
 */
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
  assert.equal(started.length, 1, 'only what the person had approved before was called');
}

/** Both verifiers name the approver, and refuse the receipt in the name of another one. */
async function theReceiptSaysWho(person: Person, target: Target, executor: string, approver: string): Promise<void> {
  const isOver = async () =>
    (await call<{ status: string }>(person, target.user, 'GET', `/messages/async/${target.intent}`)).status ===
    'completed';
  await eventually('it is completed', isOver, LIMIT_MS);
  const receipt = await receiptOf(person, target);
  const { holds, words } = await verified(person, receipt, executor, approver);
  assert.deepEqual(holds, [0, 0], words);
  assert.match(words, new RegExp(`signed by ${approver}`));
  const other = await verified(person, receipt, executor, testApprover().approver);
  assert.deepEqual(other.holds, [1, 1]);
}

/** The person approves what the attackers could not, for themselves; the other user does, from elsewhere. */
async function peopleApprove(
  person: Person,
  { targets, bob, executor }: Awaited<ReturnType<typeof scene>>,
): Promise<void> {
  const [own, others] = targets as [Target, Target];
  await approves(person, own);
  await theReceiptSaysWho(person, own, executor, person.approver);
  const answer = bob.answer(others.intent, others.gate);
  await call(person, 'bob', 'POST', `/intents/${others.intent}/gates/${others.gate.node_id}/answer`, answer);
  await theReceiptSaysWho(person, others, executor, bob.approver);
}

/** Puts the hostile program in the place of Neo, with Neo's credentials, and has an alarm start it. */
async function replaceNeo({ told, attempt, places }: Person, submitter: string, flags: string[] = []): Promise<void> {
  const words = [
    'machine',
    'put',
    '--provider',
    'process',
    '--dir',
    places.work,
    '--env',
    `NEO_EXECUTOR_TOKEN=${submitter}`,
  ];
  const { code, stderr } = await attempt([...words, ...flags, '--', process.execPath, HOSTILE, 'daemon', places.work]);
  assert.equal(code, 0, stderr);
  await told(['alarm', 'set', 'go', '--in', '1s']);
}

/** Where the Neo of this installation listens, by the sockets that its process holds; on Linux. */
function neoUrl({ places }: Person): string | undefined {
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
    if (!read(`/proc/${pid}/environ`).includes(places.home)) continue;
    for (const fd of readdirSync(`/proc/${pid}/fd`)) {
      let port: number | undefined;
      try {
        port = listening.get(readlinkSync(`/proc/${pid}/fd/${fd}`));
      } catch {
        // Closed meanwhile.
      }
      if (port !== undefined) return `http://127.0.0.1:${port}`;
    }
  }
  return undefined;
}

const balance = ({ places }: Person) => balancesOf(places.home).alice;

const NOTHING_FOUND = { secrets: [], files: [], writable: [], sockets: [] };
/** What an agent of this installation is given to set alarms with (docs/wake-targets.md, "Walls"). */
const GIVEN = /\/(?:agent-access\.json|identity\.json|agent\.key)$/;

/** What it found that was not given to it. */
function loot({ found }: Report, given: readonly string[] = []) {
  const { secrets, files, writable, sockets } = found;
  return {
    ...{ writable, sockets, files: files.filter((path) => !GIVEN.test(path)) },
    secrets: secrets.filter((token) => !given.includes(token)),
  };
}

/** Puts a line of its own into whatever Node has kept there of our code. @returns how many files that were */
function poison(folder: string): number {
  const files = globSync('**/*', { cwd: folder }).map((name) => join(folder, name));
  const poisoned = files.filter((file) => {
    if (!statSync(file).isFile()) return false;
    const [head, text] = [readFileSync(file).subarray(0, 20), readFileSync(file).subarray(20)];
    // Code whose types were taken off is kept as text, after its lengths and checksums.
    if (!text.includes('import ')) return false;
    const code = Buffer.concat([Buffer.from('console.log("code of somebody else");'), text]);
    head.writeUInt32LE(code.length, 8);
    head.writeUInt32LE(crc32(code), 16);
    writeFileSync(file, Buffer.concat([head, code]));
    return true;
  });
  return poisoned.length;
}

test('0: what a program leaves in the folder for temporary files is not run by our commands', async (t) => {
  const folder = mkdtempSync(join(tmpdir(), 'reveille-attack-'));
  t.after(() => rmSync(folder, { recursive: true, force: true, maxRetries: 10 }));
  const env = { PATH: process.env.PATH ?? '', HOME: folder, REVEILLE_HOME: join(folder, 'home'), TMPDIR: folder };
  const version = () => ran([PROGRAM, '--version'], env, folder);
  const { stdout: expected } = await version();
  const kept = join(folder, 'node-compile-cache');
  if (existsSync(kept)) assert.ok(poison(kept) > 0);
  assert.equal((await version()).stdout, expected);
  // The attack itself is real: where somebody has Node keep our code in a place that others may write to, it works.
  const own = { ...env, NODE_COMPILE_CACHE: join(folder, 'named') };
  await ran([PROGRAM, '--version'], own, folder);
  assert.ok(poison(own.NODE_COMPILE_CACHE) > 0);
  assert.match((await ran([PROGRAM, '--version'], own, folder)).stdout, /code of somebody else/);
});

/**
 * Whoever may write the executor's files can make it act; nothing of that is the person's word, and both verifiers say
 * so.
 */
async function whatItCanDo(
  t: TestContext,
  person: Person,
  { orders, executor }: Awaited<ReturnType<typeof scene>>,
): Promise<void> {
  const { work, home } = person.places;
  const takeOver = await asking(person, person.owner);
  rmSync(join(work, 'orders.json'));
  rmSync(join(work, 'report-daemon.json'));
  await person.attempt(['machine', 'suspend', person.owner]);
  await person.attempt(['machine', 'restore', person.owner]);
  await person.told(['alarm', 'set', 'go', '--in', '1s']);
  const report = await raid(work, 'daemon', { ...orders, targets: [], takeOver });
  tell(t, 'unsandboxed machine, with the files of the executor', report);
  assert.match(report.can.join('\n'), /moves money/);
  assert.match(report.can.join('\n'), /answers with it: 200/, 'that it can be done is part of what this test says');
  // An approval is judged by the call that rests on it, which starts after the answer has been taken.
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

// Side by side: an attacker waits most of the time, for each wrong token.
describe('the attack on the rail', { concurrency: 5 }, () => {
  test('1: behind walls, a hostile machine and a hostile server of the executor approve nothing', async (t) => {
    if (!(await hasBubblewrap(t))) return;
    const person = await startPerson(t, { walls: true, whole: true });
    const at = await scene(person);
    const money = balance(person);
    await replaceNeo(person, at.submitter);
    const machine = await raid(person.places.work, 'daemon', at.orders);
    tell(t, 'sandboxed machine', machine);
    const server = await raid(person.places.serverWork, 'mcp', at.orders);
    tell(t, 'sandboxed server of the executor', server);
    assert.deepEqual([loot(machine, [at.submitter]), loot(server)], [NOTHING_FOUND, NOTHING_FOUND]);
    assert.deepEqual([machine.can, server.can], [[], []]);
    await nothingWasApproved(person, at.targets, [machine, server]);
    assert.equal(balance(person), money);
    await peopleApprove(person, at);
  });

  test('2: under another user id, without walls, a hostile machine approves nothing', async (t) => {
    if (process.geteuid?.() !== 0) {
      t.skip('only root can run a machine as somebody else');
      return;
    }
    const person = await startPerson(t, { walls: false });
    const { work } = person.places;
    for (const path of [person.folder, join(work, '..'), work]) chmodSync(path, 0o755);
    chownSync(work, NOBODY.uid, NOBODY.gid);
    const at = await scene(person);
    const money = balance(person);
    await replaceNeo(person, at.submitter, ['--run-as', `${NOBODY.uid}:${NOBODY.gid}`]);
    const machine = await raid(work, 'daemon', at.orders);
    tell(t, 'machine with another user id', machine);
    assert.deepEqual([loot(machine, [at.submitter]), machine.can, machine.uid], [NOTHING_FOUND, [], NOBODY.uid]);
    await nothingWasApproved(person, at.targets, [machine]);
    assert.equal(balance(person), money);
    await peopleApprove(person, at);
  });

  test('3: without walls, as the same user, a hostile machine approves nothing under a key that is sealed', async (t) => {
    const person = await startPerson(t, { walls: false, sealed: true });
    const at = await scene(person);
    await replaceNeo(person, at.submitter);
    const machine = await raid(person.places.work, 'daemon', at.orders);
    tell(t, 'unsandboxed machine, sealed key', machine);
    assert.ok(machine.found.files.length > 0, 'files of the same user are open to it: this is what walls are for');
    await nothingWasApproved(person, at.targets, [machine]);
    await peopleApprove(person, at);
    await whatItCanDo(t, person, at);
  });

  for (const walls of [true, false]) {
    const where = walls ? 'behind walls' : 'without walls, as the same user';
    test(`4: ${where}, a hostile server of Neo approves nothing${walls ? '' : ' under a key that is sealed'}`, async (t) => {
      if (walls && !(await hasBubblewrap(t))) return;
      const person = await startPerson(t, { walls, sealed: !walls, server: 'neo' });
      const at = await scene(person);
      const money = balance(person);
      await person.told(['alarm', 'set', 'go', '--in', '1s']);
      let neo: string | undefined;
      const look = () => {
        neo = neoUrl(person);
        return neo !== undefined || process.platform !== 'linux';
      };
      await eventually('Neo listens', look, LIMIT_MS);
      const { NEO_DAEMON_TOKEN } = person.secretsIn('secrets.json');
      const leaked = [...at.orders.leaked, NEO_DAEMON_TOKEN!];
      const server = await raid(person.places.serverWork, 'mcp', { ...at.orders, leaked, neo });
      tell(t, `${walls ? 'sandboxed' : 'unsandboxed'} server of Neo`, server);
      await nothingWasApproved(person, at.targets, [server]);
      assert.ok(
        server.attempts.some(({ way }) => way.startsWith('has Neo forward')),
        'it found Neo',
      );
      if (walls) assert.equal(balance(person), money);
      await peopleApprove(person, at);
    });
  }
});
