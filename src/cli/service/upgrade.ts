/**
 * Another version in the place of the one that the service runs: installed beside it, tried with a copy of the data at
 * hand, and given up when it is not healthy. What a power cut or a kill has cut off is brought to an end by the note that
 * it has left: before the next start of the service, and by the next upgrade.
 */
import { rmSync } from 'node:fs';
import { join } from 'node:path';
import { FileInUse, ownFile } from '../../kit/sqlite/file-owner.ts';
import { ReveilleError } from '../../wire/errors.ts';
import { formatInstant } from '../../wire/rfc3339.ts';
import type { CliContext } from '../context.ts';
import { schemasOf } from '../home/databases.ts';
import { fetchVersion } from './fetch-version.ts';
import { brokenChecks, endMachines, whenUp } from './health.ts';
import type { Service } from './installation.ts';
import { lastingNode, programIn } from './lasting-copy.ts';
import { currentVersion, forgetVersions, type ServicePlace, switchTo, versionOf } from './place.ts';
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
 * One upgrade at a time for each service.
 *
 * @returns gives the right up
 * @throws ReveilleError `conflict` when another one is at work
 */
export function takeUpgrade({ own }: ServicePlace): () => void {
  try {
    return ownFile(join(own, 'upgrade'));
  } catch (thrown) {
    if (!(thrown instanceof FileInUse)) throw thrown;
    throw new ReveilleError(
      'conflict',
      `another upgrade is at work, as process ${thrown.pid}; wait until it has ended`,
      {
        cause: thrown,
      },
    );
  }
}

/** Has a stretch of work run to its end, whoever asks this process to end. @returns what it came to */
async function undisturbed<T>({ out }: CliContext, work: () => Promise<T>): Promise<T> {
  const signals = ['SIGINT', 'SIGTERM', 'SIGHUP'] as const;
  const hold = () => out.remark('The upgrade is brought to an end first: cut off here, nothing would run');
  for (const signal of signals) process.on(signal, hold);
  try {
    return await work();
  } finally {
    for (const signal of signals) process.off(signal, hold);
  }
}

/**
 * Has the version before run again, from its next start on. The data is put back only where the new version has migrated
 * it: else what was acknowledged meanwhile stays.
 *
 * @returns whether the data was put back
 */
async function giveUp(context: CliContext, place: ServicePlace, note: Note): Promise<boolean> {
  await endMachines(context);
  const migrated = note.phase === 'trying' && isMigrated(context, note);
  if (migrated) putBack(note);
  switchTo(place, note.from);
  return migrated;
}

/** Gives the new version up, and makes sure that the one before runs. @returns whether the data was put back */
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

function forgetAttempt(place: ServicePlace, note: Note): void {
  forgetNote(place, note);
  if (note.to !== note.from) rmSync(note.to, { recursive: true, force: true });
}

function keepNew(place: ServicePlace, note: Note): Upgraded {
  forgetNote(place, note);
  // The one before stays, to go back to by hand.
  forgetVersions(place, [note.from]);
  return { from: versionOf(note.from), to: versionOf(note.to), folder: note.to };
}

/**
 * What the service does before each start: an upgrade that was cut off is given up, unless its version has taken requests
 * on data that the one before cannot read; that one starts again, and the next `reveille upgrade` looks at it.
 *
 * @returns the version that was given up; `undefined` where there was none, or its upgrade is still at work
 */
export async function settleBeforeStart(context: CliContext, place: ServicePlace): Promise<string | undefined> {
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

/** What became of an upgrade that was cut off. */
export type Settled = { readonly outcome: 'finished' | 'given up'; readonly upgraded: Upgraded };

/** Brings an upgrade that was cut off to an end, with the service running. */
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

/** Why the new version must not stay; `undefined` when it may. */
async function whatIsWrong(
  context: CliContext,
  { manager, place }: Service,
  node: string,
  knownProblems: ReadonlySet<string>,
): Promise<string | undefined> {
  const health = await whenUp(context, manager, place.name);
  if (!health.healthy) return `it does not start: ${health.why}`;
  const broken = await brokenChecks(context, [node, programIn(place.current)]);
  if (broken === undefined) return 'its doctor says nothing';
  const fresh = [...broken].find(([name]) => !knownProblems.has(name));
  if (fresh) return `its doctor says that ${fresh[0]} is broken: ${fresh[1]}`;
  const { state, pid } = await manager.state(place.name);
  if (state !== 'running' || (pid !== undefined && pid !== health.run.pid))
    return 'it ended again soon after its start';
  return undefined;
}

/**
 * @param wanted a version, a tag, or a file that `npm pack` made
 * @param settled what was cut off before: the version that came of it may be the one that is wanted
 * @throws ReveilleError when it cannot be installed (nothing has changed then), or was not healthy (the version before
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
      `Reveille is no service in ${context.home.path}; make it one first: reveille service install`,
    );
  const node = lastingNode();
  const to = await fetchVersion(context, service, wanted, node);
  if (to === from) {
    if (settled?.outcome === 'finished') return settled.upgraded;
    throw new ReveilleError('conflict', `version ${versionOf(to)} runs already; there is nothing to upgrade to`);
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
    const data = (await goBack(context, service, tried)) ? 'on the data as it was before' : 'on the same data';
    const message = `version ${versionOf(to)} was given up, and ${versionOf(from)} runs again ${data}: ${wrong}`;
    throw new ReveilleError('unavailable', message, { retryable: false });
  });
}

/** Stops the service and copies its data. @returns the note of that; what fails here has the service run on */
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
    const message = `the data could not be copied, and version ${versionOf(note.from)} runs on: ${why}`;
    throw new ReveilleError('unavailable', message, { cause: thrown });
  }
}

/** @returns why the new version must not stay; `undefined` when it may */
async function tryNew(context: CliContext, service: Service, note: Note, node: string): Promise<string | undefined> {
  const { place, manager } = service;
  switchTo(place, note.to);
  await manager.start(place.name);
  return whatIsWrong(context, service, node, new Set(note.known));
}
