/**
 * Floods a chronosd with one transport token. Reports the cost, and the delays of a well-behaved client during the
 * flood.
 *
 * node test/fault/floods/main.ts [--root <checkout>] [--seconds <of each flood>] [--lanes <at once>]
 *
 * `--root` runs the chronosd of another checkout. One without these limits gets the same settings and ignores them.
 */

import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, readFileSync, rmSync, statSync } from 'node:fs';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { json } from 'node:stream/consumers';
import { parseArgs } from 'node:util';
import { createChronosClient } from '../../../src/chronos/client.ts';
import { type AgentIdentity, agentIdentity } from '../../../src/kit/identity/agent.ts';
import { generateKey } from '../../../src/kit/identity/keys.ts';
import { firstLine } from '../../support/cluster/processes.ts';

const SECRETS = {
  CHRONOS_TOKEN: 'transport-token-of-the-flood',
  CHRONOS_AGENT_AUTH_SECRET: 'principal-secret-of-the-flood',
  CHRONOS_ADMIN_TOKEN: 'admin-token-of-the-flood',
  CHRONOS_WAKE_TOKEN: 'wake-token-of-the-flood',
};
/**
 * Limits of a small installation, so that a flood of seconds reaches the limits that one of hours reaches by default.
 */
const BOUNDS = {
  CHRONOS_CHALLENGES_PER_MINUTE: '300',
  CHRONOS_CHALLENGES_PER_MINUTE_IN_ALL: '3000',
  CHRONOS_CREATES_PER_MINUTE: '300',
  CHRONOS_CREATES_PER_MINUTE_IN_ALL: '3000',
  CHRONOS_TRIGGERS_PER_MINUTE: '60',
  CHRONOS_TRIGGERS_PER_MINUTE_IN_ALL: '1000',
  CHRONOS_NEW_OWNERS_PER_HOUR: '100',
  CHRONOS_MAX_STORED_ALARMS: '1000',
  CHRONOS_MAX_STORED_MIB: '16',
  CHRONOS_MAX_STORED_MIB_IN_ALL: '128',
};
const TEXT = 'x'.repeat(64 * 1024);
const TABLES = ['alarms', 'occurrences', 'fire_attempts', 'auth_nonces', 'agent_keys', 'owners'];

const { values } = parseArgs({
  options: {
    root: { type: 'string', default: join(import.meta.dirname, '..', '..', '..') },
    seconds: { type: 'string', default: '15' },
    lanes: { type: 'string', default: '32' },
  },
});
const seconds = Number(values.seconds);
const lanes = Number(values.lanes);
const pause = (ms: number) => new Promise((done) => setTimeout(done, ms));

/** The target of the well-behaved client: records the lateness of each of its alarms. */
const lateness: number[] = [];
const router = createServer(async (request, response) => {
  const { message, scheduled_for } = (await json(request)) as { message: string; scheduled_for: string };
  if (message === 'behaved') lateness.push(Date.now() - Date.parse(scheduled_for));
  response.writeHead(202, { 'content-type': 'application/json' }).end('{"ok":true,"data":{}}');
}).listen(0, '127.0.0.1');
await once(router, 'listening');

const home = mkdtempSync(join(tmpdir(), 'reveille-floods-'));
const wakeUrl = `http://127.0.0.1:${(router.address() as AddressInfo).port}/internal/wake`;

