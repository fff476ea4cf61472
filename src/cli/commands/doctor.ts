/** `reveille doctor`: checks the whole installation and prints remedies. */
import { z } from 'zod';
import { wait } from '../../kit/clock/clock.ts';
import { printable } from '../../kit/text/hidden-characters.ts';
import { ownerOf } from '../../wire/did.ts';
import { parseSettings, type Settings, urlSetting } from '../../wire/settings.ts';
import { labelOf, localAddress } from '../access/chronos.ts';
import { orUndefined, serverTime } from '../access/unreachable.ts';
import { EXIT } from '../cli-process.ts';
import type { CliContext } from '../context.ts';
import { checkAgent, machineOnDisk } from '../doctor/agent.ts';
import { checkApproverKey, checkApprovers } from '../doctor/approvers.ts';
import { type Check, type CheckStatus, inTime } from '../doctor/check.ts';
import { checkClients } from '../doctor/clients.ts';
import {
  checkCalendars,
  checkClock,
  checkConfigFile,
  checkFolders,
  checkKey,
  checkNode,
  checkPostgres,
  checkRunRecord,
  checkSecrets,
  checkStores,
  checkTimeZones,
  runningHere,
} from '../doctor/computer.ts';
import {
  checkDaemon,
  checkExecutorToken,
  checkMachine,
  checkPublicListener,
  checkTransport,
  type DaemonAddress,
  foreignDaemonAt,
} from '../doctor/daemons.ts';
import { checkCapabilities, checkIsolation } from '../doctor/disabled.ts';
import { checkExecutorFiles, checkModels, checkNeoFiles, checkSettings, checkTools } from '../doctor/settings.ts';
import { pad, wrap } from '../screens/columns.ts';
import { readerOf } from '../screens/reader.ts';
import type { Reader } from '../screens/render.ts';
import { checkService } from '../service/health.ts';
import { checkSleep } from '../sleep/wake-text.ts';
import { PREFIXES } from '../up/listener.ts';

const MARKS: Readonly<Record<CheckStatus, string>> = { ok: '✓', note: '·', warning: '!', broken: '✗' };
const COLOURS = { ok: 'green', note: 'dim', warning: 'yellow', broken: 'red' } as const;

/** The output of the doctor, one check per line. */
export function renderChecks(checks: readonly Check[], running: Running, look: Reader): string[] {
  const nameWidth = Math.max(...checks.map(({ name }) => name.length));
  const indent = ' '.repeat(2 + nameWidth + 2);
  const room = Math.max(30, look.width - indent.length);
  const lines = checks.flatMap(({ name, status, detail, remedy }) => {
    const [first, ...rest] = detail.split('\n').flatMap((line) => wrap(printable(line), room));
    const mark = look.paint(COLOURS[status], MARKS[status]);
    const advice = remedy === undefined ? [] : wrap(`→ ${printable(remedy)}`, room);
    return [`${mark} ${pad(name, nameWidth)}  ${first}`, ...[...rest, ...advice].map((line) => `${indent}${line}`)];
  });
  return [...lines, '', ...wrap(verdictOf(checks, running), look.width)];
}

/** Daemons of this installation: the ones that answer, and the others. */
export type Running = { up: readonly string[]; down: readonly string[] };

/** The last line. It claims nothing that was not checked. */
function verdictOf(checks: readonly Check[], { up, down }: Running): string {
  const count = (status: CheckStatus) => checks.filter((check) => check.status === status).length;
  const runs = up.length === 0 ? 'nothing runs' : `${up.join(', ')} ${up.length === 1 ? 'runs' : 'run'}`;
  const rest = up.length === 0 || down.length === 0 ? runs : `${runs}; not running here: ${down.join(', ')}`;
  const broken = count('broken');
  if (broken > 0) return `${broken} of ${checks.length} checks failed; ${rest}.`;
  if (up.length === 0)
    return `All ${checks.length} checks passed, but nothing runs: alarms fire after "reveille up" is started.`;
  if (count('warning') > 0) return `It works, with warnings: ${checks.length} checks; ${rest}.`;
  return `All is well: ${checks.length} checks; ${rest}.`;
}

