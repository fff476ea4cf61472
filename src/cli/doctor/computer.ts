/**
 * Checks of this computer: Node, clock, folders, secrets, key, configuration and databases. Only a trial file is opened for
 * writing.
 */
import {
  accessSync,
  closeSync,
  constants,
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
import { DatabaseSync } from 'node:sqlite';
import { type CalendarSummary, listCalendars } from '../../chronos/calendars.ts';
import { parseChronosConfig } from '../../chronos/config.ts';
import { parseAddress, withoutPassword } from '../../chronos/store/postgres/address.ts';
import { refuseTransferred } from '../../chronos/store/sqlite/transfer-state.ts';
import { CORRECTED_TO } from '../../kit/clock/zone-corrections.ts';
import { readKeyFile } from '../../kit/identity/keys.ts';
import { inspectDatabase } from '../../kit/sqlite/open.ts';
import { didOf } from '../../wire/did.ts';
import { ReveilleError, thrownText } from '../../wire/errors.ts';
import { calendarsFolderOf } from '../access/calendars.ts';
import { keyFileOf, labelOf } from '../access/chronos.ts';
import { orUndefined, type ServerTime } from '../access/unreachable.ts';
import type { CliContext } from '../context.ts';
import { DATABASES, databasePath } from '../home/databases.ts';
import { readRun, readSecrets } from '../home/home.ts';
import { readSettingsFile } from '../home/settings-file.ts';
import { counted } from '../screens/columns.ts';
import { brokenBy, type Check, STAND_INS } from './check.ts';

const MEGABYTE = 1024 * 1024;
/** Below the first limit a day of alarms still fits; below the second, SQLite may not get its next page. */
const LITTLE_SPACE = 200 * MEGABYTE;
const NO_SPACE = 10 * MEGABYTE;
const MAKE_ROOM = 'free space on this disk';
/** A page of SQLite; a full disk does not store it. */
const TRIAL_BYTES = 4096;

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
    const full = /^(ENOSPC|EDQUOT)/.test(thrownText(thrown));
    const remedy = full ? MAKE_ROOM : `make it writable for this user, or choose another folder with ${name}`;
    return { name, status: 'broken', detail: `${folder} cannot be written to: ${thrownText(thrown)}`, remedy };
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
      detail: `${folder} does not exist and cannot be created: ${thrownText(thrown)}`,
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
      return [{ name, status: 'broken', detail: `${folder} cannot be checked: ${thrownText(thrown)}` }];
    }
  });
}

export async function checkConfigFile({ home }: CliContext): Promise<Check> {
  const name = 'config.yaml';
  try {
    const count = Object.keys(await readSettingsFile(home.configFile)).length;
    if (count === 0) return { name, status: 'note', detail: 'sets nothing; defaults and the environment apply' };
    return { name, status: 'ok', detail: `sets ${counted(count, 'variable')}` };
  } catch (error) {
    return { ...brokenBy(name, error), remedy: 'correct that line, or move the file away' };
  }
}

