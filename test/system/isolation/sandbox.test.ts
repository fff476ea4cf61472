/** The findings of a hostile machine and a hostile MCP server, with real bubblewrap, users and sockets. */
import assert from 'node:assert/strict';
import { type ChildProcess, execFile, spawn } from 'node:child_process';
import { once } from 'node:events';
import {
  chmodSync,
  chownSync,
  existsSync,
  globSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  realpathSync,
  rmSync,
  writeFileSync,
} from 'node:fs';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { type TestContext, test } from 'node:test';
import { promisify } from 'node:util';
import { PROGRAM } from '../../support/cluster/processes.ts';
import { reveille as inProcess } from '../../support/command-line.ts';
import { eventually } from '../../support/eventually.ts';
import { hasBubblewrap } from '../../support/tools.ts';

const run = promisify(execFile);
const HOSTILE = join(import.meta.dirname, 'hostile.ts');
const LIMIT_MS = 120_000;
const UNPRIVILEGED = { uid: 65_534, gid: 65_534 };
const isRoot = process.geteuid?.() === 0;

/** Whether this test can act as another user of the system; in CI it must. */
function canBeOthers(t: TestContext): boolean {
  if (isRoot) return true;
  t.skip('only root can run a test as somebody else');
  return false;
}

type Found = { how: string; where: string };
type Report = { found: Found[]; environment: string[]; uid: number; groups: number[] };

/** A person with an installation, an approver's key, a session bus and another machine. */
async function startPerson(
  t: TestContext,
  { settings = {}, as }: { settings?: Record<string, string>; as?: { uid: number; gid: number } } = {},
) {
  const folder = realpathSync(mkdtempSync(join(tmpdir(), 'reveille-sandbox-')));
  const person = join(folder, 'ada');
  const [home, approver, runtime] = [
    join(person, '.reveille'),
    join(person, '.config', 'reveille-approver'),
    join(folder, 'run'),
  ];
  const [work, serverWork, neighbour] = [
    join(folder, 'agents', 'ada'),
    join(folder, 'server-work'),
    join(folder, 'agents', 'bob'),
  ];
  for (const target of [person, home, approver, runtime, work, serverWork, neighbour])
    mkdirSync(target, { recursive: true, mode: 0o700 });
  writeFileSync(join(approver, 'approver.json'), 'the-secret-of-the-approver');
  writeFileSync(join(neighbour, 'diary.txt'), 'the-secret-of-the-neighbour');
  writeFileSync(join(person, '.bashrc'), '# as it was\n');
  const bus = createServer().listen(join(runtime, 'bus'));
  await once(bus, 'listening');
  const manifest = join(folder, 'manifest.json');
  const command = [process.execPath, HOSTILE, 'mcp', serverWork];
  writeFileSync(
    manifest,
    JSON.stringify({
      servers: [{ alias: 'hostile', command: command[0], args: command.slice(1), writable: [serverWork] }],
    }),
  );
  if (as) {
    chownSync(folder, as.uid, as.gid);
    for (const path of globSync('**/*', { cwd: folder })) chownSync(join(folder, path), as.uid, as.gid);
    for (const path of [
      home,
      join(person, '.config'),
      approver,
      join(approver, 'approver.json'),
      join(person, '.bashrc'),
    ])
      chownSync(path, as.uid, as.gid);
  }
  const env: Record<string, string> = {
    PATH: process.env.PATH ?? '',
    ...{ HOME: person, REVEILLE_HOME: home, XDG_RUNTIME_DIR: runtime, TMPDIR: folder },
    ...{ CHRONOS_PORT: '0', ROUTER_PORT: '0', EXECUTOR_PORT: '0', EXECUTOR_MANIFEST: manifest },
    DBUS_SESSION_BUS_ADDRESS: `unix:path=${join(runtime, 'bus')}`,
    // The executor does not know the machines of a router, so it is given their folders.
    REVEILLE_HIDDEN: join(folder, 'agents'),
    ...settings,
  };
  const up: ChildProcess = spawn(process.execPath, [PROGRAM, 'up', '--json'], {
    env,
    ...as,
    cwd: folder,
    stdio: ['ignore', 'ignore', 'inherit'],
  });
  const exited = once(up, 'exit');
  t.after(async () => {
    up.kill('SIGTERM');
    await exited;
    bus.close();
    rmSync(folder, { recursive: true, force: true, maxRetries: 5 });
  });
  await eventually('up accepts requests', () => up.exitCode === null && existsSync(join(home, 'run.json')), LIMIT_MS);
  const reveille = async (...args: string[]): Promise<string> => {
    // As another user it takes a process of that user's.
    if (as) return (await run(process.execPath, [PROGRAM, ...args], { env, ...as, cwd: folder })).stdout;
    const { status, stdout, stderr } = await inProcess(home, args, { env });
    if (status !== 0) throw new Error(stderr);
    return stdout;
  };
  const secrets = Object.values(JSON.parse(readFileSync(join(home, 'secrets.json'), 'utf8'))) as string[];
  const executor = Object.values(JSON.parse(readFileSync(join(home, 'executor-secrets.json'), 'utf8'))) as string[];
  const record = JSON.parse(readFileSync(join(home, 'run.json'), 'utf8')) as Record<string, string>;
  const { NEO_DAEMON_TOKEN, CHRONOS_TOKEN } = JSON.parse(readFileSync(join(home, 'secrets.json'), 'utf8'));
  // The machine's own values are not loot: its token, and the address of chronosd.
  const own = [NEO_DAEMON_TOKEN, CHRONOS_TOKEN] as string[];
  const loot = {
    needles: [
      ...[...secrets, ...executor].filter((one) => !own.includes(one)),
      ...['the-secret-of-the-approver', 'the-secret-of-the-neighbour'],
    ],
    names: [home, approver],
    folders: [home, approver, neighbour],
    sockets: [join(runtime, 'bus')],
    writable: [join(person, '.bashrc')],
  };
  for (const target of [work, serverWork]) writeFileSync(join(target, 'loot.json'), JSON.stringify(loot));
  await reveille('machine', 'put', 'bob', '--provider', 'process', '--dir', neighbour, '--', 'true');
  return { home, person, work, serverWork, neighbour, record, reveille };
}

