/**
 * The certificate of a server: read from files, and read again when they change, so that a renewal needs no restart.
 */
import { X509Certificate } from 'node:crypto';
import { readFileSync, statSync } from 'node:fs';
import type { Server } from 'node:https';
import { createSecureContext, getCACertificates, setDefaultCACertificates } from 'node:tls';
import { ReveilleError, thrownText } from '../../wire/errors.ts';
import type { Clock } from '../clock/clock.ts';
import type { Logger } from '../log/log.ts';
import type { TlsFiles } from './listener-settings.ts';

const POLL_INTERVAL_MS = 2000;
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
 * @throws ReveilleError `invalid_request` naming the unreadable file, or both files if they do not match
 */
export function readCertificate({ certificate, key }: TlsFiles): Pair {
  const pair = { cert: read(certificate, 'certificate'), key: read(key, 'key of the certificate') };
  try {
    createSecureContext(pair);
  } catch (cause) {
    const why = thrownText(cause);
    const message = `the certificate ${certificate} and the key ${key} are not a matching pair in PEM (${why})`;
    throw new ReveilleError('invalid_request', message, { cause });
  }
  return pair;
}

/**
 * Trusts the authorities in a file in addition to the defaults of Node.js. It applies to every later TLS connection of
 * this process, for all clients.
 *
 * @param path certificates in PEM
 * @throws ReveilleError `invalid_request` if it contains no certificate
 */
export function trustAuthorities(path: string): void {
  const pem = read(path, 'file of REVEILLE_TLS_CA,').toString('latin1');
  const certificates = pem.match(/-----BEGIN CERTIFICATE-----[^-]+-----END CERTIFICATE-----/g) ?? [];
  try {
    if (certificates.length === 0) throw new Error('it contains none');
    for (const certificate of certificates) new X509Certificate(certificate);
  } catch (cause) {
    const why = thrownText(cause);
    const message = `REVEILLE_TLS_CA must name a file of certificates in PEM (got ${JSON.stringify(path)}: ${why})`;
    throw new ReveilleError('invalid_request', message, { cause });
  }
  setDefaultCACertificates([...getCACertificates('default'), ...certificates]);
}

/** Changes if a file is written or replaced, or if a link gets another target. */
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
    until < clock.now() ? 'the certificate has expired' : 'the certificate expires soon',
  );
}

/**
 * Keeps a server's certificate in step with its files. For wrong files it logs a warning, and the last valid pair stays
 * in use.
 *
 * @returns stops it
 */
export function followCertificate(
  server: Server,
  files: TlsFiles,
  first: Pair,
  { clock, log }: { clock: Clock; log: Logger },
): () => void {
  warnOfExpiry(first, files.certificate, { clock, log });
  let version = versionOf(files);
  const poll = () => {
    const now = versionOf(files);
    if (now === version) return;
    try {
      const pair = readCertificate(files);
      server.setSecureContext(pair);
      version = now;
      log.info({ certificate: files.certificate }, 'the certificate was read again');
      warnOfExpiry(pair, files.certificate, { clock, log });
    } catch (err) {
      // The two files cannot change at the same instant; the next poll may find them complete.
      log.warn({ err }, 'the changed certificate cannot be used; the previous one stays in use');
    }
  };
  const timer = setInterval(poll, POLL_INTERVAL_MS).unref();
  return () => clearInterval(timer);
}