export function checkSecrets({ home }: CliContext): Check {
  const name = 'secrets';
  if (readSecrets(home) !== undefined) return { name, status: 'ok', detail: 'generated, readable only by you' };
  return { name, status: 'note', detail: 'not generated yet', remedy: 'reveille up generates them on its first run' };
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

const NEEDED_NODE = 24;
/** The date of this code: an earlier clock is wrong. */
const EARLIEST_YEAR = 2025;
/** Alarms fire by chronosd's clock; a larger difference is visible to a user. */
const NOTICEABLE_MS = 2000;

/** @param version as in `process.versions.node` */
export function checkNode(version: string): Check {
  const name = 'Node';
  if (Number(version.split('.')[0]) >= NEEDED_NODE) return { name, status: 'ok', detail: version };
  const remedy = `install Node ${NEEDED_NODE} or newer`;
  return { name, status: 'broken', detail: `${version} is too old`, remedy };
}

/** A newer database of time zones is published several times a year. */
const OLD_ZONES_MS = 365 * 86_400_000;
const UPDATE_ZONES =
  'update Reveille or Node; or set ICU_TIMEZONE_FILES_DIR, as "reveille docs troubleshooting" describes';

/** @param ofNode the version of Node's database, as in `process.versions.tz` */
export function checkTimeZones(now: number, ofNode: string | undefined): Check {
  const name = 'time zones';
  if (ofNode === undefined) return { name, status: 'broken', detail: 'Node has no time zones', remedy: UPDATE_ZONES };
  const { version, published } = CORRECTED_TO;
  const isCorrected = ofNode < version;
  const detail = isCorrected ? `tzdata ${version}: Node has ${ofNode}, Reveille the later changes` : `tzdata ${ofNode}`;
  // The name of a version has its year.
  const at = isCorrected || ofNode === version ? Date.parse(published) : Date.UTC(Number(ofNode.slice(0, 4)) + 1, 0);
  const days = Math.floor((now - at) / 86_400_000);
  if (now - at < OLD_ZONES_MS) return { name, status: 'ok', detail };
  return { name, status: 'warning', detail: `${detail}; it is ${days} days old`, remedy: UPDATE_ZONES };
}

/** Calendars that exclude nothing, because their file cannot be used or their last day has passed. */
export function checkCalendars(context: CliContext): Check[] {
  const name = 'calendars';
  let calendars: CalendarSummary[];
  try {
    calendars = listCalendars(calendarsFolderOf(context));
  } catch (thrown) {
    return [{ name, status: 'warning', detail: `they cannot be read: ${thrownText(thrown)}` }];
  }
  const yesterday = new Date(context.clock.now() - 86_400_000).toISOString().slice(0, 10);
  const idle = calendars.flatMap(({ name: calendar, to, error }): Check[] => {
    const isIdle = error !== undefined || to === undefined || to < yesterday;
    const why = error ?? (to === undefined ? 'has no days' : `has ended, its last day was ${to}`);
    const remedy = `replace it: reveille calendar add ${calendar} <file>`;
    const detail = `${calendar} ${error === undefined ? why : `cannot be used: ${why}`}; alarms fire on all days`;
    return isIdle ? [{ name, status: 'warning', detail, remedy }] : [];
  });
  if (idle.length > 0 || calendars.length === 0) return idle;
  return [{ name, status: 'ok', detail: counted(calendars.length, 'calendar') }];
}

/**
 * @param now the system clock, epoch ms
 * @param server chronosd's clock, when it answers
 */
export function checkClock(now: number, server: ServerTime | undefined): Check {
  const name = 'clock';
  const time = new Date(now).toISOString();
  const remedy = 'set the clock, or enable time synchronization: timedatectl set-ntp true';
  if (new Date(now).getUTCFullYear() < EARLIEST_YEAR)
    return { name, status: 'broken', detail: `it shows ${time}, which is past`, remedy };
  if (!server) return { name, status: 'ok', detail: time };
  const { aheadMs } = server;
  if (Math.abs(aheadMs) < NOTICEABLE_MS) return { name, status: 'ok', detail: `${time}, the same as chronosd's` };
  const seconds = Math.round(Math.abs(aheadMs) / 1000);
  const detail = `chronosd's is ${seconds} s ${aheadMs > 0 ? 'ahead of' : 'behind'} this one (${time})`;
  return { name, status: 'warning', detail, remedy: `${remedy}, on both computers` };
}

const CONNECT_MS = 3000;
const BUSY_MS = 1000;

function postgresUri({ settings }: CliContext): string | undefined {
  return orUndefined(() => parseChronosConfig({ ...STAND_INS, ...settings }))?.CHRONOS_POSTGRES_URI;
}

/** The check that a start makes before it opens a file, and write permission. */
function inspectFile(path: string): void {
  try {
    accessSync(path, constants.R_OK | constants.W_OK);
  } catch (cause) {
    throw new ReveilleError('unavailable', `${path} cannot be used by this user: ${thrownText(cause)}`, { cause });
  }
  inspectDatabase(path, BUSY_MS);
}

function withDatabase<T>(path: string, read: (db: DatabaseSync) => T): T | undefined {
  const db = new DatabaseSync(path, { readOnly: true, timeout: BUSY_MS });
  try {
    return read(db);
  } finally {
    db.close();
  }
}

/** After a move to PostgreSQL, a daemon on the file would not fire its alarms. */
function checkDeparture(path: string): void {
  try {
    withDatabase(path, (db) => refuseTransferred(db, path));
  } catch (error) {
    // A file of an older version has no such table, and was never moved.
    if (error instanceof ReveilleError || !/no such table/.test(String(error))) throw error;
  }
}

/** The existing SQLite files of this installation. */
export function checkStores(context: CliContext): Check[] {
  const name = 'databases';
  const there = DATABASES.map((known) => databasePath(context.settings, known)).filter((path) => existsSync(path));
  const onPostgres = postgresUri(context) !== undefined;
  const wrong = there.flatMap((path): Check[] => {
    try {
      inspectFile(path);
      if (path.endsWith('chronos.db') && !onPostgres) checkDeparture(path);
      return [];
    } catch (error) {
      if (!(error instanceof ReveilleError)) return [{ name, status: 'broken', detail: `${path}: ${String(error)}` }];
      return [brokenBy(name, error)];
    }
  });
  if (wrong.length > 0) return wrong;
  if (there.length === 0) return [{ name, status: 'note', detail: 'none yet; reveille up creates them' }];
  return [{ name, status: 'ok', detail: `${there.length} files, none damaged` }];
}

/** Whether a writable server is reachable; `undefined` when the alarms are in a file. */
export async function checkPostgres(context: CliContext): Promise<Check | undefined> {
  const name = 'PostgreSQL';
  const uri = postgresUri(context);
  if (uri === undefined) return undefined;
  const { default: pg } = await import('pg');
  const failures: string[] = [];
  for (const { name: server, connection } of parseAddress(uri)) {
    const client = new pg.Client({ ...connection, connectionTimeoutMillis: CONNECT_MS, query_timeout: CONNECT_MS });
    client.on('error', () => {});
    try {
      await client.connect();
      const { rows } = await client.query('SELECT pg_is_in_recovery() AS standby');
      if (!rows[0]?.standby) return { name, status: 'ok', detail: `${server} takes writes` };
      failures.push(`${server} is a standby`);
    } catch (error) {
      failures.push(`${server}: ${error instanceof Error ? error.message || error.name : String(error)}`);
    } finally {
      void client.end().catch(() => {});
    }
  }
  const remedy = `start it, or correct CHRONOS_POSTGRES_URI (${withoutPassword(uri)})`;
  return { name, status: 'broken', detail: `no writable server: ${failures.join('; ')}`, remedy };
}
