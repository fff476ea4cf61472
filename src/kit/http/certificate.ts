/**
 * The certificate of a server: read from files, and read again when they change, so that renewing it needs no restart.
 */
import { X509Certificate } from 'node:crypto';
import { readFileSync, statSync } from 'node:fs';
import type { Server } from 'node:https';
import { createSecureContext, getCACertificates, setDefaultCACertificates } from 'node:tls';
import { ReveilleError } from '../../wire/errors.ts';
import type { Clock } from '../clock/clock.ts';
import type { Logger } from '../log/log.ts';
import type { TlsFiles } from './door.ts';

const LOOK_EVERY_MS = 2000;
const WARN_BEFORE_MS = 14 * 24 * 60 * 60 * 1000;

type Pair = { cert: Buffer; key: Buffer };

function read(path: string, what: string): Buffer {
  try {
    return readFileSync(path);
  } catch (cause) {
    const why = (cause as NodeJS.ErrnoException).code ?? String(cause);
    throw new ReveilleError('invalid_request', `the ${what} ${path} cannot be read (${why})`, { cause });
  }
}

/**
 * The certificate with its chain, and its key.
 *
 * @throws ReveilleError `invalid_request` naming the file that cannot be read, or both when they do not belong together
 */
export function readCertificate({ certificate, key }: TlsFiles): Pair {
  const pair = { cert: read(certificate, 'certificate'), key: read(key, 'key of the certificate') };
  try {
    createSecureContext(pair);
  } catch (cause) {
    const why = cause instanceof Error ? cause.message : String(cause);
    const message = `the certificate ${certificate} and the key ${key} are no pair in PEM that belongs together (${why})`;
    throw new ReveilleError('invalid_request', message, { cause });
  }
  return pair;
}

/**
 * Trusts the authorities in a file besides those that Node.js trusts, in every TLS connection that this process makes
 * from now on, whichever client makes it.
 *
 * @param path certificates in PEM
 * @throws ReveilleError `invalid_request` when there is no certificate in it
 */
export function trustAuthorities(path: string): void {
  const pem = read(path, 'file of REVEILLE_TLS_CA,').toString('latin1');
  const certificates = pem.match(/-----BEGIN CERTIFICATE-----[^-]+-----END CERTIFICATE-----/g) ?? [];
  try {
    if (certificates.length === 0) throw new Error('there is none in it');
    for (const certificate of certificates) new X509Certificate(certificate);
  } catch (cause) {
    const why = cause instanceof Error ? cause.message : String(cause);
    const message = `REVEILLE_TLS_CA must name a file of certificates in PEM (got ${JSON.stringify(path)}: ${why})`;
    throw new ReveilleError('invalid_request', message, { cause });
  }
  setDefaultCACertificates([...getCACertificates('default'), ...certificates]);
}

/** Changes when a file is written, replaced, or when a link leads to another one. */
function versionOf({ certificate, key }: TlsFiles): string {
  return [certificate, key]
    .map((path) => statSync(path, { throwIfNoEntry: false }))
    .map((entry) => (entry ? `${entry.dev}.${entry.ino}.${entry.size}.${entry.mtimeMs}` : 'none'))
    .join(' ');
}

function warnOfExpiry({ cert }: Pair, path: string, { clock, log }: { clock: Clock; log: Logger }): void {
  const until = Date.parse(new X509Certificate(cert).validTo);
  if (until - clock.now() > WARN_BEFORE_MS) return;
  const ends = new Date(until).toISOString();
  log.warn(
    { certificate: path, until: ends },
    until < clock.now() ? 'the certificate has expired' : 'the certificate ends soon',
  );
}

/**
 * Keeps a server's certificate as it stands in its files. Files that are wrong are told in the log, and the last good
 * pair serves on.
 *
 * @returns ends it
 */
export function followCertificate(
  server: Server,
  files: TlsFiles,
  first: Pair,
  { clock, log }: { clock: Clock; log: Logger },
): () => void {
  warnOfExpiry(first, files.certificate, { clock, log });
  let version = versionOf(files);
  const look = () => {
    const now = versionOf(files);
    if (now === version) return;
    try {
      const pair = readCertificate(files);
      server.setSecureContext(pair);
      version = now;
      log.info({ certificate: files.certificate }, 'the certificate was read again');
      warnOfExpiry(pair, files.certificate, { clock, log });
    } catch (err) {
      // Both files cannot change at once; the next look may find them complete.
      log.warn({ err }, 'the changed certificate cannot be used; the last one serves on');
    }
  };
  const looking = setInterval(look, LOOK_EVERY_MS).unref();
  return () => clearInterval(looking);
}