type Person = Awaited<ReturnType<typeof startPerson>>;

const reportIn = (folder: string, kind: string) =>
  JSON.parse(readFileSync(join(folder, `report-${kind}.json`), 'utf8')) as Report;

/** Replaces Neo with the hostile program, lets an alarm start it, and reads its findings. */
async function runHostile(person: Person, flags: string[] = []): Promise<Report> {
  const { work, reveille } = person;
  await reveille(
    'machine',
    'put',
    '--provider',
    'process',
    '--dir',
    work,
    ...flags,
    '--',
    process.execPath,
    HOSTILE,
    'daemon',
    work,
  );
  await reveille('alarm', 'set', 'go', '--in', '1s');
  await eventually('the machine has searched', () => existsSync(join(work, 'report-daemon.json')), LIMIT_MS);
  return reportIn(work, 'daemon');
}

/** Has the executor start its servers, and reads the findings of the hostile one. */
async function raidAsServer({ home, serverWork, record }: Person): Promise<Report> {
  const { EXECUTOR_TOKEN } = JSON.parse(readFileSync(join(home, 'executor-secrets.json'), 'utf8'));
  const { label } = JSON.parse(readFileSync(join(home, 'identity.json'), 'utf8'));
  const intent = { verb: 'x', plan: { id: 'n', kind: 'call', tool: 'hostile/x', args: {} } };
  const enough = new AbortController();
  // The server searches and never answers, and the executor would wait for it.
  const asked = fetch(`${record.executor_url}/intents`, {
    method: 'POST',
    headers: { authorization: `Bearer ${EXECUTOR_TOKEN}`, 'x-matrix-user': label, 'content-type': 'application/json' },
    body: JSON.stringify({ intent }),
    signal: enough.signal,
  }).catch(() => undefined);
  await eventually('the server has searched', () => existsSync(join(serverWork, 'report-mcp.json')), LIMIT_MS);
  enough.abort();
  await asked;
  return reportIn(serverWork, 'mcp');
}

const LEADS_THERE =
  /REVEILLE_HOME|APPROVER|ADMIN_TOKEN|AUTH_SECRET|WAKE_TOKEN|XDG_RUNTIME_DIR|DBUS_SESSION|EXECUTOR_TOKEN/;

