/** `reveille service …` and `reveille upgrade`: `reveille up` in the background, and upgrades of it. */
import { readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { wait } from '../../kit/clock/clock.ts';
import { fromNow, localTime } from '../../kit/clock/local-time.ts';
import { likelyOwner } from '../../kit/sqlite/file-owner.ts';
import { ReveilleError } from '../../wire/errors.ts';
import { formatInstant } from '../../wire/rfc3339.ts';
import { VERSION } from '../../wire/version.ts';
import { alarmClient } from '../access/chronos.ts';
import { ignored, orUndefined } from '../access/unreachable.ts';
import { EXIT } from '../cli-process.ts';
import type { CliContext } from '../context.ts';
import { wholeNumberFlag } from '../flags/flags.ts';
import { UsageError } from '../flags/usage-error.ts';
import { type RunRecord, readRun } from '../home/home.ts';
import { isKnownName } from '../home/settings-names.ts';
import { readerOf } from '../screens/reader.ts';
import { facts, preview, type Reader } from '../screens/render.ts';
import { ask, handOver } from '../service/ask.ts';
import { marked } from '../service/experimental.ts';
import { currentVersion, serviceLocation, versionOf } from '../service/folders.ts';
import { whenUp } from '../service/health.ts';
import { findService, installService, removeService, type Service, specOf } from '../service/installation.ts';
import { lastingNode } from '../service/lasting-copy.ts';
import { settleBeforeStart, settleCutOff, takeUpgrade, upgradeService } from '../service/upgrade.ts';
import { readNote } from '../service/upgrade-note.ts';
import { type WakeRecord, wakeFiles } from '../sleep/wake-alarm.ts';
import { wakeAlarm } from '../sleep/wake-mechanism.ts';
import { takeWakeBack, type WakeState, wakeState, wakeWords } from '../sleep/wake-text.ts';

const LOG_LINES = 100;

const notInstalled = ({ home }: CliContext) =>
  new ReveilleError(
    'not_found',
    `no service is installed for ${home.path}; install one with: reveille service install`,
  );

async function mustExist(context: CliContext): Promise<Service> {
  const service = await findService(context);
  if ((await service.manager.state(service.place.name)).state === 'missing') throw notInstalled(context);
  return service;
}

/** Settings of this shell that the service does not get. */
function unseenSettings({ environment, settings }: CliContext): string[] {
  const passedOn = new Set(['REVEILLE_HOME', 'REVEILLE_TLS_CA']);
  return Object.keys(environment).filter(
    (name) => environment[name] && isKnownName(name) && !passedOn.has(name) && settings[name] === environment[name],
  );
}

function remarkOnSettings(context: CliContext): void {
  const inFile = (() => {
    try {
      return readFileSync(context.home.configFile, 'utf8');
    } catch {
      return '';
    }
  })();
  const unseen = unseenSettings(context).filter((name) => !new RegExp(`^${name}\\s*:`, 'm').test(inFile));
  if (unseen.length > 0)
    context.out.remark(
      `${unseen.join(', ')} ${unseen.length === 1 ? 'is' : 'are'} set in this shell, and the service does not see it: add ${unseen.length === 1 ? 'it' : 'them'} to ${context.home.configFile}, then: reveille service restart`,
    );
}

export async function serviceInstall(context: CliContext, flags: { print?: boolean; boot?: boolean }): Promise<void> {
  const { out, environment } = context;
  const service = await findService(context, flags.print);
  const { manager, place } = service;
  if (flags.print) {
    const text = manager.text(specOf(context, place, lastingNode()));
    out.result({ file: manager.file, text }, text.trimEnd());
    return;
  }
  const { run, folder, isCheckout } = await installService(context, service);
  if (flags.boot && manager.bootRemedy?.startsWith('loginctl')) {
    const [program, ...words] = manager.bootRemedy.split(' ');
    const { status, stderr } = await ask(program!, words, { env: environment });
    if (status !== 0)
      out.remark(`It does not start with the computer: ${stderr.trim()}; as root: ${manager.bootRemedy}`);
  }
  const { atBoot, enabled } = await manager.state(place.name);
  const data = { service: place.name, manager: manager.title, folder, checkout: isCheckout, pid: run.pid, enabled };
  out.result({ ...data, at_boot: atBoot ?? null, version: VERSION, chronos_url: run.chronos_url }, [
    `Reveille is now a service of ${marked(manager.title)}: ${place.name}, process ${run.pid}. It runs without this terminal.`,
    `  program  ${folder}`,
    `  home     ${context.home.path}`,
  ]);
  if (isCheckout) out.remark('It runs from this checkout: a restart applies changes, and moving the folder breaks it');
  if (atBoot !== true && manager.bootRemedy)
    out.remark(
      `It starts when you log in, and may end when you log out. To start it with the computer: ${manager.bootRemedy}`,
    );
  remarkOnSettings(context);
}

/** Alarms of one page. A page of large alarms has fewer. */
const PAGE = 100;

/** The next fire, if chronosd answers and an alarm has one. */
export async function nextFire(context: CliContext): Promise<NextFire | undefined> {
  const client = orUndefined(() => alarmClient(context));
  let cursor: string | undefined;
  do {
    const page = await client?.listAlarms({ sort: 'next', limit: PAGE, cursor }).catch(ignored);
    // Alarms that wait for events are due for looks at their sources, and may have no next fire.
    const next = page?.alarms.find(({ next_fire_at }) => next_fire_at != null);
    if (next?.next_fire_at != null) return { at: next.next_fire_at, text: preview(next) };
    cursor = page?.next_cursor;
  } while (cursor !== undefined);
  return undefined;
}

/** Why there is no next fire. */
export async function noFireText(context: CliContext): Promise<string> {
  const client = orUndefined(() => alarmClient(context));
  const active = await client?.listAlarms({ status: 'active', limit: PAGE }).catch(ignored);
  if (active === undefined) return 'unknown: chronosd does not answer';
  if (active.count === 0) return 'no alarm is active';
  const many = active.next_cursor === undefined ? `${active.count}` : `more than ${active.count}`;
  return `none has a time; ${many} ${many === '1' ? 'waits' : 'wait'} for events`;
}
type NextFire = { readonly at: string; readonly text: string };

export const nextFireText = ({ at, text }: NextFire, look: Reader) => `${sinceText(at, look)}  ${text}`;

/** An instant, and its distance from now. */
const sinceText = (instant: string, look: Reader) =>
  `${localTime(Date.parse(instant), look)} (${fromNow(Date.parse(instant), look.now)})`;

function stateWords(run: RunRecord | undefined, state: string): string {
  const words = {
    missing: 'not installed',
    stopped: 'stopped',
    starting: 'starting',
    failing: 'failing: it ends and is restarted',
    running: run === undefined ? 'running, but not ready yet' : `running as process ${run.pid}`,
  };
  return words[state as keyof typeof words];
}

const CUT_OFF = 'which was interrupted: finish it with "reveille upgrade"';

/** The note of an upgrade that no process works on. */
function cutOffUpgrade(place: Service['place']) {
  const note = readNote(place);
  return note && likelyOwner(join(place.own, 'upgrade')) === undefined ? note : undefined;
}

export async function serviceStatus(context: CliContext): Promise<void> {
  const { out, home } = context;
  const { place, manager } = await findService(context);
  const { state, enabled, pid, atBoot } = await manager.state(place.name);
  const run = readRun(home);
  const folder = currentVersion(place);
  const note = cutOffUpgrade(place);
  const next = state === 'running' ? await nextFire(context) : undefined;
  const last = state === 'missing' ? undefined : (await manager.lastLines(place.name, 1)).at(-1);
  const wake = wakeState(context, place);
  const isWakeSaid = state !== 'missing' && wake.isOn;
  const look = readerOf(context);
  const starts = !enabled ? 'only by hand' : atBoot ? 'with the computer' : 'when you log in';
  const lines = facts(
    [
      ['service', `${place.name} (${marked(manager.title)}), ${stateWords(run, state)}`],
      ['starts', state === 'missing' ? undefined : starts],
      ['since', run && sinceText(run.started_at, look)],
      ['version', folder === undefined ? undefined : versionOf(folder)],
      ['upgrade', note && `to ${versionOf(note.to)}, ${CUT_OFF}`],
      ['next fire', next && nextFireText(next, look)],
      ['computer', isWakeSaid ? wakeWords(context, wake) : undefined],
      ['last line', last],
      ['home', home.path],
    ],
    look,
  );
  const data = {
    service: place.name,
    manager: manager.title,
    state,
    enabled,
    at_boot: atBoot ?? null,
    pid: pid ?? null,
  };
  const more = {
    since: run?.started_at ?? null,
    version: folder === undefined ? null : versionOf(folder),
    upgrade_cut_off: note === undefined ? null : versionOf(note.to),
    next_fire_at: next?.at ?? null,
    // The name of 0.1, for one minor version.
    next_ring: next?.at ?? null,
    last_line: last ?? null,
    wakes_computer: wake.isOn,
    woken_at: wake.armedFor === undefined ? null : formatInstant(wake.armedFor),
    home: home.path,
    now: formatInstant(context.clock.now()),
  };
  out.result({ ...data, ...more }, lines);
  if (state === 'missing') out.remark('Install the service with: reveille service install');
  if (state !== 'running') context.process.exitCode = EXIT.notRunning;
}

export async function serviceLogs(context: CliContext, flags: { follow?: boolean; lines?: string }): Promise<void> {
  const { place, manager } = await mustExist(context);
  const count = wholeNumberFlag('--lines', flags.lines, 1, 100_000) ?? LOG_LINES;
  if (flags.follow) {
    const [program, ...words] = manager.logCommand(place.name, count, true);
    context.process.exitCode = await handOver(program, words, context.environment);
    return;
  }
  const lines = await manager.lastLines(place.name, count);
  for (const line of lines) context.out.result({ line }, line);
}

/** How long the service may take to apply the setting: it polls every two seconds. */
const HEED_MS = 10_000;
const DAY_MS = 24 * 3_600_000;

/** Whether the keeper has applied the setting. */
const heeds = (record: WakeRecord | undefined, wanted: 'on' | 'off') =>
  wanted === 'off' ? record === undefined : record !== undefined && !record.trying;

async function until(context: CliContext, isSo: () => boolean): Promise<void> {
  const end = context.clock.monotonic() + HEED_MS;
  while (!isSo() && context.clock.monotonic() < end) await wait(context.clock, 100);
}

/** Arms a wake-up one day ahead and removes it. @throws ReveilleError with the remedy when that fails */
async function tryToWake(
  { environment, clock }: CliContext,
  name: string,
  { isOn, problem }: WakeState,
): Promise<void> {
  const refuse = (why: string, remedy?: string) => {
    const message = `this computer cannot be woken for alarms: ${why}${remedy === undefined ? '' : `; ${remedy}`}`;
    return new ReveilleError('unavailable', message, { retryable: false });
  };
  if (isOn) return;
  if (problem !== undefined) throw refuse(problem);
  const alarm = await wakeAlarm(`${name}-try`, environment, () => clock.now());
  const tried = await alarm.arm(clock.now() + DAY_MS, undefined, () => {});
  if ('means' in tried) await alarm.disarm(tried);
  else if (tried.behind === undefined) throw refuse(tried.problem, tried.remedy);
}

/** `service wake [on|off]`. */
export async function serviceWake(context: CliContext, wanted: string | undefined): Promise<void> {
  const { out } = context;
  if (wanted !== undefined && wanted !== 'on' && wanted !== 'off')
    throw new UsageError(`service wake takes on or off (got ${JSON.stringify(wanted)})`);
  const { place, manager } = await mustExist(context);
  const files = wakeFiles(place);
  const before = wakeState(context, place);
  if (wanted === 'on') {
    await tryToWake(context, place.name, before);
    writeFileSync(files.wanted, '', { mode: 0o600 });
  } else if (wanted === 'off') rmSync(files.wanted, { force: true });
  const isRunning = (await manager.state(place.name)).state === 'running';
  if (wanted !== undefined && isRunning) await until(context, () => heeds(files.read(), wanted));
  // Without a running service, this process removes the armed wake-up.
  if (wanted === 'off' && files.read()) await takeWakeBack(context, place);
  const state: WakeState = wakeState(context, place);
  const { isOn, armedFor, means, problem, remedy, loose } = state;
  const data = { wakes_computer: isOn, woken_at: armedFor === undefined ? null : formatInstant(armedFor) };
  const more = { means: means ?? null, problem: problem ?? null, remedy: remedy ?? null, loose: loose ?? null };
  out.result({ ...data, ...more }, `The computer ${wakeWords(context, state)}.`);
  if (isOn && remedy !== undefined) out.remark(remedy);
  if (isOn && !isRunning)
    out.remark('The service does not run: no wake-up is armed. Start it with: reveille service restart');
}

export async function serviceRestart(context: CliContext): Promise<void> {
  const { out } = context;
  const { place, manager } = await mustExist(context);
  await manager.stop(place.name);
  await manager.start(place.name);
  const health = await whenUp(context, manager, place.name);
  if (!health.healthy) throw new ReveilleError('unavailable', `the service does not start: ${health.why}`);
  out.result({ service: place.name, pid: health.run.pid }, `Restarted ${place.name}: process ${health.run.pid}`);
}

export async function serviceUninstall(context: CliContext): Promise<void> {
  const { out, home } = context;
  const service = await findService(context);
  const { state } = await service.manager.state(service.place.name);
  if (state === 'missing' && currentVersion(service.place) === undefined) throw notInstalled(context);
  await service.manager.stop(service.place.name).catch(() => {});
  await settleBeforeStart(context, service.place);
  const ended = await removeService(context, service);
  out.result({ service: service.place.name, home: home.path, machines_ended: ended }, [
    `Removed the service ${service.place.name}. Alarms fire again when "reveille up" runs.`,
    `The data stays in ${home.path}; to remove it, delete this folder.`,
  ]);
}

export async function upgrade(context: CliContext, wanted: string | undefined): Promise<void> {
  const { out } = context;
  const service = await mustExist(context);
  const release = takeUpgrade(service.place);
  try {
    const settled = await settleCutOff(context, service);
    if (settled) out.remark(`The interrupted upgrade to ${settled.upgraded.to} was ${settled.outcome} first`);
    const { from, to, folder } = await upgradeService(context, service, wanted ?? 'latest', settled);
    out.result({ from, to, folder }, [
      `Upgraded from ${from} to ${to}: it runs, and its doctor reports no new problem.`,
      `${from} is kept.`,
    ]);
  } finally {
    release();
  }
}

/** The service runs this before each start. */
export async function serviceSettle(context: CliContext): Promise<void> {
  const { environment, home, out } = context;
  const given = await settleBeforeStart(context, serviceLocation(environment, home.path));
  if (given !== undefined)
    out.remark(`The upgrade to ${given} was interrupted and is cancelled: the earlier version starts`);
}