async function start(): Promise<{ child: ChildProcess; url: string }> {
  const child = spawn(process.execPath, [join(resolve(values.root), 'bin', 'reveille.mjs'), 'chronosd', '--json'], {
    env: {
      ...{ PATH: process.env.PATH, REVEILLE_HOME: home, CHRONOS_PORT: '0', CHRONOS_ROUTER_WAKE_URL: wakeUrl },
      ...{ REVEILLE_LOG: 'error', ...SECRETS, ...BOUNDS },
    },
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  const line = await firstLine(child);
  return { child, url: (JSON.parse(line) as { url: string }).url };
}
const { child, url } = await start();

type Answer = { status: number; data: Record<string, string> };
/** The answers to the flood's requests. */
const answers = new Map<number, number>();

async function call(method: string, path: string, body?: object, principal?: string): Promise<Answer> {
  const headers: Record<string, string> = { authorization: `Bearer ${SECRETS.CHRONOS_TOKEN}` };
  if (principal !== undefined) headers['x-chronos-agent'] = principal;
  if (body) headers['content-type'] = 'application/json';
  const init = { method, headers, ...(body && { body: JSON.stringify(body) }), signal: AbortSignal.timeout(30_000) };
  const response = await fetch(`${url}${path}`, init).catch(() => undefined);
  const status = response?.status ?? 0;
  answers.set(status, (answers.get(status) ?? 0) + 1);
  const envelope = (await response?.json().catch(() => undefined)) as { data?: Record<string, string> } | undefined;
  return { status, data: envelope?.data ?? {} };
}

let invented = 0;
const invent = () => agentIdentity(`invented-${invented++}`, generateKey());

async function prove({ did, publicKeyHex, sign }: AgentIdentity): Promise<string | undefined> {
  const { data } = await call('POST', '/v1/agent/auth/challenge', { did });
  if (data.nonce === undefined) return undefined;
  const answer = { did, nonce: data.nonce, public_key: publicKeyHex, signature: sign(data.message!) };
  return (await call('POST', '/v1/agent/auth/verify', answer)).data.token;
}

const alarm = { kind: 'once', delay_seconds: 3_000_000 };
const long = { ...alarm, wake_message: TEXT, payload: TEXT.slice(2) };
const short = { ...alarm, wake_message: 'flood' };

type FloodClient = { token: string; alarmId: string };
const FLOODS: Record<string, (client: FloodClient) => Promise<unknown>> = {
  'invented owners': () => prove(invent()),
  'challenges alone': () => call('POST', '/v1/agent/auth/challenge', { did: invent().did }),
  '64 KiB texts and payloads': ({ token }) => call('POST', '/v1/alarms', long, token),
  triggers: ({ token, alarmId }) => call('POST', `/v1/alarms/${alarmId}/trigger`, undefined, token),
  'create and cancel': async ({ token }) => {
    const { data } = await call('POST', '/v1/alarms', short, token);
    if (data.id !== undefined) await call('DELETE', `/v1/alarms/${data.id}`, undefined, token);
  },
};

/**
 * A client that an operator enrolled. It sets an alarm for one second later, repeatedly, and authenticates each time.
 */
const behaved = agentIdentity('behaved', generateKey());
await createChronosClient({
  url,
  token: SECRETS.CHRONOS_TOKEN,
  adminToken: SECRETS.CHRONOS_ADMIN_TOKEN,
}).enrollAgent({ label: behaved.label, public_key: behaved.publicKeyHex });
const client = createChronosClient({ url, token: SECRETS.CHRONOS_TOKEN, identity: behaved, timeoutMs: 30_000 });
let asked = 0;
let failed = 0;
let took: number[] = [];
let isDone = false;
const behaving = (async () => {
  while (!isDone) {
    const began = performance.now();
    asked++;
    try {
      await client.createAlarm({ kind: 'once', wake_message: 'behaved', delay_seconds: 1 });
      took.push(performance.now() - began);
    } catch {
      failed++;
    }
    await pause(200);
  }
})();

const p99 = (numbers: readonly number[]) =>
  numbers.length === 0 ? '-' : Math.round(numbers.toSorted((a, b) => a - b)[Math.ceil(numbers.length * 0.99) - 1]!);
const memoryMiB = (field: string) =>
  Math.round(
    Number(new RegExp(`${field}:\\s+(\\d+)`).exec(readFileSync(`/proc/${child.pid}/status`, 'utf8'))?.[1]) / 1024,
  );
const diskMiB = () =>
  ['', '-wal'].reduce((sum, suffix) => {
    const path = join(home, 'chronos', `chronos.db${suffix}`);
    return sum + (statSync(path, { throwIfNoEntry: false })?.size ?? 0);
  }, 0) /
  1024 /
  1024;

// Owners of the alarm floods: the maximum number that is admitted.
const tokens: FloodClient[] = [];
for (let n = 0; n < lanes; n++) {
  const token = await prove(invent());
  if (token === undefined) continue;
  const { data } = await call('POST', '/v1/alarms', short, token);
  if (data.id !== undefined) tokens.push({ token, alarmId: data.id });
}
await pause(2000);

const row = (...cells: (string | number)[]) => process.stdout.write(`| ${cells.join(' | ')} |\n`);
row(
  'Flood',
  'admitted',
  'answered 429',
  'other',
  'on disk, MiB',
  'memory, MiB',
  'behaved',
  'refused',
  'p99 create, ms',
  'p99 late, ms',
);
row('---', ...Array(9).fill('---:'));
for (const [name, flood] of Object.entries(FLOODS)) {
  answers.clear();
  [asked, failed, took] = [0, 0, []];
  lateness.length = 0;
  const until = performance.now() + seconds * 1000;
  const run = async (n: number) => {
    while (performance.now() < until) await flood(tokens[n % tokens.length]!);
  };
  await Promise.all(Array.from({ length: lanes }, (_, n) => run(n)));
  await pause(1500);
  const all = [...answers.values()].reduce((sum, count) => sum + count, 0);
  const [fine, refused] = [answers.get(200) ?? 0, answers.get(429) ?? 0];
  const seen = [asked, failed, p99(took), p99(lateness)];
  row(name, fine, refused, all - fine - refused, Math.round(diskMiB()), memoryMiB('VmRSS'), ...seen);
}
isDone = true;
await behaving;
const peak = memoryMiB('VmHWM');
child.kill('SIGTERM');
await once(child, 'exit');
const db = new DatabaseSync(join(home, 'chronos', 'chronos.db'), { readOnly: true });
const rows = TABLES.map((table) => `${table} ${db.prepare(`SELECT count(*) AS n FROM ${table}`).get()!.n}`);
db.close();
process.stdout.write(`\nRows: ${rows.join(', ')}. Peak memory ${peak} MiB.\n`);
router.closeAllConnections();
router.close();
rmSync(home, { recursive: true });