function assertNamesNothing({ environment }: Report): void {
  assert.deepEqual(
    environment.filter((line) => LEADS_THERE.test(line.split('=')[0]!)),
    [],
  );
}

for (const [who, as] of [
  ['this user', undefined],
  ['an ordinary user', UNPRIVILEGED],
] as const) {
  test(`in the sandbox a hostile machine and a hostile server of ${who} find nothing`, async (t) => {
    if (!(await hasBubblewrap(t)) || (as && !canBeOthers(t))) return;
    const person = await startPerson(t, as ? { as } : {});
    const report = await runHostile(person);
    assert.deepEqual(report.found, []);
    assertNamesNothing(report);
    const server = await raidAsServer(person);
    assert.deepEqual(server.found, []);
    assertNamesNothing(server);
    assert.equal(readFileSync(join(person.person, '.bashrc'), 'utf8'), '# as it was\n');
    await person.reveille('machine', 'suspend', await ownerOf(person));
    assert.ok(existsSync(join(person.work, 'asked-to-end')), 'it is asked to end before it is killed');
  });
}

test('under another user id, without a sandbox, a hostile machine finds nothing', async (t) => {
  if (!canBeOthers(t)) return;
  const person = await startPerson(t, { settings: { REVEILLE_SEPARATION: 'off' } });
  chownSync(person.work, UNPRIVILEGED.uid, UNPRIVILEGED.gid);
  openTo(person.work);
  await assert.rejects(runHostile(person, ['--run-as', '0:0']), /other than root/);
  const report = await runHostile(person, ['--run-as', `${UNPRIVILEGED.uid}:${UNPRIVILEGED.gid}`]);
  assert.deepEqual(report.found, []);
  assert.deepEqual([report.uid, report.groups.filter((group) => group !== UNPRIVILEGED.gid)], [UNPRIVILEGED.uid, []]);
  assertNamesNothing(report);
});

test('under another user id and in the sandbox, it finds nothing either', async (t) => {
  if (!(await hasBubblewrap(t)) || !canBeOthers(t)) return;
  const person = await startPerson(t);
  chownSync(person.work, UNPRIVILEGED.uid, UNPRIVILEGED.gid);
  openTo(person.work);
  const report = await runHostile(person, ['--run-as', `${UNPRIVILEGED.uid}:${UNPRIVILEGED.gid}`]);
  assert.deepEqual([report.found, report.uid], [[], UNPRIVILEGED.uid]);
});

test('without a sandbox no input of a hostile program names the folder, and files of the same user are readable', async (t) => {
  const person = await startPerson(t, { settings: { REVEILLE_SEPARATION: 'off' } });
  const report = await runHostile(person);
  assertNamesNothing(report);
  assert.deepEqual(
    report.found.filter(({ how }) => how === 'environment' || how === 'folder' || how === 'descriptor'),
    [],
  );
  assert.ok(
    report.found.some(({ how }) => how === 'file'),
    'the sandbox prevents this',
  );
  const server = await raidAsServer(person);
  assertNamesNothing(server);
  assert.deepEqual(
    server.found.filter(({ how }) => how === 'environment' || how === 'descriptor'),
    [],
  );
});

test('a machine that was registered with --no-sandbox has none, and with REVEILLE_SEPARATION=required none is started', async (t) => {
  if (!(await hasBubblewrap(t))) return;
  const person = await startPerson(t, { settings: { REVEILLE_SEPARATION: 'required' } });
  const { work, reveille } = person;
  await reveille(
    'machine',
    'put',
    '--provider',
    'process',
    '--dir',
    work,
    '--no-sandbox',
    '--',
    process.execPath,
    HOSTILE,
    'daemon',
    work,
  );
  const { id } = JSON.parse(await reveille('alarm', 'set', 'go', '--in', '1s', '--json'));
  await eventually(
    'the wake is refused',
    async () => /--no-sandbox/.test(await reveille('alarm', 'show', id, '--json')),
    LIMIT_MS,
  );
  assert.ok(!existsSync(join(work, 'report-daemon.json')));
});

async function ownerOf({ reveille }: Person): Promise<string> {
  return JSON.parse(await reveille('machine', 'show', '--json')).user_id;
}

/** Lets other users traverse a folder. */
function openTo(folder: string): void {
  for (const path of [join(folder, '..', '..'), join(folder, '..'), folder]) chmodSync(path, 0o755);
}
