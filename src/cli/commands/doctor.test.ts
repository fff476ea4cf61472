import assert from 'node:assert/strict';
import { randomInt } from 'node:crypto';
import { chmodSync, existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:http';
import { join } from 'node:path';
import { after, before, describe, test } from 'node:test';
import { type Outcome, reveille } from '../../../test/support/command-line.ts';
import { type Installation, startAgent, startInstallation } from '../../../test/support/installation.ts';
import { closeServer, listening, sharedOwner, temporaryFolder } from '../../../test/support/temporary.ts';
import { hasBubblewrap } from '../../../test/support/tools.ts';
import { writeSourceState } from '../../chronos/store/sqlite/transfer-state.ts';
import { systemClock } from '../../kit/clock/clock.ts';
import { openDatabase } from '../../kit/sqlite/open.ts';
import { VERSION } from '../../wire/version.ts';
import { aheadBy } from '../access/unreachable.ts';
import type { Check } from '../doctor/check.ts';
import { checkClock, checkNode, checkTimeZones } from '../doctor/computer.ts';
import { isolationCheck } from '../doctor/disabled.ts';
import { renderChecks } from './doctor.ts';

const isRoot = process.geteuid?.() === 0;

const now = Date.parse('2026-06-15T12:00:00Z');

test('a report marks every check, wraps long lines and prints the remedy below', () => {
  const checks: Check[] = [
    { name: 'Node', status: 'ok', detail: '24.1.0' },
    { name: 'router', status: 'note', detail: 'does not run\nand never did', remedy: 'start it' },
    { name: 'REVEILLE_HOME', status: 'broken', detail: `/a\u001b[2J ${'word '.repeat(20)}`.trim(), remedy: 'mend it' },
  ];
  const look = { now, zone: 'UTC', width: 60, paint: (_style: string, text: string) => text };
  assert.deepEqual(renderChecks(checks, { up: ['chronosd'], down: ['router', 'executor'] }, look), [
    '✓ Node           24.1.0',
    '· router         does not run',
    '                 and never did',
    '                 → start it',
    '✗ REVEILLE_HOME  /a\\u001b[2J word word word word word word',
    '                 word word word word word word word word',
    '                 word word word word word word',
    '                 → mend it',
    '',
    '1 of 3 checks failed; chronosd runs; not running here:',
    'router, executor.',
  ]);
});

test('an old Node, a clock in the past and clocks that disagree are found', () => {
  assert.equal(checkNode('24.21.0').status, 'ok');
  assert.equal(checkNode('20.11.1').status, 'broken');
  assert.equal(checkClock(0, undefined).status, 'broken');
  assert.equal(checkClock(now, undefined).status, 'ok');
  assert.equal(checkClock(now, { second: now, aheadMs: 0 }).status, 'ok');
  const ahead = checkClock(now, { second: now, aheadMs: 90_000 });
  assert.equal(ahead.status, 'warning');
  assert.match(ahead.detail, /chronosd's is 90 s ahead of this one/);
  assert.match(checkClock(now, { second: now, aheadMs: -5000 }).detail, /5 s behind/);
});

test('the time zones in use are named, with their age when they are old', () => {
  const at = Date.parse('2026-11-28T12:00:00Z');
  assert.deepEqual(checkTimeZones(at, '2026c'), {
    ...{ name: 'time zones', status: 'ok', detail: 'tzdata 2026f: Node has 2026c, Reveille the later changes' },
  });
  assert.equal(checkTimeZones(at, '2026f').detail, 'tzdata 2026f');
  assert.equal(checkTimeZones(Date.parse('2028-06-01'), '2027b').status, 'ok');
  const old = checkTimeZones(Date.parse('2028-06-01'), '2026c');
  assert.equal(old.status, 'warning');
  assert.match(old.detail, /Reveille the later changes; it is 581 days old$/);
  assert.match(old.remedy!, /^update Reveille or Node; or set ICU_TIMEZONE_FILES_DIR/);
  assert.equal(checkTimeZones(at, undefined).status, 'broken');
});

test('the difference of two clocks is the part that the seconds of a Date header cannot explain', () => {
  assert.equal(aheadBy(now, now, now + 20), 0);
  assert.equal(aheadBy(now, now + 900, now + 999), 0);
  assert.equal(aheadBy(now, now + 999, now + 1100), 0);
  assert.equal(aheadBy(now, now + 3000, now + 3020), -2001);
  assert.equal(aheadBy(now + 5000, now, now + 20), 4980);
});

type Report = { checks: Check[]; ok: boolean };

function reportOf({ stdout }: Outcome): Report {
  assert.equal(stdout.trimEnd().split('\n').length, 1, 'one JSON line');
  return JSON.parse(stdout) as Report;
}

function find(report: Report, name: string): Check {
  const check = report.checks.find((one) => one.name === name);
  assert.ok(check, `there is a check of ${name}`);
  return check;
}

/**
 * Ports without a listener, so that the report does not depend on other programs of this computer. They are below the
 * range that the system assigns to other tests.
 */
async function freePorts(): Promise<Record<string, string>> {
  const free = async (): Promise<string> => {
    const port = randomInt(10_000, 32_000);
    const server = createServer();
    const listens = await new Promise<boolean>((resolve) => {
      server.once('error', () => resolve(false));
      server.listen(port, '127.0.0.1', () => resolve(true));
    });
    if (!listens) return free();
    await closeServer(server);
    return String(port);
  };
  return { CHRONOS_PORT: await free(), ROUTER_PORT: await free(), EXECUTOR_PORT: await free() };
}

/** chronosd's file, as a start would make it. */
function makeAlarmFile(home: string, state: 'home' | 'moved' = 'home'): string {
  const path = join(home, 'chronos', 'chronos.db');
  const migrations = new URL('../../chronos/store/sqlite/migrations', import.meta.url);
  const { db, close } = openDatabase({ path, migrations, clock: systemClock, lock: 'exclusive' });
  const gone = { source: 'this-file', transfer: 'a-move', target: 'db.example:5432/alarms', since: now };
  if (state === 'moved') writeSourceState(db, { ...gone, state });
  close();
  return path;
}

describe('reveille doctor, before the first start', () => {
  test('finds nothing broken, changes nothing, and prints how to begin', async (t) => {
    const home = join(temporaryFolder(t), 'home');
    const { status, stdout, stderr } = await reveille(home, ['doctor'], { env: await freePorts() });
    assert.deepEqual([status, stderr], [3, '']);
    assert.match(stdout, /· REVEILLE_HOME {2}.* does not exist yet\n +→ reveille up creates it\n/);
    assert.match(
      stdout,
      /· chronosd +does not run; http:\/\/127\.0\.0\.1:\d+ is free\n +→ start it with: reveille up\n/,
    );
    assert.match(stdout, /· router +does not run/);
    assert.match(stdout, /· model +none; Neo answers offline/);
    assert.match(stdout, /✓ MCP tools/);
    assert.match(
      stdout,
      /\nAll \d+ checks passed, but nothing runs: alarms fire after\s+"reveille up"\s+is\s+started\.\n$/,
    );
    assert.ok(!existsSync(home));
  });

  test('every line fits an ordinary terminal', async (t) => {
    const home = join(temporaryFolder(t), 'home');
    const { stdout } = await reveille(home, ['doctor'], { env: await freePorts() });
    for (const line of stdout.split('\n')) assert.ok([...line].length <= 80 || line.includes(home), line);
  });
});

describe('reveille doctor, with a problem', () => {
  const cases: [
    what: string,
    prepare: (home: string) => void,
    env: Record<string, string>,
    name: string,
    said: RegExp,
  ][] = [
    [
      'a configuration file that cannot be read',
      (home) => writeFileSync(join(home, 'config.yaml'), 'CHRONOS_PORT: 9096\nnonsense\n'),
      {},
      'config.yaml',
      /config\.yaml:2/,
    ],
    [
      'secrets that others can read',
      (home) => writeFileSync(join(home, 'secrets.json'), '{}', { mode: 0o644 }),
      {},
      'secrets',
      /can be used by others \(mode 0644\); run: chmod 600/,
    ],
    [
      'a damaged identity',
      (home) => writeFileSync(join(home, 'identity.json'), '{', { mode: 0o600 }),
      {},
      'identity',
      /identity\.json is damaged/,
    ],
    [
      'a damaged record of a running stack',
      (home) => writeFileSync(join(home, 'run.json'), '{', { mode: 0o600 }),
      {},
      'reveille up',
      /run\.json is damaged/,
    ],
    [
      'a named key file that does not exist',
      () => {},
      { MATRIX_USER_ID: 'a', MATRIX_EXECUTOR_KEYFILE: '/none' },
      'identity',
      /no key at \/none/,
    ],
    [
      'a setting that no daemon accepts',
      () => {},
      { CHRONOS_TICK_MS: 'often' },
      'settings',
      /CHRONOS_TICK_MS must be a whole number/,
    ],
    ['half a model', () => {}, { NEO_MODEL: 'some-model' }, 'model', /NEO_MODEL_BASE_URL is not set/],
    [
      'a chronosd elsewhere that does not answer',
      () => {},
      { MATRIX_CHRONOS_URL: 'http://127.0.0.1:1' },
      'chronosd',
      /nothing answers at http:\/\/127\.0\.0\.1:1/,
    ],
    [
      'a port that is no number, in the file',
      (home) => writeFileSync(join(home, 'config.yaml'), 'CHRONOS_PORT: hello\n'),
      { CHRONOS_PORT: '' },
      'settings',
      /CHRONOS_PORT must be a whole number.*hello/,
    ],
    [
      'a damaged file of alarms',
      (home) => {
        const path = makeAlarmFile(home);
        const bytes = readFileSync(path);
        writeFileSync(path, bytes.fill(0x5a, 0, 4096));
      },
      {},
      'databases',
      /chronos\.db is damaged .* Restore it from a backup/,
    ],
    [
      'a file whose alarms have moved to PostgreSQL, without the setting',
      (home) => void makeAlarmFile(home, 'moved'),
      {},
      'databases',
      /moved to PostgreSQL \(db\.example:5432\/alarms\).*set CHRONOS_POSTGRES_URI/,
    ],
    [
      'a PostgreSQL that does not answer',
      () => {},
      { CHRONOS_POSTGRES_URI: 'postgres://nobody:canary@127.0.0.1:1/alarms', CHRONOS_ENROLLMENT: 'required' },
      'PostgreSQL',
      /no writable server: 127\.0\.0\.1:1\/alarms: .*ECONNREFUSED/,
    ],
    [
      'an unreachable model endpoint',
      () => {},
      { NEO_MODEL: 'some-model', NEO_MODEL_BASE_URL: 'http://127.0.0.1:1/v1', NEO_MODEL_API_KEY: 'canary' },
      'model',
      /some-model at http:\/\/127\.0\.0\.1:1\/v1: the endpoint cannot be reached/,
    ],
    ['an absent manifest of Neo', () => {}, { NEO_MANIFEST: '/none.json' }, 'Neo', /\/none\.json/],
    ['an absent skill', () => {}, { NEO_SKILL: '/none.mtx' }, 'Neo', /\/none\.mtx/],
    ['an absent policy', () => {}, { EXECUTOR_POLICY: '/none.yaml' }, 'executor files', /\/none\.yaml/],
    [
      'a data path that is no folder',
      (home) => writeFileSync(join(home, 'file'), ''),
      {},
      'CHRONOS_DATA_DIR',
      /is not a folder/,
    ],
  ];
  for (const [what, prepare, env, name, said] of cases) {
    test(`${what} is broken, with the rest of the report, and the status is 1`, async (t) => {
      const home = temporaryFolder(t);
      prepare(home);
      const elsewhere = join(temporaryFolder(t), 'file');
      writeFileSync(elsewhere, '');
      const more = name === 'CHRONOS_DATA_DIR' ? { CHRONOS_DATA_DIR: elsewhere } : {};
      const outcome = await reveille(home, ['doctor', '--json'], { env: { ...(await freePorts()), ...env, ...more } });
      assert.equal(outcome.status, 1, outcome.stderr);
      const report = reportOf(outcome);
      assert.equal(report.ok, false);
      const { status, detail } = find(report, name);
      assert.equal(status, 'broken');
      assert.match(detail, said);
      assert.doesNotMatch(outcome.stdout + outcome.stderr, /canary/);
      assert.equal(find(report, 'MCP tools').status, 'ok');
    });
  }

  test('a home that is open to others, or is not a folder, is reported', async (t) => {
    const folder = temporaryFolder(t);
    const open = join(folder, 'open');
    mkdirSync(open);
    chmodSync(open, 0o755);
    const env = await freePorts();
    const warned = await reveille(open, ['doctor', '--json'], { env });
    assert.equal(warned.status, 3, warned.stdout);
    assert.deepEqual(find(reportOf(warned), 'REVEILLE_HOME').status, 'warning');
    const file = join(folder, 'file');
    writeFileSync(file, '');
    const broken = await reveille(file, ['doctor', '--json'], { env });
    assert.equal(broken.status, 1);
    assert.match(find(reportOf(broken), 'REVEILLE_HOME').detail, /is not a folder/);
  });

  test('wrong settings lead to no daemon: a program that answers at the default port is not accepted', async (t) => {
    const home = temporaryFolder(t);
    writeFileSync(join(home, 'config.yaml'), 'CHRONOS_PORT: hello\n');
    const report = reportOf(
      await reveille(home, ['doctor', '--json'], { env: { ...(await freePorts()), CHRONOS_PORT: '' } }),
    );
    assert.deepEqual([find(report, 'chronosd').status, report.ok], ['note', false]);
    assert.match(find(report, 'chronosd').detail, /settings have to be right first/);
  });

  test('a home that cannot be made or written to is broken', { skip: process.platform !== 'linux' }, async () => {
    for (const home of ['/proc/reveille', '/proc']) {
      const outcome = await reveille(home, ['doctor', '--json'], { env: await freePorts() });
      assert.equal(outcome.status, 1);
      const { status, remedy } = find(reportOf(outcome), 'REVEILLE_HOME');
      assert.equal(status, 'broken');
      assert.match(remedy!, /writable for this user, or choose another folder with REVEILLE_HOME/);
    }
  });

  test('a disabled capability has one line: the missing program or setting, and what enables it', async (t) => {
    const env = { ...(await freePorts()), PATH: '/nowhere', NEO_SEARCH_KEY: 'key' };
    const said = find(reportOf(await reveille(temporaryFolder(t), ['doctor', '--json'], { env })), 'capabilities');
    assert.equal(said.status, 'note');
    const lines = said.detail.split('\n');
    assert.equal(
      lines.filter((line) => /^off: shell: there is no program bwrap .*; install bubblewrap/.test(line)).length,
      1,
    );
    assert.ok(
      lines.every((line) => /^off: \w+: .+; .+$/.test(line)),
      said.detail,
    );
    assert.doesNotMatch(said.detail, /web_search/);
  });

  test('an endpoint that refuses the key, or has another model, is reported', async (t) => {
    let status = 401;
    const list = JSON.stringify({ data: [{ id: 'one' }, { id: 'two' }] });
    const server = createServer((_request, response) => response.writeHead(status).end(list));
    const url = await listening(t, server);
    const model = { NEO_MODEL: 'three', NEO_MODEL_BASE_URL: `${url}/v1`, NEO_MODEL_API_KEY: 'canary' };
    const home = join(temporaryFolder(t), 'home');
    const look = async (more = {}) =>
      find(
        reportOf(await reveille(home, ['doctor', '--json'], { env: { ...(await freePorts()), ...model, ...more } })),
        'model',
      );
    const refused = await look();
    assert.deepEqual([refused.status, refused.remedy], ['broken', 'correct NEO_MODEL_API_KEY']);
    status = 200;
    const other = await look();
    assert.deepEqual([other.status, other.remedy], ['warning', 'set NEO_MODEL to one of its models: one, two']);
    assert.equal((await look({ NEO_MODEL: 'two' })).status, 'ok');
  });

  test('isolation: the known facts, as root and as a user, and no more', () => {
    const facts = { mode: 'auto', by: 'bubblewrap', why: undefined, noRunAs: undefined, isRoot: false } as const;
    assert.equal(isolationCheck(facts).status, 'ok');
    const asRoot = isolationCheck({ ...facts, isRoot: true });
    assert.equal(asRoot.status, 'warning');
    assert.match(asRoot.remedy!, /ordinary user.*--run-as/);
    assert.equal(isolationCheck({ ...facts, by: 'sandbox-exec' }).status, 'note', 'it has never been run');
    const open = isolationCheck({ ...facts, by: undefined, why: 'there is none', isRoot: true });
    assert.equal(open.status, 'warning');
    assert.match(open.detail, /run as root, without a sandbox: .* everything on this computer/);
  });

  test('isolated and other programs of this computer are reported', {
    skip: process.platform !== 'linux' && 'other systems have another sandbox than bubblewrap',
  }, async (t) => {
    const forbidden = temporaryFolder(t);
    const script = '#!/bin/sh\necho "bwrap: No permissions to create a new namespace" >&2\nexit 1\n';
    writeFileSync(join(forbidden, 'bwrap'), script, { mode: 0o755 });
    const home = join(temporaryFolder(t), 'home');
    const look = async (mode: string, path: string | undefined) => {
      const env = { ...(await freePorts()), PATH: path ?? '', REVEILLE_SEPARATION: mode };
      return find(reportOf(await reveille(home, ['doctor', '--json'], { env })), 'isolation');
    };
    for (const [mode, status, remedy] of [
      ['required', 'broken', /install bubblewrap and allow user namespaces/],
      ['auto', 'warning', /install bubblewrap and allow user namespaces/],
      ['off', 'note', /remove REVEILLE_SEPARATION=off/],
    ] as const) {
      const said = await look(mode, forbidden);
      assert.equal(said.status, status, mode);
      assert.match(
        said.detail,
        isRoot
          ? /^machines and MCP servers run as root, without a sandbox: they can read and change everything/
          : /^machines and MCP servers run as this user, without a sandbox, and can read its files, secrets included: /,
      );
      if (mode !== 'off') assert.match(said.detail, /No permissions to create a new namespace/);
      assert.match(said.remedy!, remedy);
    }
    if (!(await hasBubblewrap(t))) return;
    const { status, detail } = await look('auto', process.env.PATH);
    // As root none of this is marked as good: a program that leaves the sandbox controls the computer.
    assert.equal(status, isRoot ? 'warning' : 'ok');
    assert.match(
      detail,
      isRoot ? /^the daemons run as root: / : /^machines .* run in a sandbox of bubblewrap as this user: /,
    );
    assert.match(detail, /the system is read-only/i);
  });

  test('a port of another program is reported, whether it answers or not', async (t) => {
    const stranger = await listening(
      t,
      createServer((_request, response) => response.end('hello')),
    );
    const env = { ...(await freePorts()), CHRONOS_PORT: new URL(stranger).port };
    const report = reportOf(await reveille(join(temporaryFolder(t), 'home'), ['doctor', '--json'], { env }));
    const { status, detail, remedy } = find(report, 'chronosd');
    assert.equal(status, 'broken');
    assert.equal(detail, `something else answers at ${stranger}, not chronosd`);
    assert.match(remedy!, /CHRONOS_PORT/);
  });

  test('a chronosd with another clock, another version, or that is not ready, is reported', async (t) => {
    let version = VERSION;
    let ready = true;
    const daemon = createServer((request, response) => {
      response.setHeader('date', new Date(Date.now() + 3_600_000).toUTCString());
      const error = { code: 'unavailable', message: 'chronosd is not ready: the disk is full', retryable: true };
      const answers: Record<string, unknown> = {
        '/': { name: 'chronosd', version },
        '/v1/agent/auth/challenge': {
          did: `did:matrix:doctor:${'0'.repeat(64)}`,
          nonce: 'n'.repeat(32),
          message: 'm',
          expires_in: 60,
        },
      };
      const data = answers[request.url ?? ''] ?? { status: 'ok' };
      const refuses = request.url === '/readyz' && !ready;
      response.statusCode = refuses ? 503 : 200;
      response.end(JSON.stringify(refuses ? { ok: false, error } : { ok: true, data }));
    });
    const url = await listening(t, daemon);
    // A chronosd that the settings do not name would have to accept the token of this installation.
    const env = { ...(await freePorts()), MATRIX_CHRONOS_URL: url, MATRIX_CHRONOS_TOKEN: 'the-token-of-that-one' };
    const home = join(temporaryFolder(t), 'home');
    const look = async () => reportOf(await reveille(home, ['doctor', '--json'], { env }));
    const first = await look();
    assert.match(find(first, 'clock').detail, /chronosd's is (3600|3599) s ahead/);
    assert.deepEqual([find(first, 'clock').status, first.ok], ['warning', true]);
    version = '0.0.1';
    assert.match(find(await look(), 'chronosd').detail, /runs 0\.0\.1, this command is/);
    ready = false;
    const broken = find(await look(), 'chronosd');
    assert.deepEqual([broken.status, /the disk is full/.test(broken.detail)], ['broken', true]);
  });
});

describe('reveille doctor, with all daemons running', () => {
  const shared = sharedOwner();
  let house: Installation;
  let ports: Record<string, string>;
  before(async () => {
    house = await startInstallation(shared);
    ports = await freePorts();
  });
  after(() => shared.end());
  const report = async (env: Record<string, string> = {}) =>
    reportOf(await house.attempt(['doctor', '--json'], { env: { ...ports, ...env } }));

  // This test does not depend on bubblewrap.
  const healthy = async () =>
    (await house.attempt(['doctor'], { env: { ...ports, REVEILLE_SEPARATION: 'off' } })).stdout;

  test('says so, and reports whether the machine of this agent can be woken', async (t) => {
    const without = await report();
    assert.equal(without.ok, true);
    for (const name of ['clock', 'REVEILLE_HOME', 'secrets', 'identity', 'chronosd', 'chronosd token', 'router'])
      assert.equal(find(without, name).status, 'ok', name);
    const publicListener = find(without, 'public listener');
    assert.deepEqual(
      [publicListener.status, publicListener.detail],
      ['ok', `users connect at ${house.router.public.url}, without TLS, for this computer only, no console`],
    );
    assert.match(find(without, 'machine').detail, new RegExp(`no machine of ${house.label}`));
    assert.equal(find(without, 'machine').status, 'warning');

    const agent = await startAgent(t);
    await house.run('machine', 'put', '--provider', 'http', '--url', agent.url);
    assert.match(
      await healthy(),
      /✓ machine +http, active.*\n[^✗!]*\nAll is well: \d+ checks; chronosd, router run; not running here: executor\.\n$/,
    );
    await house.run('machine', 'suspend', house.label);
    assert.match(
      await healthy(),
      /! machine +http, suspended.*\n +→ restore it with[^✗]*\nIt works, with warnings: [^✗]*\.\n$/,
    );
  });

  test('an agent that cannot be woken is broken: its program is missing, or there is no listener', async () => {
    await house.run('machine', 'put', '--provider', 'claude', '--dir', house.home.path);
    const missing = await house.attempt(['doctor', '--json'], { env: { ...ports, PATH: '/nowhere' } });
    assert.equal(missing.status, 1);
    const { status, detail } = find(reportOf(missing), 'agent');
    assert.equal(status, 'broken');
    assert.match(detail, /the program "claude" is not on the PATH of the router; install it/);

    await house.run('machine', 'put', '--provider', 'http', '--url', 'http://127.0.0.1:1');
    const gone = find(await report(), 'agent');
    assert.deepEqual([gone.status, gone.detail], ['broken', 'cannot be reached at http://127.0.0.1:1']);
    assert.match(gone.remedy!, /start it, or give its address/);
  });

  test('daemons of another installation are not mistaken for those of this one', async (t) => {
    const home = temporaryFolder(t);
    const env = {
      ...(await freePorts()),
      CHRONOS_PORT: new URL(house.chronos.url).port,
      ROUTER_PORT: new URL(house.router.url).port,
    };
    const outcome = await reveille(home, ['doctor', '--json'], { env });
    assert.equal(outcome.status, 1);
    for (const name of ['chronosd', 'router']) {
      const { status, detail, remedy } = find(reportOf(outcome), name);
      assert.equal(status, 'broken');
      assert.match(detail, /of another installation answers at/);
      assert.match(remedy!, /choose another port with (CHRONOS|ROUTER)_PORT/);
    }
  });

  test('pins no key: the first one to prove itself still may', async () => {
    await report();
    assert.equal(await house.run('agent', 'list', '--json'), '');
  });

  test('tokens that the daemons do not accept are broken, and are not shown', async () => {
    const wrong = { CHRONOS_TOKEN: 'canary-not-the-token', ROUTER_ADMIN_TOKEN: 'canary-not-the-token' };
    const outcome = await house.attempt(['doctor', '--json'], { env: { ...ports, ...wrong } });
    assert.equal(outcome.status, 1);
    assert.equal(find(reportOf(outcome), 'chronosd token').detail, 'chronosd does not accept it');
    assert.equal(find(reportOf(outcome), 'machine').detail, 'the router does not accept ROUTER_ADMIN_TOKEN');
    assert.doesNotMatch(outcome.stdout + outcome.stderr, /canary/);
  });

  test('a stack that is recorded as running but does not answer is broken', async () => {
    await house.router.close();
    const { status, detail, remedy } = find(await report(), 'router');
    assert.equal(status, 'broken');
    assert.match(detail, /nothing answers at/);
    assert.match(remedy!, /"reveille up" says that it is there/);
  });
});
