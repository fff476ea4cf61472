/**
 * What programs that we start get of our own environment: an allow-list, so that no secret of ours leaks into them, and
 * nothing that says where secrets lie.
 */
import { delimiter, isAbsolute, relative } from 'node:path';

/** What marks a process as started by a router; its value is the `spawn_id` of the record. */
export const SPAWN_ID_VARIABLE = 'REVEILLE_SPAWN_ID';

/** The conversation of the turn that a program is run for; `alarm_set` defaults to it. */
export const CONVERSATION_VARIABLE = 'REVEILLE_CONVERSATION_ID';

/** What a program needs to find its files, speak its language and reach the network. */
const INHERITED = new Set([
  'PATH',
  'HOME',
  'USER',
  'LOGNAME',
  'SHELL',
  'TERM',
  'LANG',
  'TZ',
  'TMPDIR',
  'XDG_CACHE_HOME',
  'REVEILLE_LOG',
  'NODE_EXTRA_CA_CERTS',
  'REVEILLE_TLS_CA',
  'SSL_CERT_FILE',
  'SSL_CERT_DIR',
  'HTTP_PROXY',
  'HTTPS_PROXY',
  'NO_PROXY',
]);

/** Windows programs do not start without most of these. */
const INHERITED_ON_WINDOWS = new Set([
  'APPDATA',
  'COMSPEC',
  'LOCALAPPDATA',
  'PATHEXT',
  'PROGRAMDATA',
  'PROGRAMFILES',
  'SYSTEMDRIVE',
  'SYSTEMROOT',
  'TEMP',
  'TMP',
  'USERNAME',
  'USERPROFILE',
  'WINDIR',
]);

/**
 * Our own variables that no program we start may be given, by whatever way: secrets of daemons, and where secrets lie.
 */
const WITHHELD = new Set([
  'REVEILLE_HOME',
  'REVEILLE_TOKEN',
  'CHRONOS_ADMIN_TOKEN',
  'CHRONOS_AGENT_AUTH_SECRET',
  'CHRONOS_WAKE_TOKEN',
  'CHRONOS_POSTGRES_URI',
  'EXECUTOR_ADMIN_TOKEN',
  'EXECUTOR_CHRONOS_TOKEN',
  'EXECUTOR_NOTIFY_SECRET',
  'EXECUTOR_TOKEN',
  'ROUTER_ADMIN_TOKEN',
  'ROUTER_METRICS_TOKEN',
  'ROUTER_WAKE_TOKEN',
]);
/** What an agent daemon holds for itself, and its MCP servers must not have. */
const WITHHELD_FROM_SERVERS = new Set(['NEO_DAEMON_TOKEN', 'NEO_EXECUTOR_TOKEN', 'REVEILLE_MACHINE_TOKEN']);

/** Whether a program that we start must never be given this variable. */
export function isWithheld(name: string): boolean {
  return WITHHELD.has(name) || name.startsWith('REVEILLE_APPROVER_');
}

/** Whether an MCP server must never be given this variable. */
export function isWithheldFromServers(name: string): boolean {
  return isWithheld(name) || WITHHELD_FROM_SERVERS.has(name);
}

/** Variables of ours whose values are folders with secrets in them. */
const SECRET_FOLDERS = ['REVEILLE_HOME', 'REVEILLE_APPROVER_DIR'] as const;

/** Whether a path is a folder, or lies below it. */
function isWithin(path: string, folder: string): boolean {
  const way = relative(folder, path);
  return isAbsolute(path) && !way.startsWith('..') && !isAbsolute(way);
}

function isInherited(name: string): boolean {
  if (name.startsWith('LC_')) return true;
  const upper = name.toUpperCase();
  if (INHERITED_ON_WINDOWS.has(upper)) return true;
  // Proxies are spelt in lower case as well; on Windows names have no case.
  return INHERITED.has(name) || (/_proxy$/.test(name) && INHERITED.has(upper)) || upper === 'PATH';
}

/**
 * Picks what a child gets.
 *
 * @param own our own variables
 */
export function inheritedVariables(own: Readonly<Record<string, string | undefined>>): Record<string, string> {
  const secret = SECRET_FOLDERS.flatMap((name) => own[name] || []);
  const leadsThere = (path: string) => secret.some((folder) => isWithin(path, folder));
  const inherited: Record<string, string> = {};
  for (const [name, value] of Object.entries(own)) {
    // Shells export functions under values that begin like this; they are code.
    if (value === undefined || !isInherited(name) || value.startsWith('()')) continue;
    if (name === 'PATH')
      inherited[name] = value
        .split(delimiter)
        .filter((folder) => !leadsThere(folder))
        .join(delimiter);
    // An installation may live in a home of its own, where everything lies below the same folder.
    else if (name === 'HOME' || !leadsThere(value)) inherited[name] = value;
  }
  return inherited;
}
