/** Installs `reveille up` as a service, and removes it. */
import { createHash } from 'node:crypto';
import { existsSync, mkdirSync, rmSync, symlinkSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { FileInUse, likelyOwner } from '../../kit/sqlite/file-owner.ts';
import { ReveilleError, thrownText } from '../../wire/errors.ts';
import type { CliContext } from '../context.ts';
import { checkSchemas, schemasOf } from '../home/databases.ts';
import { makeHome, type RunRecord } from '../home/home.ts';
import { PACKAGE_ROOT } from '../home/package-root.ts';
import { takeWakeBack } from '../sleep/wake-text.ts';
import {
  currentVersion,
  forgetVersions,
  type ServiceFolders,
  serviceLocation,
  switchTo,
  versionOf,
} from './folders.ts';
import { endMachines, whenUp } from './health.ts';
import { copyProgram, isCheckout, lastingNode, notWritten, packageAt, programIn } from './lasting-copy.ts';
import { type ManagerOptions, noManager, type ServiceManager, type ServiceSpec } from './manager.ts';
import { earlierVersion, forgetNote, noteFile, readNote } from './upgrade-note.ts';

/** Variables of the user's shell with locations, which a service needs too. */
const HANDED_ON = ['PATH', 'XDG_CONFIG_HOME', 'REVEILLE_APPROVER_DIR', 'REVEILLE_APPROVER_STORE', 'REVEILLE_TLS_CA'];

/** Runs the following words when the first one is a file. */
const UNLESS_MISSING = ['/bin/sh', '-c', 'test ! -e "$0" || exec "$@"'];

export type Service = { readonly place: ServiceFolders; readonly manager: ServiceManager };

async function managerOf(platform: NodeJS.Platform, options: ManagerOptions): Promise<ServiceManager> {
  if (platform === 'darwin') return (await import('./launchd.ts')).launchd(options);
  if (platform === 'win32') return (await import('./windows-task.ts')).windowsTask(options);
  if (platform === 'linux') return (await import('./systemd.ts')).systemd(options);
  throw noManager(`${platform} has none that Reveille supports`);
}

/**
 * @param isOnlyText whether only the text of its file is needed
 * @throws ReveilleError `unavailable` when this system has no service manager, or it does not answer
 */
export async function findService({ environment, home }: CliContext, isOnlyText = false): Promise<Service> {
  const place = serviceLocation(environment, home.path);
  const options = { environment, place, homePath: home.path, isOnlyText };
  return { place, manager: await managerOf(process.platform, options) };
}

/** The command of the service: always through its link, so that its file does not change. */
export function specOf({ environment, home }: CliContext, place: ServiceFolders, node: string): ServiceSpec {
  const { name, current } = place;
  const kept = HANDED_ON.flatMap((variable) => (environment[variable] ? [[variable, environment[variable]]] : []));
  return {
    name,
    command: [node, programIn(current), 'up'],
    // With the last good version, if an upgrade was interrupted: at any other start it costs a shell.
    before: [...UNLESS_MISSING, noteFile(place), node, programIn(earlierVersion(place)), 'service', 'settle'],
    environment: { ...Object.fromEntries(kept), REVEILLE_HOME: home.path, ROUTER_KEEP_MACHINES: '1' },
    logFile: join(home.path, 'service.log'),
  };
}

/** A version's folder that is the repository itself. */
function linkCheckout({ versions }: ServiceFolders): string {
  const { name } = packageAt(PACKAGE_ROOT);
  const mark = createHash('sha256').update(PACKAGE_ROOT).digest('hex').slice(0, 8);
  const folder = join(versions, `checkout-${mark}`);
  const link = join(folder, 'node_modules', name);
  mkdirSync(dirname(link), { recursive: true });
  if (!existsSync(link)) symlinkSync(PACKAGE_ROOT, link, process.platform === 'win32' ? 'junction' : 'dir');
  return folder;
}

/** @throws ReveilleError `conflict` when an `up` that is not this service runs in the home */
async function checkFree({ home }: CliContext, { manager, place }: Service): Promise<void> {
  const { state, pid } = await manager.state(place.name);
  const owner = likelyOwner(join(home.path, 'up'));
  if (owner === undefined || owner === pid || (state === 'running' && pid === undefined)) return;
  const message = `Reveille already runs in ${home.path} as process ${owner}: stop it first (reveille stop), then install the service`;
  throw new ReveilleError('conflict', message, { retryable: false, cause: new FileInUse(home.path, owner) });
}

export type Installed = { readonly run: RunRecord; readonly folder: string; readonly isCheckout: boolean };

/**
 * Installs the service, or replaces its version, and waits until it answers. A service that does not start is removed
 * again.
 *
 * @throws ReveilleError naming the obstacle and the remedy
 */
export async function installService(context: CliContext, service: Service): Promise<Installed> {
  const { place, manager } = service;
  makeHome(context.home);
  await checkFree(context, service);
  const cutOff = readNote(place);
  if (cutOff !== undefined)
    throw new ReveilleError(
      'conflict',
      `an upgrade to ${versionOf(cutOff.to)} is running or was interrupted; finish it first: reveille upgrade`,
    );
  checkSchemas(schemasOf(context.settings), `the data in ${context.home.path} was written by`);
  const node = lastingNode();
  const earlier = currentVersion(place);
  let folder: string;
  try {
    folder = isCheckout() ? linkCheckout(place) : await copyProgram(place.versions, node);
    switchTo(place, folder);
  } catch (thrown) {
    if (earlier === undefined) forgetVersions(place);
    throw notWritten(dirname(place.versions), thrown);
  }
  const health = await manager.install(specOf(context, place, node)).then(
    () => whenUp(context, manager, place.name),
    (thrown: unknown) => ({ healthy: false, why: thrownText(thrown) }) as const,
  );
  if (health.healthy) return { run: health.run, folder, isCheckout: isCheckout() };
  if (earlier === undefined || earlier === folder) {
    await removeService(context, service);
    throw new ReveilleError('unavailable', `the service did not start and was removed again: ${health.why}`);
  }
  switchTo(place, earlier);
  await manager.stop(place.name).catch(() => {});
  await manager.start(place.name);
  throw new ReveilleError('unavailable', `this version did not start, and the earlier one runs again: ${health.why}`);
}

/** Stops the service and removes everything except the data. @returns the number of stopped agents */
export async function removeService(context: CliContext, { place, manager }: Service): Promise<number> {
  await manager.uninstall(place.name);
  await takeWakeBack(context, place);
  const ended = existsSync(context.settings.ROUTER_DATA_DIR!) ? await endMachines(context) : 0;
  const note = readNote(place);
  if (note !== undefined) forgetNote(place, note);
  rmSync(place.own, { recursive: true, force: true });
  forgetVersions(place);
  return ended;
}
