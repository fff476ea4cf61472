/**
 * The settings of a daemon's listener: the same ones for every daemon, each under its own prefix (docs/contracts.md
 * §11).
 */
import { z } from 'zod';
import { ReveilleError } from '../../wire/errors.ts';
import { parseSettings, type Settings, wholeNumber } from '../../wire/settings.ts';

/** Files in PEM. They are read again when they change. */
export type TlsFiles = { readonly certificate: string; readonly key: string };

export type Door = {
  /** Without it the daemon speaks plain HTTP. */
  readonly tls: TlsFiles | undefined;
  readonly connections: number;
  readonly connectionsPerAddress: number;
};

const IN_FRONT = 'terminated-in-front';

const shape = {
  /** The file of the certificate that the listener serves, in PEM; read again when it changes. */
  TLS_CERT: z.string().optional(),
  /** The file of its key. */
  TLS_KEY: z.string().optional(),
  /**
   * Says that a proxy or a private network in front encrypts, where the listener is reached from elsewhere without a
   * certificate.
   */
  TLS: z.enum([IN_FRONT], { error: `must be ${IN_FRONT}, or not be set` }).optional(),
  /** Connections at a time. */
  MAX_CONNECTIONS: wholeNumber(16, 1_000_000).default(4096),
  /** Connections at a time from one address. */
  MAX_CONNECTIONS_PER_ADDRESS: wholeNumber(1, 1_000_000).default(1024),
};
type Shape<Prefix extends string> = {
  [Name in keyof typeof shape as `${Prefix}_${Name}`]: (typeof shape)[Name];
};

/** The variables as members of a daemon's own schema, so that all that is wrong is told at once. */
export function doorSettings<Prefix extends string>(prefix: Prefix): Shape<Prefix> {
  const members = Object.entries(shape).map(([name, schema]) => [`${prefix}_${name}`, schema]);
  return Object.fromEntries(members) as Shape<Prefix>;
}

const LOOPBACK = /^(localhost|127\.\d+\.\d+\.\d+|\[?::1\]?)$/i;

/** Whether nobody but this machine reaches what listens on `host`. */
export const isLoopback = (host: string): boolean => LOOPBACK.test(host);

function stop(message: string): never {
  throw new ReveilleError('invalid_request', message);
}

/**
 * How a daemon's listener is to be.
 *
 * @param prefix of the variables: `CHRONOS`, `ROUTER`, `EXECUTOR`, `NEO`
 * @param host where it listens
 * @throws ReveilleError `invalid_request` for half a certificate, and when tokens would travel in the clear beyond this
 *   machine
 */
export function parseDoor(prefix: string, host: string, settings: Settings): Door {
  const read = parseSettings(z.object(shape), unprefixed(prefix, settings));
  const [certName, keyName] = [`${prefix}_TLS_CERT`, `${prefix}_TLS_KEY`];
  const { TLS_CERT: certificate, TLS_KEY: key, TLS: word } = read;
  if ((certificate === undefined) !== (key === undefined)) {
    const [given, other] = certificate === undefined ? [keyName, certName] : [certName, keyName];
    stop(`${other} is not set, but ${given} is: TLS needs a certificate and its key`);
  }
  const tls = certificate === undefined || key === undefined ? undefined : { certificate, key };
  if (tls !== undefined && word !== undefined) {
    stop(
      `${prefix}_TLS=${IN_FRONT} says that something else has the certificate, but ${certName} is set: take one away`,
    );
  }
  if (tls === undefined && word === undefined && !isLoopback(host)) {
    stop(
      `${prefix}_HOST is ${JSON.stringify(host)}, which other machines reach, and without TLS every token would travel there in the clear. ` +
        `Set ${certName} and ${keyName} to the files of a certificate; or set ${prefix}_TLS=${IN_FRONT} when a proxy or a private network ` +
        `before it encrypts; or set ${prefix}_HOST=127.0.0.1`,
    );
  }
  return {
    tls,
    connections: read.MAX_CONNECTIONS,
    connectionsPerAddress: Math.min(read.MAX_CONNECTIONS_PER_ADDRESS, read.MAX_CONNECTIONS),
  };
}

/** Names with commas between them. */
export const hostNames = (text: string | undefined): string[] =>
  (text ?? '')
    .split(',')
    .map((name) => name.trim())
    .filter((name) => name !== '');

const unprefixed = (prefix: string, settings: Settings): Settings =>
  Object.fromEntries(Object.keys(shape).map((name) => [name, settings[`${prefix}_${name}`]]));

/**
 * Stops the start when one secret stands in two places: whoever holds it for one purpose could use it for the other.
 *
 * @throws ReveilleError `invalid_request` naming the variables, never their value
 */
export function refuseSharedSecrets(secrets: Readonly<Record<string, string | undefined>>): void {
  const first = new Map<string, string>();
  for (const [name, secret] of Object.entries(secrets)) {
    if (secret === undefined) continue;
    const other = first.get(secret);
    if (other !== undefined) stop(`${other} and ${name} are the same secret; give each one of its own`);
    first.set(secret, name);
  }
}