const DEFAULT_PORTS = { CHRONOS_PORT: '9096', ROUTER_PORT: '8088', EXECUTOR_PORT: '8081' } as const;

/** Wrong settings give no address: another installation may use the default one. */
function portOf(settings: Settings, name: keyof typeof DEFAULT_PORTS): number | undefined {
  const port = Number(settings[name] ?? DEFAULT_PORTS[name]);
  return Number.isInteger(port) && port >= 0 && port < 65536 ? port : undefined;
}

type Places = { [Name in DaemonAddress['name']]: DaemonAddress | undefined };

function places(context: CliContext): Places {
  const { settings } = context;
  const run = runningHere(context);
  const addresses = z.object({ MATRIX_CHRONOS_URL: urlSetting.optional(), NEO_EXECUTOR_URL: urlSetting.optional() });
  const { MATRIX_CHRONOS_URL, NEO_EXECUTOR_URL }: z.output<typeof addresses> =
    orUndefined(() => parseSettings(addresses, settings)) ?? {};
  const byRun = run && '"reveille up" says that it is there';
  const place = (
    name: DaemonAddress['name'],
    named: string | undefined,
    running: string | undefined,
  ): DaemonAddress | undefined => {
    const prefix = PREFIXES[name];
    const portVariable = `${prefix}_PORT` as const;
    const port = portOf(settings, portVariable as keyof typeof DEFAULT_PORTS);
    const local =
      port === undefined ? undefined : localAddress(settings[`${prefix}_HOST`], port, settings[`${prefix}_TLS_CERT`]);
    const url = named ?? running ?? local;
    const variable = name === 'chronosd' ? 'MATRIX_CHRONOS_URL' : 'NEO_EXECUTOR_URL';
    const because = named === undefined ? running && byRun : `${variable} names it`;
    return url === undefined ? undefined : { name, url, because, portVariable };
  };
  return {
    chronosd: place('chronosd', MATRIX_CHRONOS_URL, run?.chronos_url),
    router: place('router', undefined, run?.router_url),
    // A run record of an older version has no address.
    executor: place('executor', NEO_EXECUTOR_URL, run?.executor_url),
  };
}

/** The checks of a daemon and of its API. */
type Found = { checks: Check[]; up: boolean };

const notAsked = (name: string): Check => ({
  name,
  status: 'note',
  detail: 'not asked: its settings have to be right first',
});

/** With port 0, only a running `up` knows the port. */
function isUnknown({ url }: DaemonAddress): boolean {
  return new URL(url).port === '0';
}

async function askDaemon(
  context: CliContext,
  place: DaemonAddress | undefined,
  name: DaemonAddress['name'],
  more: (place: DaemonAddress) => Promise<{ checks: (Check | undefined)[]; access: Check | undefined }>,
): Promise<Found> {
  if (place === undefined) return { checks: [notAsked(name)], up: false };
  if (isUnknown(place)) return { checks: [{ name, status: 'note', detail: 'does not run', remedy: START }], up: false };
  const { check, up } = await checkDaemon(context, place);
  if (!up) return { checks: [check], up: false };
  const { checks, access } = await more(place);
  const stranger = foreignDaemonAt(place, access);
  if (stranger) return { checks: [stranger], up: false };
  return { checks: [check, ...checks].filter((one) => one !== undefined), up: true };
}

const START = 'start it with: reveille up';

