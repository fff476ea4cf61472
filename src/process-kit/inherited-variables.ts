/** What programs that we start get of our own environment: an allow-list, so that no secret of ours leaks into them. */

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
  'XDG_RUNTIME_DIR',
  'XDG_CACHE_HOME',
  'REVEILLE_HOME',
  'REVEILLE_LOG',
  'NODE_EXTRA_CA_CERTS',
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
  const inherited: Record<string, string> = {};
  for (const [name, value] of Object.entries(own)) {
    // Shells export functions under values that begin like this; they are code.
    if (value !== undefined && isInherited(name) && !value.startsWith('()')) inherited[name] = value;
  }
  return inherited;
}
