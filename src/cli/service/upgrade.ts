/**
 * Another version in the place of the one that the service runs: installed beside it, tried with a copy of the data at
 * hand, and given up when it is not healthy. A note of how far this has come lies beside the service, so that an upgrade
 * that was cut off is given up by the next one.
 */
import { constants, cpSync, existsSync, mkdirSync, readFileSync, renameSync, rmSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { z } from 'zod';
import { replacePrivateFile } from '../../kit/identity/private-file.ts';
import { ReveilleError } from '../../wire/errors.ts';
import { formatInstant } from '../../wire/rfc3339.ts';
import { foldersElsewhere } from '../backup/inventory.ts';
import type { CliContext } from '../context.ts';
import { schemasOf } from '../home/databases.ts';
import { PACKAGE_ROOT } from '../home/package-root.ts';
import { ask } from './ask.ts';
import { brokenChecks, endMachines, whenUp } from './health.ts';
import type { Service } from './installation.ts';
import { checkProgram, lastingNode, notWritten, packageAt, programIn } from './lasting-copy.ts';
import { currentVersion, forgetVersions, switchTo, versionOf } from './place.ts';

const NPM_MS = 600_000;
const IS_WINDOWS = process.platform === 'win32';

const noteSchema = z.strictObject({
  from: z.string(),
  to: z.string(),
  begun_at: z.string(),
  /** Each folder of data, and where its copy lies. */
  copies: z.array(z.strictObject({ folder: z.string(), copy: z.string() })),
  schemas: z.record(z.string(), z.int()),
});
type Note = z.output<typeof noteSchema>;

export type Upgraded = { readonly from: string; readonly to: string; readonly folder: string };

const noteFile = ({ place }: Service) => join(place.own, 'upgrade.json');

function readNote(service: Service): Note | undefined {
  const file = noteFile(service);
  return existsSync(file) ? noteSchema.parse(JSON.parse(readFileSync(file, 'utf8'))) : undefined;
}

/** Installs a version beside the others. @returns its folder */
async function fetchVersion(
  { environment }: CliContext,
  { place }: Service,
  wanted: string,
  node: string,
): Promise<string> {
  const { name } = packageAt(PACKAGE_ROOT);
  const draft = join(place.versions, `.new-${process.pid}`);
  const isFile = /\.tgz$/.test(wanted);
  const what = isFile ? resolve(wanted) : `${name}@${wanted}`;
  if (isFile && !existsSync(what))
    throw new ReveilleError('not_found', `${what} cannot be read: there is no such file`);
  try {
    mkdirSync(draft, { recursive: true, mode: 0o755 });
    const words = ['install', '--prefix', draft, '--ignore-scripts', '--no-audit', '--no-fund', '--omit=dev', what];
    const npm = IS_WINDOWS ? 'npm.cmd' : 'npm';
    const { status, stderr, missing } = await ask(npm, words, { env: environment, limitMs: NPM_MS, cwd: draft });
    if (missing)
      throw new ReveilleError('unavailable', 'there is no npm here to install it with; install npm beside Node');
    if (status !== 0) {
      const said = stderr.split('\n').find((line) => /^npm (?:error|ERR!) (?!code)/.test(line)) ?? stderr.trim();
      throw new ReveilleError(
        'unavailable',
        `npm could not install ${what}: ${said.replace(/^npm (?:error|ERR!) /, '')}`,
      );
    }
    const root = join(draft, 'node_modules', name);
    if (!existsSync(join(root, 'package.json')) || !existsSync(programIn(draft)))
      throw new ReveilleError('invalid_request', `${what} is not a package of Reveille; name a version or its file`);
    const { version } = packageAt(root);
    const folder = join(place.versions, version);
    if (folder === currentVersion(place))
      throw new ReveilleError('conflict', `version ${version} runs already; there is nothing to upgrade to`);
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

/** The folders that hold data, each with where its copy goes: on the same disk, so that going back is a rename. */
function copiesOf({ home, settings }: CliContext): Note['copies'] {
  const folders = [home.path, ...foldersElsewhere(home, settings).map(([folder]) => folder)];
  return folders.filter((folder) => existsSync(folder)).map((folder) => ({ folder, copy: `${folder}.before-upgrade` }));
}

function makeCopies(copies: Note['copies']): void {
  for (const { folder, copy } of copies) {
    rmSync(copy, { recursive: true, force: true });
    const options = {
      recursive: true,
      preserveTimestamps: true,
      verbatimSymlinks: true,
      mode: constants.COPYFILE_FICLONE,
    };
    cpSync(folder, copy, options);
  }
}

function dropCopies(copies: Note['copies']): void {
  for (const { copy } of copies) rmSync(copy, { recursive: true, force: true });
}

/** Puts the copies in the place of what the new version has made of the data. */
function putBack(copies: Note['copies']): void {
  for (const { folder, copy } of copies) {
    if (!existsSync(copy)) continue;
    const failed = `${folder}.failed-upgrade`;
    rmSync(failed, { recursive: true, force: true });
    if (existsSync(folder)) renameSync(folder, failed);
    renameSync(copy, folder);
    rmSync(failed, { recursive: true, force: true });
  }
}

const isSame = (one: Record<string, number>, other: Record<string, number>) =>
  Object.keys({ ...one, ...other }).every((path) => one[path] === other[path]);

/**
 * Has the version before run again. The data is put back only where the new version has migrated it: else what was
 * acknowledged meanwhile stays.
 *
 * @returns whether the data was put back
 */
async function goBack(context: CliContext, service: Service, note: Note): Promise<boolean> {
  const { manager, place } = service;
  await manager.stop(place.name).catch(() => {});
  await endMachines(context);
  const isMigrated = !isSame(schemasOf(context.settings), note.schemas);
  if (isMigrated) putBack(note.copies);
  switchTo(place, note.from);
  await manager.start(place.name);
  const health = await whenUp(context, manager, place.name);
  if (!health.healthy)
    throw new ReveilleError('unavailable', `version ${versionOf(note.from)} does not start again: ${health.why}`);
  dropCopies(note.copies);
  rmSync(noteFile(service), { force: true });
  if (note.to !== note.from) rmSync(note.to, { recursive: true, force: true });
  return isMigrated;
}

/** Gives up an upgrade that was cut off. @returns which, if there was one */
export async function giveUpCutOff(context: CliContext, service: Service): Promise<string | undefined> {
  const note = readNote(service);
  if (note === undefined) return undefined;
  await goBack(context, service, note);
  return versionOf(note.to);
}

/** Why the new version must not stay; `undefined` when it may. */
async function whatIsWrong(
  context: CliContext,
  { manager, place }: Service,
  node: string,
  knownProblems: ReadonlyMap<string, string>,
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
 * @throws ReveilleError when it cannot be installed (nothing has changed then), or was not healthy (the version before
 *   runs again)
 */
export async function upgradeService(context: CliContext, service: Service, wanted: string): Promise<Upgraded> {
  const { place, manager } = service;
  const from = currentVersion(place);
  if (from === undefined)
    throw new ReveilleError(
      'not_found',
      `Reveille is no service in ${context.home.path}; make it one first: reveille service install`,
    );
  const node = lastingNode();
  const to = await fetchVersion(context, service, wanted, node);
  const known = (await brokenChecks(context, [node, programIn(place.current)])) ?? new Map<string, string>();
  const note: Note = {
    ...{ from, to },
    begun_at: formatInstant(context.clock.now()),
    copies: copiesOf(context),
    schemas: schemasOf(context.settings),
  };
  let wrong: string | undefined;
  await manager.stop(place.name);
  try {
    await endMachines(context);
    makeCopies(note.copies);
  } catch (thrown) {
    // Nothing has changed yet.
    dropCopies(note.copies);
    rmSync(to, { recursive: true, force: true });
    await manager.start(place.name);
    const why = thrown instanceof Error ? thrown.message : String(thrown);
    throw new ReveilleError(
      'unavailable',
      `the data could not be copied, and version ${versionOf(from)} runs on: ${why}`,
    );
  }
  try {
    replacePrivateFile(noteFile(service), `${JSON.stringify(note, null, 2)}\n`);
    switchTo(place, to);
    await manager.start(place.name);
    wrong = await whatIsWrong(context, service, node, known);
  } catch (thrown) {
    wrong = thrown instanceof Error ? thrown.message : String(thrown);
  }
  if (wrong !== undefined) {
    const isMigrated = await goBack(context, service, note);
    const data = isMigrated ? 'on the data as it was before' : 'on the same data';
    const message = `version ${versionOf(to)} was given up, and ${versionOf(from)} runs again ${data}: ${wrong}`;
    throw new ReveilleError('unavailable', message, { retryable: false });
  }
  rmSync(noteFile(service), { force: true });
  dropCopies(note.copies);
  // The one before stays, to go back to by hand.
  forgetVersions(place, [from]);
  return { from: versionOf(from), to: versionOf(to), folder: to };
}
