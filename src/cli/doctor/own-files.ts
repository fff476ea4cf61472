/** Checks on the disk: folders, secrets, key and configuration. */
import {
  closeSync,
  existsSync,
  fsyncSync,
  mkdtempSync,
  openSync,
  rmSync,
  statfsSync,
  statSync,
  writeSync,
} from 'node:fs';
import { dirname, join, relative } from 'node:path';
import { readKeyFile } from '../../kit/identity/keys.ts';
import { didOf } from '../../wire/did.ts';
import { ReveilleError } from '../../wire/errors.ts';
import { keyFileOf, labelOf } from '../access/chronos.ts';
import type { CliContext } from '../context.ts';
import { readRun, readSecrets } from '../home/home.ts';
import { readSettingsFile } from '../home/settings-file.ts';
import { brokenBy, type Check, orUndefined } from './check.ts';

const MEGABYTE = 1024 * 1024;
/** Below the first limit a day of alarms still fits; below the second, SQLite may not get its next page. */
const LITTLE_SPACE = 200 * MEGABYTE;
const NO_SPACE = 10 * MEGABYTE;
const MAKE_ROOM = 'free space on this disk';
/** A page of SQLite; a full disk does not store it. */
const TRIAL_BYTES = 4096;

function messageOf(thrown: unknown): string {
  return thrown instanceof Error ? thrown.message : String(thrown);
}

/** Writes, syncs and removes a file: detects permissions, read-only media and full disks. */
function tryWriting(folder: string): void {
  const trial = mkdtempSync(join(folder, '.doctor-'));
  try {
    const fd = openSync(join(trial, 'trial'), 'wx', 0o600);
    try {
      writeSync(fd, Buffer.alloc(TRIAL_BYTES));
      fsyncSync(fd);
    } finally {
      closeSync(fd);
    }
  } finally {
    rmSync(trial, { recursive: true, force: true });
  }
}

function checkSpace(name: string, folder: string): Check {
  try {
    tryWriting(folder);
  } catch (thrown) {
    const full = /^(ENOSPC|EDQUOT)/.test(messageOf(thrown));
    const remedy = full ? MAKE_ROOM : `make it writable for this user, or choose another folder with ${name}`;
    return { name, status: 'broken', detail: `${folder} cannot be written to: ${messageOf(thrown)}`, remedy };
  }
  const { bavail, bsize } = statfsSync(folder);
  const free = bavail * bsize;
  const detail = `${folder}, ${Math.floor(free / MEGABYTE)} MB free`;
  if (free >= LITTLE_SPACE) return { name, status: 'ok', detail };
  return { name, status: free < NO_SPACE ? 'broken' : 'warning', detail, remedy: MAKE_ROOM };
}

/** Whether a start could create a missing folder. */
function checkAbsent(name: string, folder: string): Check {
  let above = dirname(folder);
  while (!existsSync(above)) above = dirname(above);
  try {
    rmSync(mkdtempSync(join(above, '.doctor-')), { recursive: true, force: true });
  } catch (thrown) {
    const remedy = `make ${above} writable for this user, or choose another folder with ${name}`;
    return {
      name,
      status: 'broken',
      detail: `${folder} does not exist and cannot be created: ${messageOf(thrown)}`,
      remedy,
    };
  }
  return { name, status: 'note', detail: `${folder} does not exist yet`, remedy: 'reveille up creates it' };
}

/** A data folder: existing, private, writable, with space. */
function checkFolder(name: string, folder: string): Check {
  const stat = statSync(folder, { throwIfNoEntry: false });
  if (!stat) return checkAbsent(name, folder);
  if (!stat.isDirectory())
    return { name, status: 'broken', detail: `${folder} is not a folder`, remedy: `move it away, or set ${name}` };
  const space = checkSpace(name, folder);
  if (space.status !== 'ok' || process.platform === 'win32' || (stat.mode & 0o077) === 0) return space;
  const mode = (stat.mode & 0o777).toString(8).padStart(4, '0');
  const detail = `${folder} is accessible for other users (mode ${mode})`;
  return { name, status: 'warning', detail, remedy: `chmod 700 ${folder}` };
}

const DATA_FOLDERS = ['CHRONOS_DATA_DIR', 'ROUTER_DATA_DIR', 'NEO_DATA_DIR', 'EXECUTOR_DATA_DIR'] as const;

/** The home folder, and data folders elsewhere. */
export function checkFolders({ home, settings }: CliContext): Check[] {
  const isOutside = (folder: string) => relative(home.path, folder).startsWith('..');
  const elsewhere = DATA_FOLDERS.flatMap((name) => {
    const folder = settings[name];
    if (folder === undefined || (!isOutside(folder) && !existsSync(folder))) return [];
    return [{ name, folder, inside: !isOutside(folder) }];
  });
  const folders = [{ name: 'REVEILLE_HOME', folder: home.path, inside: false }, ...elsewhere];
  return folders.flatMap(({ name, folder, inside }): Check[] => {
    try {
      const check = checkFolder(name, folder);
      // Folders below the home are reported only when broken.
      return inside && check.status !== 'broken' ? [] : [check];
    } catch (thrown) {
      return [{ name, status: 'broken', detail: `${folder} cannot be checked: ${messageOf(thrown)}` }];
    }
  });
}

export async function checkConfigFile({ home }: CliContext): Promise<Check> {
  const name = 'config.yaml';
  try {
    const count = Object.keys(await readSettingsFile(home.configFile)).length;
    if (count === 0) return { name, status: 'note', detail: 'sets nothing; defaults and the environment apply' };
    return { name, status: 'ok', detail: `sets ${count} variable${count === 1 ? '' : 's'}` };
  } catch (error) {
    return { ...brokenBy(name, error), remedy: 'correct that line, or move the file away' };
  }
}

export function checkSecrets({ home }: CliContext): Check {
  const name = 'secrets';
  try {
    if (readSecrets(home) !== undefined) return { name, status: 'ok', detail: 'generated, readable only by you' };
    return { name, status: 'note', detail: 'not generated yet', remedy: 'reveille up generates them on its first run' };
  } catch (error) {
    return brokenBy(name, error);
  }
}

export function checkKey(context: CliContext): Check {
  const name = 'identity';
  const remedy = 'reveille agent whoami creates one';
  try {
    const label = labelOf(context);
    if (label === undefined) return { name, status: 'note', detail: 'not created yet', remedy };
    const { publicKeyHex } = readKeyFile(keyFileOf(context));
    return { name, status: 'ok', detail: didOf(label, publicKeyHex) };
  } catch (error) {
    const isDefaultPath = context.settings.MATRIX_EXECUTOR_KEYFILE === undefined;
    if (isDefaultPath && error instanceof ReveilleError && error.code === 'not_found')
      return { name, status: 'note', detail: `no key at ${context.home.keyFile} yet`, remedy };
    return brokenBy(name, error);
  }
}

/** An unreadable record hides a running `reveille up` from every command; `undefined` without a problem. */
export function checkRunRecord({ home }: CliContext): Check | undefined {
  try {
    const run = readRun(home);
    return run && { name: 'reveille up', status: 'ok', detail: `runs as process ${run.pid}` };
  } catch (error) {
    return { ...brokenBy('reveille up', error), remedy: `stop "reveille up" if it runs, then remove ${home.runFile}` };
  }
}

/** The run record; `undefined` when it is damaged. */
export const runningHere = ({ home }: CliContext) => orUndefined(() => readRun(home));
