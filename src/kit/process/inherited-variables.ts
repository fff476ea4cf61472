/**
 * The environment of started programs: an allow-list of this process's variables, without secrets and without paths of
 * secrets.
 */
import { delimiter, isAbsolute, relative } from 'node:path';
import { isSecretName } from '../../wire/settings.ts';

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

/**
 * Secrets of daemons, and paths of secrets, by the names of their settings. `settings-names.test.ts` fails for a setting
 * of a secret type that this rule misses. `REVEILLE_NEO_` begins what `reveille up` holds for its own Neo.
 */
const OF_DAEMONS = /^(?:CHRONOS|EXECUTOR|FLY|NOTIFY|REVEILLE(?!_NEO_)|ROUTER)_/;
const OF_NEO = /^NEO_/;
/** Its own token is the one secret that a machine gets from the router. */
const OF_MACHINE = 'REVEILLE_MACHINE_TOKEN';
/** Credentials that are for servers of the shipped manifests. */
const FOR_SERVERS = new Set(['EXECUTOR_GIT_TOKEN', 'NEO_SEARCH_KEY']);

const isSecretOfDaemons = (name: string): boolean =>
  name === 'REVEILLE_HOME' || name.startsWith('REVEILLE_APPROVER_') || (OF_DAEMONS.test(name) && isSecretName(name));

/** Whether no started program may get this variable. */
export function isWithheld(name: string): boolean {
  return isSecretOfDaemons(name) && name !== OF_MACHINE;
}

/** Whether no MCP server may get this variable. */
export function isWithheldFromServers(name: string): boolean {
  return (isSecretOfDaemons(name) || (OF_NEO.test(name) && isSecretName(name))) && !FOR_SERVERS.has(name);
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
