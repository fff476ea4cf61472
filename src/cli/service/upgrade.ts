/**
 * Upgrades the service: the new version is installed beside the old one, tried with a copy of the data, and abandoned
 * when it is not healthy. An interrupted upgrade is finished from its note: before the next start of the service, and by
 * the next upgrade.
 */
import { rmSync } from 'node:fs';
import { join } from 'node:path';
import { FileInUse, ownFile } from '../../kit/sqlite/file-owner.ts';
import { ReveilleError } from '../../wire/errors.ts';
import { formatInstant } from '../../wire/rfc3339.ts';
import type { CliContext } from '../context.ts';
import { schemasOf } from '../home/databases.ts';
import { fetchVersion } from './fetch-version.ts';
import { currentVersion, forgetVersions, type ServiceFolders, switchTo, versionOf } from './folders.ts';
import { brokenChecks, endMachines, whenUp } from './health.ts';
import type { Service } from './installation.ts';
import { lastingNode, programIn } from './lasting-copy.ts';
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
    const wrong = await tryNew(context, service, tried, node).catch((thrown) =>
      thrown instanceof Error ? thrown.message : String(thrown),
    );
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
    const why = thrown instanceof Error ? thrown.message : String(thrown);
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
