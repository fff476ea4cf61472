/**
 * Rules for the commands of the pages in the test: values for placeholders, answers to questions, and the expected
 * status. A command without a rule runs unchanged.
 */
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { eventually } from '../../support/eventually.ts';
import { reservePort } from '../../support/ports.ts';
import { startPostgres } from '../../support/postgres/server.ts';
import type { World } from './world.ts';

export type Rule = {
  readonly shown: RegExp;
  /** The line that runs instead. */
  readonly run?: (line: string, world: World) => string | Promise<string>;
  /** The expected status of the commands of Reveille in that line; 0 by default. */
  readonly status?: number;
  /** Runs after the others: commands that change the wake target, and commands that need a stopped stack. */
  readonly after?: 'agents' | 'stop';
};

const and = (suffix: string) => (line: string) => `${line} ${suffix}`;
const once = <T>(make: (world: World) => Promise<T>) => {
  let made: Promise<T> | undefined;
  return (world: World) => (made ??= make(world));
};

const anAlarm = once((world) => world.newAlarm());
const nightly = once((world) =>
  world.newAlarm(
    'every day at 3:00',
    '--label',
    'nightly',
    '--check-url',
    'https://example.com/feed',
    '--check-changed',
  ),
);
const aDoneIntent = once((world) => world.doneIntent());
const aMachine = once((world) =>
  world.json('machine', 'put', 'alice', '--provider', 'http', '--url', 'http://127.0.0.1:8080'),
);
const postgres = once(async (world) => {
  const server = await startPostgres();
  world.owner.after(() => server.stop('immediate'));
  return server;
});
const database = once(async (world) => (await postgres(world)).uri());
const fleetDatabase = once(async (world) => {
  const server = await postgres(world);
  return server.uri(await server.createDatabase());
});
const fleetPorts = once(async () => {
  const names = ['CHRONOS_PORT', 'ROUTER_PORT', 'ROUTER_PUBLIC_PORT', 'EXECUTOR_PORT'];
  return (await Promise.all(names.map(async (name) => `${name}=${await reservePort()}`))).join(' ');
});
const secrets = {
  EXECUTOR_TOKEN: '5'.repeat(64),
  EXECUTOR_ADMIN_TOKEN: '6'.repeat(64),
  NEO_DAEMON_TOKEN: '7'.repeat(64),
};
const executorPort = once(() => reservePort());

/** The date some days ago: a backfill is of the past, and not too long. */
const dayBefore = (days: number) => new Date(Date.now() - days * 86_400_000).toISOString().slice(0, 10);
const HOLIDAYS = [
  ...['BEGIN:VCALENDAR', 'BEGIN:VEVENT', 'DTSTART;VALUE=DATE:20361225', 'END:VEVENT', 'END:VCALENDAR', ''],
].join('\r\n');

const OPENCLAW_JOB = JSON.stringify({
  ...{ id: 'report', name: 'Report', enabled: true, schedule: { kind: 'cron', expr: '0 9 * * 1-5', tz: 'UTC' } },
  ...{ sessionTarget: 'isolated', payload: { kind: 'agentTurn', message: 'Write the report.' } },
});

const ID = /019[\da-f]{3,}[\w-]*|\bstand-up\b/;
const withId = (line: string, id: string) => line.replace(ID, id);

/** The executor of a fleet in docs/operate/deploy.md, with its own port and folders. */
async function ofFleet(line: string, world: World): Promise<string> {
  const ada = join(world.person, 'ada');
  const token = () => /rvs_\S+/.exec(readFileSync(join(world.work, 'submitter'), 'utf8'))![0];
  const command = line.includes('submitter add') ? `${line} | tee ${world.work}/submitter` : line;
  return command
    .replaceAll('8081', String(await executorPort(world)))
    .replaceAll('/srv/reveille', join(world.person, 'srv'))
    .replace(/(\w+)=\$\(openssl rand -hex 32\)/g, (_, name: keyof typeof secrets) => `${name}=${secrets[name]}`)
    .replace('EXECUTOR_ADMIN_TOKEN=…', `EXECUTOR_ADMIN_TOKEN=${secrets.EXECUTOR_ADMIN_TOKEN}`)
    .replace(/rvs_…/, token)
    .replace(
      /^export (?=EXECUTOR)/,
      `export HOME=${ada} REVEILLE_HOME=${ada}/.reveille EXECUTOR_PORT=${await executorPort(world)} `,
    );
}

