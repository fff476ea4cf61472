/** Settings of a daemon's listener: the same for every daemon, each under its own prefix (docs/reference/settings.md). */
import { z } from 'zod';
import { parsePrefixed, prefixed, type Settings, stopStart, wholeNumber } from '../../wire/settings.ts';

/** Paths of PEM files. They are read again when they change. */
export type TlsFiles = { readonly certificate: string; readonly key: string };

export type ListenerSettings = {
  /** Without it, the daemon speaks plain HTTP. */
  readonly tls: TlsFiles | undefined;
  readonly connections: number;
  readonly connectionsPerAddress: number;
};

const IN_FRONT = 'terminated-in-front';

const shape = {
  /** Path of the listener's certificate in PEM; read again when it changes. */
  TLS_CERT: z.string().optional(),
  /** Path of the certificate's key. */
  TLS_KEY: z.string().optional(),
  /**
   * Declares that a proxy or a private network in front of the listener encrypts. Needed if other machines reach the
   * listener and it has no certificate.
   */
  TLS: z.enum([IN_FRONT], { error: `must be ${IN_FRONT} or unset` }).optional(),
  /** Maximum of open connections. */
  MAX_CONNECTIONS: wholeNumber(16, 1_000_000).default(4096),
  /** Maximum of open connections from one address. */
  MAX_CONNECTIONS_PER_ADDRESS: wholeNumber(1, 1_000_000).default(1024),
};
/** The variables as members of a daemon's schema. */
export const listenerSettings = <Prefix extends string>(prefix: Prefix) => prefixed(prefix, shape);

const LOOPBACK = /^(localhost|127\.\d+\.\d+\.\d+|\[?::1\]?)$/i;

/** Whether only this machine can reach a listener on `host`. */
export const isLoopback = (host: string): boolean => LOOPBACK.test(host);

/**
 * Parses a daemon's listener settings.
 *
 * @param prefix of the variables: `CHRONOS`, `ROUTER`, `EXECUTOR`, `NEO`
 * @param host the address that it listens on
 * @throws ReveilleError `invalid_request` if certificate or key is missing, or if tokens would be sent unencrypted to
 * other machines
 */
export function parseListenerSettings(prefix: string, host: string, settings: Settings): ListenerSettings {
  const read = parsePrefixed(prefix, shape, settings);
  const [certName, keyName] = [`${prefix}_TLS_CERT`, `${prefix}_TLS_KEY`];
  const { TLS_CERT: certificate, TLS_KEY: key, TLS: word } = read;
  if ((certificate === undefined) !== (key === undefined)) {
    const [given, other] = certificate === undefined ? [keyName, certName] : [certName, keyName];
    stopStart(`${other} is not set, but ${given} is: TLS needs a certificate and its key`);
  }
  const tls = certificate === undefined || key === undefined ? undefined : { certificate, key };
  if (tls !== undefined && word !== undefined) {
    stopStart(
      `${prefix}_TLS=${IN_FRONT} says that another program terminates TLS, but ${certName} is set: remove one of the two`,
    );
  }
  if (tls === undefined && word === undefined && !isLoopback(host)) {
    stopStart(
      `${prefix}_HOST is ${JSON.stringify(host)}, which other machines can reach; without TLS, every token would be sent unencrypted. ` +
        `Set ${certName} and ${keyName} to the files of a certificate; or set ${prefix}_TLS=${IN_FRONT} if a proxy or a private network ` +
        `in front of it encrypts; or set ${prefix}_HOST=127.0.0.1`,
    );
  }
  return {
    tls,
    connections: read.MAX_CONNECTIONS,
    connectionsPerAddress: Math.min(read.MAX_CONNECTIONS_PER_ADDRESS, read.MAX_CONNECTIONS),
  };
}

/** Splits a list of names at its commas. */
export const hostNames = (text: string | undefined): string[] =>
  (text ?? '')
    .split(',')
    .map((name) => name.trim())
    .filter((name) => name !== '');

/**
 * Refuses to start if one secret is used for two purposes: a holder of one could use it for the other.
 *
 * @throws ReveilleError `invalid_request` naming the variables, never their value
 */
export function refuseSharedSecrets(secrets: Readonly<Record<string, string | undefined>>): void {
  const first = new Map<string, string>();
  for (const [name, secret] of Object.entries(secrets)) {
    if (secret === undefined) continue;
    const other = first.get(secret);
    if (other !== undefined) stopStart(`${other} and ${name} have the same value; set a different secret for each`);
    first.set(secret, name);
  }
}

type TokenSettings = { token: string | undefined; isDev: boolean; host: string };

/**
 * Allows a missing token only while developing, on a loopback address.
 *
 * @param prefix of the variables: `NEO`, `EXECUTOR`
 * @throws ReveilleError `invalid_request`
 */
export function requireToken(name: string, prefix: string, given: TokenSettings): void {
  if (given.token !== undefined) return;
  if (!given.isDev)
    stopStart(`${name} is not set: give a secret of at least 16 characters, or ${prefix}_DEV=1 while developing`);
  if (!isLoopback(given.host)) {
    const got = JSON.stringify(given.host);
    stopStart(`${name} is not set: without it ${prefix}_HOST must be a loopback address (got ${got})`);
  }
}
