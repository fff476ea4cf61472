/**
 * Keeps web pages away from a daemon that listens on loopback. A page can reach 127.0.0.1 by cross-site requests, which
 * have `Origin`. It can also use DNS rebinding: then `Host` has the page's own host.
 */
import { ReveilleError } from '../../wire/errors.ts';

const HOST = /^(\[[0-9a-f:.]+\]|[a-z0-9._-]+)(?::\d{1,5})?$/;
const LOOPBACK = ['127.0.0.1', 'localhost', '[::1]'];

/** Brackets `::1` for a URL or a `Host` header. */
export function bracketed(host: string): string {
  return host.includes(':') && !host.startsWith('[') ? `[${host}]` : host;
}

/**
 * The check of `Host`. Loopback names, the bound host and the configured names pass on any port. A configured name with
 * a port passes only with that port.
 */
export function hostCheck(boundHost: string, allowedHosts: readonly string[]): (host: string | undefined) => void {
  const allowed = new Set([...LOOPBACK, bracketed(boundHost), ...allowedHosts].map((name) => name.toLowerCase()));
  return (header) => {
    const host = header?.toLowerCase() ?? '';
    const name = HOST.exec(host)?.[1];
    if (name !== undefined && (allowed.has(name) || allowed.has(host))) return;
    const got = header === undefined ? 'nothing' : JSON.stringify(header.slice(0, 100));
    throw new ReveilleError('forbidden', `the Host header must name this server (got ${got})`);
  };
}

/** The check of `Origin`: an absent one passes, any other must be listed exactly. `null` never passes. */
export function originCheck(allowedOrigins: readonly string[]): (origin: string | undefined) => void {
  const allowed = new Set(allowedOrigins);
  return (origin) => {
    if (origin === undefined || (origin !== 'null' && allowed.has(origin))) return;
    const message = `requests from web pages of ${JSON.stringify(origin.slice(0, 100))} are not accepted here`;
    throw new ReveilleError('forbidden', message);
  };
}
