/**
 * The environment of started programs: an allow-list of this process's variables, without secrets and without paths of
 * secrets.
 */
import { delimiter, isAbsolute, relative } from 'node:path';

/** Marks a process that a router started; its value is the record's `spawn_id`. */
export const SPAWN_ID_VARIABLE = 'REVEILLE_SPAWN_ID';

/** The conversation of the turn that runs a program; the default of `alarm_set`. */
export const CONVERSATION_VARIABLE = 'REVEILLE_CONVERSATION_ID';

/** Variables for a program's files, language and network. */
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

/** Most Windows programs need these to start. */
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

/** Variables that no started program may get in any way: secrets of daemons, and paths of secrets. */
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
/** Secrets of an agent daemon that its MCP servers must not get. */
const WITHHELD_FROM_SERVERS = new Set(['NEO_DAEMON_TOKEN', 'NEO_EXECUTOR_TOKEN', 'REVEILLE_MACHINE_TOKEN']);

/** Whether no started program may get this variable. */
export function isWithheld(name: string): boolean {
  return WITHHELD.has(name) || name.startsWith('REVEILLE_APPROVER_');
}

/** Whether no MCP server may get this variable. */
export function isWithheldFromServers(name: string): boolean {
  return isWithheld(name) || WITHHELD_FROM_SERVERS.has(name);
}

/** Variables whose values are folders with secrets. */
const SECRET_FOLDERS = ['REVEILLE_HOME', 'REVEILLE_APPROVER_DIR'] as const;

/** Whether a path is a folder or is below it. */
function isWithin(path: string, folder: string): boolean {
  const relativePath = relative(folder, path);
  return isAbsolute(path) && !relativePath.startsWith('..') && !isAbsolute(relativePath);
}

function isInherited(name: string): boolean {
  if (name.startsWith('LC_')) return true;
  const upper = name.toUpperCase();
  if (INHERITED_ON_WINDOWS.has(upper)) return true;
  // Proxy variables also exist in lower case; on Windows, names are case-insensitive.
  return INHERITED.has(name) || (/_proxy$/.test(name) && INHERITED.has(upper)) || upper === 'PATH';
}

/** Selects the variables of a child. @param own this process's variables */
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
    // An installation may have its own home, with everything below one folder.
    else if (name === 'HOME' || !leadsThere(value)) inherited[name] = value;
  }
  return inherited;
}