/** The first match applies. A test checks that each rule is needed. */
export const RULES: readonly Rule[] = [
  // Wakes start another agent afterwards.
  {
    shown: /reveille connect [\w-]+ --wake/,
    after: 'agents',
    run: (line) => `reveille machine put --provider neo && ${line} --yes`,
  },
  { shown: /reveille up --once/, run: (line, { person }) => `REVEILLE_HOME=${person}/once ${line}` },
  // A terminal would ask.
  { shown: /reveille connect [\w-]+(?! --undo)/, run: and('--yes') },
  { shown: /reveille profile init(?! --yes)/, run: and('--yes') },
  {
    shown: /reveille neo server add notes/,
    run: (line) => line.replace('add notes', 'add notes --yes-reads --natural draw,fill,environment,fail'),
  },
  { shown: /reveille neo server review$/, run: and('--yes-reads') },
  { shown: /reveille chat(?: --last)?$/, run: and('<<< "What is due?"') },
  {
    shown: /reveille intent approve/,
    run: async (line, world) => {
      const id = await world.newIntent();
      return `${withId(line, id)} --displayed-sha256 ${await world.digestOf(id)}`;
    },
  },
  // Conditions of alarms.
  {
    shown: /\bnightly\b/,
    run: async (line, world) => {
      await nightly(world);
      return line;
    },
  },
  { shown: /--on process:4711/, run: (line) => `sleep 300 & ${line.replace('4711', '$!')}; kill %1` },
  // Paths are in the folder of a machine.
  {
    shown: /--check-path inbox|inbox\//,
    after: 'agents',
    run: (line) => `mkdir -p inbox && reveille machine put --provider claude --dir . && ${line}`,
  },
  // Ids and keys.
  {
    shown: /reveille alarm edit stand-up --clear/,
    run: async (line, world) => withId(line, await world.newAlarm('every day at 9', '--until', '2099-01-01T00:00:00Z')),
  },
  {
    shown: /reveille alarm backfill/,
    run: async (line, world) => {
      const id = await world.newAlarm('every day at 9');
      return withId(line, id).replace('2026-11-20', dayBefore(7)).replace('2026-11-23', dayBefore(4));
    },
  },
  {
    shown: /reveille calendar add/,
    run: (line, { work }) => {
      writeFileSync(join(work, 'holidays.ics'), HOLIDAYS);
      return line;
    },
  },
  {
    shown: /reveille agent rotate --keys/,
    run: (line) => `\
echo '{"label": "rotated"}' > rotated.jsonl && reveille agent enroll --from rotated.jsonl --output rotated && \
mkdir -p agent-keys && cp rotated/rotated/keys/agent.key agent-keys/rotated.key && ${line.replace(/\S+agent-keys/, './agent-keys')}`,
  },
  { shown: /reveille agent reown alice --to/, status: 1 },
  {
    shown: /reveille agent reown alice --public-key/,
    run: (line) => line.replace('$(cat new.pub)', '6b3f'.repeat(16)),
  },
  {
    shown: /reveille alarm (?:show|edit) (?:019|stand-up)/,
    run: async (line, world) => withId(line, await anAlarm(world)),
  },
  {
    shown: /reveille alarm (?:cancel|pause|trigger) (?:019|stand-up)/,
    run: async (line, world) => withId(line, await world.newAlarm()),
  },
  {
    shown: /reveille alarm watch --id/,
    run: async (line, world) => withId(line, await world.newAlarm('--in', '2s')),
  },
  {
    shown: /reveille alarm resume (?:019|stand-up)/,
    run: async (line, world) => {
      const id = await world.newAlarm();
      await world.json('alarm', 'pause', id);
      return withId(line, id);
    },
  },
  {
    shown: /reveille alarm redrive (?:019|stand-up)/,
    run: async (line, world) => {
      const user = await world.user();
      await world.json('machine', 'suspend', user);
      const id = await world.newAlarm('--in', '1s', '--max-failures', '1');
      await eventually('it has failed', async () => (await world.json('alarm', 'show', id)).alarm.status === 'failed');
      await world.json('machine', 'restore', user);
      return withId(line, id);
    },
  },
  {
    shown: /reveille intent (?:receipt|watch|reconcile|show) 01/,
    run: async (line, world) => withId(line, await aDoneIntent(world)),
  },
  { shown: /reveille intent (?:cancel|deny) 01/, run: async (line, world) => withId(line, await world.newIntent()) },
  {
    shown: /reveille receipt verify receipt.json --key/,
    run: async (line, world) =>
      line.replace(/6b3f…c2|executor\.pub/, await world.executorKey(await aDoneIntent(world))),
  },
  { shown: /reveille memory forget/, run: async (line, world) => withId(line, await world.newMemory()) },
  {
    shown: /reveille user revoke alice/,
    run: async (line, world) => {
      const { id } = await world.json('user', 'list', 'alice');
      return line.replace(/--token \w+/, `--token ${id}`);
    },
  },
  {
    shown: /reveille neo server review notes/,
    run: (line) =>
      `reveille neo server add notes --yes-reads --natural draw,fill,environment,fail -- npx -y notes-mcp && ${line}`,
  },
  {
    shown: /reveille agent enroll --label alice/,
    run: (line, { person }) =>
      `REVEILLE_HOME=${person}/alice reveille agent whoami && cp ${person}/alice/keys/agent.key ~/alice.key && ${line}`,
  },
  // Jobs of other schedulers.
  {
    shown: /reveille import crontab/,
    run: (line) => `echo '15 6 * * 1-5 /bin/true' > jobs && ${line.replace('crontab', 'crontab jobs')}`,
  },
  {
    shown: /reveille import openclaw/,
    run: (line) =>
      `echo '{"version": 1, "jobs": [${OPENCLAW_JOB}]}' > jobs.json && ${line.replace(/\S+jobs.json/, 'jobs.json')}`,
  },
  {
    shown: /reveille calendar feed revoke/,
    run: async (line, world) => {
      const { id } = await world.json('calendar', 'feed', 'add');
      return line.replace(/[\da-f]{12}/, id);
    },
  },
  // Nothing has connected, and no server asks.
  { shown: /reveille client revoke 3f9a10c25d7e/, status: 1 },
  { shown: /reveille neo question answer/, status: 1 },
  // Addresses and folders that differ here.
  { shown: /reveille capability git --workspace/, run: (line, { work }) => line.replace('~/project', work) },
  { shown: /reveille ledger --data-dir/, run: (line, { person }) => line.replace('/tmp', person) },
  { shown: /reveille notify add ntfy/, run: (line, { ntfy }) => `${line} --server ${ntfy} --allow-private` },
  {
    shown: /reveille chat --router/,
    run: async (line, world) => {
      const { token } = await world.json('user', 'token', await world.user());
      return `${line.replace('REVEILLE_TOKEN=…', `REVEILLE_TOKEN=${token}`).replace(/https:\S+/, world.run.public_url!)} <<< "What is due?"`;
    },
  },
  { shown: /^git diff \|/, run: (line) => `git init -q . && git add notes.txt && echo more >> notes.txt && ${line}` },
  {
    shown: /reveille backup --check|reveille backup \/media/,
    run: (line, { work }) => line.replace('/media/disk', join(work, 'disk')),
  },
  { shown: /reveille approver enroll --request-file laptop/, run: (line) => line.replace('laptop', 'request') },
  {
    shown: /reveille submitter revoke [\da-f]{12}/,
    run: async (line, world) => {
      const { id } = await world.json('submitter', 'add', 'another-agent');
      return line.replace(/[\da-f]{12}/, id);
    },
  },
  {
    shown: /reveille intent submit --json-file intent/,
    run: (line, world) => line.replace('intent.json', world.planFile()),
  },
  { shown: /reveille config \w/, run: (line, { person }) => `REVEILLE_HOME=${person}/configured ${line}` },
  { shown: /reveille completion fish \| source/, run: (line) => line.replace('| source', '> reveille.fish') },
  { shown: /reveille reshard/, run: async (line, world) => `${line} --to ${await fleetDatabase(world)}` },
  {
    shown: /reveille neo server add wiki/,
    run: (line) => line.replace(/--url \S+(?: --yes-reads)?/, '--yes-reads').concat(' -- npx -y notes-mcp'),
  },
  {
    shown: /reveille submitter revoke my-agent/,
    run: (line) => `reveille submitter add ended-agent && ${line.replace('my-agent', 'ended-agent')}`,
  },
  // Prefixes of keys that no one has here.
  { shown: /reveille agent revoke .* --public-key 6b3f/, status: 1 },
  { shown: /reveille approver revoke 6b3f9a10 --user alice/, status: 1 },
  // Another computer's key.
  {
    shown: /reveille approver enroll$/,
    status: 1,
    run: (line, { work }) => `REVEILLE_APPROVER_DIR=${work}/another ${line} --json | head -1 > request.json`,
  },
  {
    shown: /reveille approver revoke/,
    run: async (line, world) => {
      const list = await world.lines('approver', 'list');
      return line.replace(/\w+$/, list.at(-1).approver.slice(0, 8));
    },
  },
  // A fleet's executor.
  { shown: /EXECUTOR_DATA_DIR|NEO_EXECUTOR_URL|submitter add --user|^export NEO_EXECUTOR/, run: ofFleet },
  // A fleet's first start: a home, ports and a database of its own.
  {
    shown: /^export REVEILLE_HOME=\/etc\/reveille/,
    run: async (_, world) => `export REVEILLE_HOME=${world.person}/fleet ${await fleetPorts(world)}`,
  },
  {
    shown: /reveille init --postgres postgres:\/\/chronos:password@/,
    run: async (line, world) => line.replace(/postgres:\S+/, await fleetDatabase(world)),
  },
  { shown: /reveille init --postgres/, run: (line, { person }) => `REVEILLE_HOME=${person}/another-fleet ${line}` },
  {
    shown: /reveille agent enroll --from agents.jsonl/,
    run: (line) =>
      `printf '{"label": "agent-%s"}\\n' $(seq 50) > agents.jsonl && ${line.replace('./agents', './agents-here')}`,
  },
  // From here on, alarms wake another agent.
  {
    shown: /reveille machine turns --fire/,
    after: 'agents',
    run: async (line, world) => {
      await world.json('machine', 'put', '--provider', 'claude', '--dir', '.');
      await world.newAlarm('--in', '1s');
      const turn = await eventually('it has run a turn', () => world.json('machine', 'turns'));
      return line.replace('<fire id>', turn.fire_id);
    },
  },
  {
    shown: /reveille machine put .*--machine-id …/,
    after: 'agents',
    run: (line) =>
      line
        .replace('--machine-id …', '--machine-id 148ed1234567')
        .replace('--token …', '--token a-token-of-this-machine'),
  },
  { shown: /reveille machine put/, after: 'agents' },
  {
    shown: /reveille machine (?:\w|-)+ alice/,
    after: 'agents',
    run: async (line, world) => {
      await aMachine(world);
      return line;
    },
  },
  // Commands after the stack was stopped.
  {
    shown: /reveille restore reveille.backup --home/,
    after: 'stop',
    run: (line, { work, person }) =>
      `export HOME=${person}/elsewhere; ${line.replace('reveille.backup', `${work}/disk/reveille.backup`)}`,
  },
  {
    shown: /reveille restore/,
    after: 'stop',
    run: (line, { work, person }) =>
      `REVEILLE_HOME=${person}/restored${line.length} ${line.replace(/(?:\/media\/disk\/)?reveille\.backup/, `${work}/disk/reveille.backup`)}`,
  },
  {
    shown: /reveille migrate/,
    after: 'stop',
    run: async (line, world) => line.replace(/postgres:\S+/, await database(world)),
  },
  { shown: /reveille (?:stop|approver reset)/, after: 'stop' },
  { shown: /reveille approver seal --json/, after: 'stop', run: (line) => `reveille approver unseal && ${line}` },
  { shown: /reveille approver unseal --json/, after: 'stop', run: (line) => `reveille approver seal && ${line}` },
  {
    shown: /reveille (?:chronosd|router|executor|neo) --(?:port|data-dir|policy|no-api)/,
    after: 'stop',
    run: (line, { person }) =>
      `export REVEILLE_HOME=${person}/fresh CHRONOS_DEV=1 ROUTER_DEV=1 EXECUTOR_DEV=1 NEO_DAEMON_TOKEN=a-secret-of-24-characters NEO_PORT=0; ${line.replace(/--port \d+/, '--port 0').replace('/var/lib', person)}`,
  },
  { shown: /reveille approver (?:seal|unseal)/, after: 'stop' },
  { shown: /reveille notifier/, after: 'stop' },
];