async function checkDaemons(context: CliContext): Promise<{ checks: Check[]; running: Running }> {
  const { chronosd, router, executor } = places(context);
  const found = {
    chronosd: askDaemon(context, chronosd, 'chronosd', async (place) => {
      const [token, time] = await Promise.all([checkTransport(context), serverTime(place.url, context.clock)]);
      return { checks: [token, ...(time ? [checkClock(context.clock.now(), time)] : [])], access: token };
    }),
    router: askDaemon(context, router, 'router', async (place) => {
      const [{ check, access, machine }, publicListener] = await Promise.all([
        checkMachine(context, place.url),
        checkPublicListener(context),
      ]);
      return { checks: [publicListener, check, machine && (await checkAgent(context, machine))], access };
    }),
    executor: askDaemon(context, executor, 'executor', async (place) => {
      const [token, approvers] = await Promise.all([checkExecutorToken(context, place.url), checkApprovers(context)]);
      return { checks: [token, ...approvers], access: token };
    }),
  };
  const names = ['chronosd', 'router', 'executor'] as const;
  const all = await Promise.all(
    names.map((name) => inTime(name, context.clock, async () => (await found[name]).checks)),
  );
  const ups = await Promise.all(names.map((name) => found[name].then(({ up }) => up)));
  const running = { up: names.filter((_, at) => ups[at]), down: names.filter((_, at) => !ups[at]) };
  const checks = all.flat();
  if (!running.up.includes('router'))
    checks.push(...(await inTime('agent', context.clock, () => agentAtRest(context))));
  if (!checks.some(({ name }) => name === 'clock')) checks.unshift(checkClock(context.clock.now(), undefined));
  return { checks, running };
}

/** The agent on record, while no router runs. */
async function agentAtRest(context: CliContext): Promise<Check | undefined> {
  const label = orUndefined(() => labelOf(context));
  const machine = label === undefined ? undefined : machineOnDisk(context, ownerOf(label));
  return machine && machine.state !== 'deleted' ? checkAgent(context, machine) : undefined;
}

/** Shows the pending checks after a while. */
function tellProgress({ out, clock }: CliContext, waiting: ReadonlySet<string>, signal: AbortSignal): void {
  const tell = async () => {
    await wait(clock, PROGRESS_AFTER_MS, signal);
    while (!signal.aborted) {
      out.progress(`Looking at ${[...waiting].join(', ')} …`);
      await wait(clock, 200, signal);
    }
  };
  void tell();
}

const PROGRESS_AFTER_MS = 2000;

/** All checks, and the running daemons. */
export async function examine(context: CliContext): Promise<{ checks: readonly Check[]; running: Running }> {
  const { clock } = context;
  const waiting = new Set<string>();
  const ended = new AbortController();
  tellProgress(context, waiting, ended.signal);
  const one = async (name: string, work: () => ReturnType<Parameters<typeof inTime>[2]>) => {
    waiting.add(name);
    const checks = await inTime(name, clock, work);
    waiting.delete(name);
    return checks;
  };
  const running = { up: [] as readonly string[], down: [] as readonly string[] };
  const groups = await Promise.all([
    one('Node', () => checkNode(process.versions.node)),
    one('time zones', () => checkTimeZones(context.clock.now(), process.versions.tz)),
    one('calendars', () => checkCalendars(context)),
    one('folders', () => checkFolders(context)),
    one('config.yaml', () => checkConfigFile(context)),
    one('settings', () => checkSettings(context)),
    one('secrets', () => checkSecrets(context)),
    one('identity', () => checkKey(context)),
    one("approver's key", () => checkApproverKey(context)),
    one('reveille up', () => checkRunRecord(context)),
    one('databases', () => checkStores(context)),
    one('PostgreSQL', () => checkPostgres(context)),
    one('daemons', async () => {
      const { checks, running: seen } = await checkDaemons(context);
      Object.assign(running, seen);
      return checks;
    }),
    one('isolation', () => checkIsolation(context)),
    one('service', () => checkService(context)),
    one('sleep', () => checkSleep(context)),
    one('model', () => checkModels(context)),
    one('Neo', () => checkNeoFiles(context)),
    one('MCP tools', () => checkTools()),
    one('executor files', () => checkExecutorFiles(context)),
    one('capabilities', () => checkCapabilities(context)),
    one('clients', () => checkClients(context)),
  ]);
  ended.abort();
  return { checks: groups.flat(), running };
}

export async function doctor(context: CliContext): Promise<void> {
  const { out } = context;
  const { checks, running } = await examine(context);
  const ok = checks.every(({ status }) => status !== 'broken');
  const report = { checks, ok, running: running.up, not_running: running.down };
  out.result(report, renderChecks(checks, running, readerOf(context)));
  // docs/internals/decisions/0011-command-line-and-installation.md
  if (!ok) context.process.exitCode = EXIT.failed;
  else if (running.up.length === 0) context.process.exitCode = EXIT.notRunning;
}
