/**
 * Upgrades the service: the new version is installed beside the old one, tried with a copy of the data, and abandoned
 * when it is not healthy. An interrupted upgrade is finished from its note: before the next start of the service, and by
 * the next upgrade.
 */
import { existsSync, mkdirSync, renameSync, rmSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { FileInUse, ownFile } from '../../kit/sqlite/file-owner.ts';
import { ReveilleError, thrownText } from '../../wire/errors.ts';
import { formatInstant } from '../../wire/rfc3339.ts';
import type { CliContext } from '../context.ts';
import { schemasOf } from '../home/databases.ts';
import { PACKAGE_ROOT } from '../home/package-root.ts';
import { ask } from './ask.ts';
import {
  currentVersion,
  draftFolder,
  forgetDrafts,
  forgetVersions,
  type ServiceFolders,
  switchTo,
  versionOf,
} from './folders.ts';
import { brokenChecks, endMachines, whenUp } from './health.ts';
import type { Service } from './installation.ts';
import { checkProgram, lastingNode, notWritten, packageAt, programIn } from './lasting-copy.ts';
import {
  cameUp,
  copiesOf,
  forgetNote,
  isMigrated,
  makeCopies,
  type Note,
  putBack,
  readNote,
  writeNote,
} from './upgrade-note.ts';

const NPM_MS = 600_000;
const IS_WINDOWS = process.platform === 'win32';

const FLAGS = ['--ignore-scripts', '--no-audit', '--no-fund', '--omit=dev'];
/** The user waits: npm's own delays between attempts are 10 s and a minute. */
const PATIENCE = ['--fetch-retry-mintimeout=1000', '--fetch-retry-maxtimeout=10000'];

const UNREACHABLE = new Set([
  'ECONNREFUSED',
  'ECONNRESET',
  'ENOTFOUND',
  'EAI_AGAIN',
  'ETIMEDOUT',
  'ERR_SOCKET_TIMEOUT',
]);

/** The registry's address: `http://127.0.0.1:9/reveille` in npm's output. */
const hostIn = (said: string) => {
  const address = /https?:\/\/[^\s/,]+/.exec(said)?.[0];
  return address === undefined ? 'the registry' : `the registry ${address}`;
};

/** The output of npm as one sentence with a remedy. */
export function npmSentence(what: string, printed: string): string {
  const lines = printed.split('\n').flatMap((line) => /^npm (?:error|ERR!) (.*)$/.exec(line)?.[1] ?? []);
  const code = /^code (\S+)/.exec(lines.find((line) => line.startsWith('code ')) ?? '')?.[1] ?? '';
  const said =
    lines.find((line) => !/^(?:code|syscall|errno|path|dest) /.test(line) && line.trim() !== '') ?? printed.trim();
  if (UNREACHABLE.has(code))
    return `${hostIn(said)} cannot be reached (${code}), so ${what} was not fetched; check the network and "npm config get registry", or name a file of npm pack`;
  if (code === 'EINTEGRITY')
    return `${what} from the registry failed its integrity check and was discarded; try again, and do not trust that registry if it repeats`;
  if (code === 'E404' || code === 'ETARGET')
    return `the registry has no ${what}; list its versions with: npm view ${what.replace(/@[^@]*$/, '')} versions`;
  return `npm could not install ${what}: ${said}`;
}

/**
 * Installs a version beside the others.
 *
 * @param wanted a version, a tag, or a file of `npm pack`
 * @returns its folder; the folder of the running version when it is the same
 * @throws ReveilleError and leaves nothing behind when it cannot be installed or does not start
 */
async function fetchVersion(
  { environment }: CliContext,
  { place }: Service,
  wanted: string,
  node: string,
): Promise<string> {
  const { name } = packageAt(PACKAGE_ROOT);
  forgetDrafts(place);
  const draft = draftFolder(place);
  const isFile = /\.tgz$/.test(wanted);
  const what = isFile ? resolve(wanted) : `${name}@${wanted}`;
  if (isFile && !existsSync(what))
    throw new ReveilleError('not_found', `${what} cannot be read: the file does not exist`);
  try {
    mkdirSync(draft, { recursive: true, mode: 0o755 });
    const words = ['install', '--prefix', draft, ...FLAGS, ...PATIENCE, what];
    const npm = IS_WINDOWS ? 'npm.cmd' : 'npm';
    const { status, stderr, missing } = await ask(npm, words, { env: environment, limitMs: NPM_MS, cwd: draft });
    if (missing) throw new ReveilleError('unavailable', 'npm is not installed; install npm beside Node');
    if (status !== 0) throw new ReveilleError('unavailable', npmSentence(what, stderr));
    const root = join(draft, 'node_modules', name);
    if (!existsSync(join(root, 'package.json')) || !existsSync(programIn(draft)))
      throw new ReveilleError('invalid_request', `${what} is not a package of Reveille; name a version or its file`);
    const { version } = packageAt(root);
    const folder = join(place.versions, version);
    if (folder === currentVersion(place)) return folder;
    await checkProgram(node, draft, version);
    rmSync(folder, { recursive: true, force: true });
    renameSync(draft, folder);
    return folder;
  } catch (thrown) {
    throw notWritten(place.versions, thrown);
  } finally {
    rmSync(draft, { recursive: true, force: true });
  }
}

export type Upgraded = { readonly from: string; readonly to: string; readonly folder: string };

/**
 * One upgrade at a time per service.
 *
 * @returns releases the lock
 * @throws ReveilleError `conflict` when another one runs
 */
export function takeUpgrade({ own }: ServiceFolders): () => void {
  try {
    return ownFile(join(own, 'upgrade'));
  } catch (thrown) {
    if (!(thrown instanceof FileInUse)) throw thrown;
    throw new ReveilleError('conflict', `another upgrade runs as process ${thrown.pid}; wait until it has ended`, {
      cause: thrown,
    });
  }
}

/** Finishes a step even when this process is asked to end. @returns its result */
async function undisturbed<T>({ out }: CliContext, work: () => Promise<T>): Promise<T> {
  const signals = ['SIGINT', 'SIGTERM', 'SIGHUP'] as const;
  const hold = () => out.remark('The upgrade finishes first: stopping here would leave nothing running');
  for (const signal of signals) process.on(signal, hold);
  try {
    return await work();
  } finally {
    for (const signal of signals) process.off(signal, hold);
  }
}

/**
 * Restores the earlier version for the next start. The data is restored only when the new version has migrated it;
 * otherwise acknowledged changes stay.
 *
 * @returns whether the data was restored
 */
async function giveUp(context: CliContext, place: ServiceFolders, note: Note): Promise<boolean> {
  await endMachines(context);
  const migrated = note.phase === 'trying' && isMigrated(context, note);
  if (migrated) putBack(note);
  switchTo(place, note.from);
  return migrated;
}

/** Abandons the new version, and ensures that the earlier one runs. @returns whether the data was restored */
async function goBack(context: CliContext, { manager, place }: Service, note: Note): Promise<boolean> {
  await manager.stop(place.name).catch(() => {});
  const migrated = await giveUp(context, place, note);
  await manager.start(place.name);
  const health = await whenUp(context, manager, place.name);
  if (!health.healthy)
    throw new ReveilleError('unavailable', `version ${versionOf(note.from)} does not start again: ${health.why}`);
  forgetAttempt(place, note);
  return migrated;
}

function forgetAttempt(place: ServiceFolders, note: Note): void {
  forgetNote(place, note);
  if (note.to !== note.from) rmSync(note.to, { recursive: true, force: true });
}

function keepNew(place: ServiceFolders, note: Note): Upgraded {
  forgetNote(place, note);
  // The earlier version is kept, for a manual return.
  forgetVersions(place, [note.from]);
  return { from: versionOf(note.from), to: versionOf(note.to), folder: note.to };
}

/**
 * Runs before each start of the service. An interrupted upgrade is abandoned, unless its version has accepted requests on
 * data that the earlier one cannot read. Then the new version starts, and the next `reveille upgrade` checks it.
 *
 * @returns the abandoned version; `undefined` without one, or while its upgrade runs
 */
export async function settleBeforeStart(context: CliContext, place: ServiceFolders): Promise<string | undefined> {
  if (readNote(place) === undefined) return undefined;
  let release: () => void;
  try {
    release = takeUpgrade(place);
  } catch {
    return undefined;
  }
  try {
    const note = readNote(place);
    if (note === undefined) return undefined;
    const isKept =
      note.phase === 'over' || (note.phase === 'trying' && isMigrated(context, note) && cameUp(context, note));
    if (!isKept) await giveUp(context, place, note);
    if (note.phase === 'over') forgetNote(place, note);
    else if (!isKept) forgetAttempt(place, note);
    return isKept ? undefined : versionOf(note.to);
  } finally {
    release();
  }
}

/** The result of an interrupted upgrade. */
export type Settled = { readonly outcome: 'finished' | 'given up'; readonly upgraded: Upgraded };

/** Finishes an interrupted upgrade, with the service running. */
export async function settleCutOff(context: CliContext, service: Service): Promise<Settled | undefined> {
  const { place, manager } = service;
  const note = readNote(place);
  if (note === undefined) return undefined;
  const upgraded = { from: versionOf(note.from), to: versionOf(note.to), folder: note.to };
  return undisturbed(context, async () => {
    if (note.phase === 'trying' && currentVersion(place) === note.to) {
      const { state } = await manager.state(place.name);
      if (state === 'stopped') await manager.start(place.name);
      const wrong = await whatIsWrong(context, service, lastingNode(), new Set(note.known));
      const isKept = wrong === undefined || (isMigrated(context, note) && cameUp(context, note));
      if (isKept) return { outcome: 'finished', upgraded: keepNew(place, note) };
    }
    if (note.phase === 'over') {
      forgetNote(place, note);
      return { outcome: currentVersion(place) === note.to ? 'finished' : 'given up', upgraded };
    }
    await goBack(context, service, note);
    return { outcome: 'given up', upgraded };
  });
}

/** Why the new version must be abandoned; `undefined` when it may stay. */
async function whatIsWrong(
  context: CliContext,
  { manager, place }: Service,
  node: string,
  knownProblems: ReadonlySet<string>,
): Promise<string | undefined> {
  const health = await whenUp(context, manager, place.name);
  if (!health.healthy) return `it does not start: ${health.why}`;
  const broken = await brokenChecks(context, [node, programIn(place.current)]);
  if (broken === undefined) return 'its doctor prints nothing';
  const fresh = [...broken].find(([name]) => !knownProblems.has(name));
  if (fresh) return `its doctor reports that ${fresh[0]} is broken: ${fresh[1]}`;
  const { state, pid } = await manager.state(place.name);
  if (state !== 'running' || (pid !== undefined && pid !== health.run.pid)) return 'it ended soon after its start';
  return undefined;
}

/**
 * @param wanted a version, a tag, or a file of `npm pack`
 * @param settled the interrupted upgrade before it, whose version may be the wanted one
 * @throws ReveilleError when it cannot be installed (nothing has changed then), or was not healthy (the earlier version
 *   runs again)
 */
export async function upgradeService(
  context: CliContext,
  service: Service,
  wanted: string,
  settled?: Settled,
): Promise<Upgraded> {
  const { place } = service;
  const from = currentVersion(place);
  if (from === undefined)
    throw new ReveilleError(
      'not_found',
      `no service is installed for ${context.home.path}; install one first: reveille service install`,
    );
  const node = lastingNode();
  const to = await fetchVersion(context, service, wanted, node);
  if (to === from) {
    if (settled?.outcome === 'finished') return settled.upgraded;
    throw new ReveilleError('conflict', `version ${versionOf(to)} already runs; there is nothing to upgrade`);
  }
  const known = new Set((await brokenChecks(context, [node, programIn(place.current)]))?.keys());
  const note: Note = {
    ...{ phase: 'copying', from, to, known: [...known] },
    begun_at: formatInstant(context.clock.now()),
    copies: copiesOf(context),
    schemas: schemasOf(context.settings),
  };
  return undisturbed(context, async () => {
    const tried = await copyData(context, service, note);
    const wrong = await tryNew(context, service, tried, node).catch(thrownText);
    if (wrong === undefined) return keepNew(place, tried);
    const data = (await goBack(context, service, tried)) ? 'on the earlier data' : 'on the same data';
    const message = `version ${versionOf(to)} was abandoned, and ${versionOf(from)} runs again ${data}: ${wrong}`;
    throw new ReveilleError('unavailable', message, { retryable: false });
  });
}

/** Stops the service and copies its data. @returns the note; after a failure the service continues */
async function copyData(context: CliContext, { manager, place }: Service, note: Note): Promise<Note> {
  writeNote(place, note);
  try {
    await manager.stop(place.name);
    await endMachines(context);
    await makeCopies(note);
    const tried: Note = { ...note, phase: 'trying', tried_at: formatInstant(context.clock.now()) };
    writeNote(place, tried);
    return tried;
  } catch (thrown) {
    // Nothing has changed yet.
    forgetAttempt(place, note);
    await manager.start(place.name);
    const why = thrownText(thrown);
    const message = `the data could not be copied, and version ${versionOf(note.from)} continues: ${why}`;
    throw new ReveilleError('unavailable', message, { cause: thrown });
  }
}

/** @returns why the new version must be abandoned; `undefined` when it may stay */
async function tryNew(context: CliContext, service: Service, note: Note, node: string): Promise<string | undefined> {
  const { place, manager } = service;
  switchTo(place, note.to);
  await manager.start(place.name);
  return whatIsWrong(context, service, node, new Set(note.known));
}