/** Commands that cannot run here: the reason, and the test that runs them. */
export const NOT_HERE: ReadonlyMap<RegExp, string> = new Map([
  [/^npm ci && npm start/, 'the stack of this file is started by "npm start"; "npm ci" would ask a registry'],
  [/^npm ci && npm test/, 'it would run itself'],
  [
    /reveille neo server log(?:in|out)\b/,
    'it needs a server with a sign-in; test/system/mcp-host/login.test.ts has one',
  ],
  [/reveille executor mcp/, 'an MCP server, with the token of a fleet; test/system/executor starts it'],
  [/^npm install --prefix/, 'it would ask a registry; the packages are there'],
  [/^npm ci && npm run package|^npm install --global/, 'test/support/package.ts makes and installs the package'],
  [/--check-command/, 'it needs a sandbox, which not every computer has; test/end-to-end/checks.test.ts runs one'],
  [/--on (?:mcp:|'\{"source": "mcp")/, 'it needs an MCP server with events'],
  [/^npm run bench/, 'it takes minutes; bench/ has tests of its parts'],
  [/\bdocker\b/, 'no container engine runs here; test/system/deploy runs what is inside'],
  [/^fly\b/, 'there is no account; test/support/stand-ins/fake-fly.ts stands for the cloud'],
  [/\bopencode serve/, 'a program of others; test/system/wake-targets has a stand-in'],
  [/^claude (?:mcp add|--)|reveille mcp channel/, 'a program of others; test/system/integrations starts the server'],
  [/reveille logs/, 'there is no service with a log; test/system/service has one'],
  [/reveille notify test desktop/, 'there is no session bus'],
  [/reveille (?:service|upgrade)\b/, 'test/system/service runs them under a real systemd'],
  [/reveille up$/, 'it is what "npm start" runs'],
  [/reveille reshard .*--citus/, 'Citus is not here; test/end-to-end/citus-alarm.test.ts runs it where it is'],
]);
