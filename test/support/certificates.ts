/** Certificates made for a test, within this process, without other programs. */
import 'reflect-metadata';
import { KeyObject, webcrypto } from 'node:crypto';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import {
  AuthorityKeyIdentifierExtension,
  BasicConstraintsExtension,
  SubjectAlternativeNameExtension,
  SubjectKeyIdentifierExtension,
  type X509Certificate,
  X509CertificateGenerator,
} from '@peculiar/x509';

/** The files of a certificate and of its key, in PEM. */
export type Certificate = { readonly certificate: string; readonly key: string };

const DAY_MS = 86_400_000;
const ALGORITHM = { name: 'ECDSA', namedCurve: 'P-256', hash: 'SHA-256' };

const newKeys = () => webcrypto.subtle.generateKey(ALGORITHM, true, ['sign', 'verify']);

function write(base: string, certificate: X509Certificate, { privateKey }: webcrypto.CryptoKeyPair): Certificate {
  const files = { certificate: `${base}.pem`, key: `${base}.key` };
  writeFileSync(files.certificate, `${certificate.toString('pem')}\n`);
  writeFileSync(files.key, KeyObject.from(privateKey).export({ type: 'pkcs8', format: 'pem' }));
  return files;
}

/** A test's own authority; its clients trust `file`. */
export async function makeAuthority(folder: string, name: string) {
  const keys = await newKeys();
  const base = { signingAlgorithm: ALGORITHM, notBefore: new Date(Date.now() - 2 * DAY_MS) };
  const own = await X509CertificateGenerator.createSelfSigned({
    ...{ ...base, name: `CN=${name}`, keys, notAfter: new Date(Date.now() + 2 * DAY_MS) },
    extensions: [
      new BasicConstraintsExtension(true, undefined, true),
      await SubjectKeyIdentifierExtension.create(keys.publicKey),
    ],
  });
  const { certificate: file } = write(join(folder, name), own, keys);
  let issued = 0;
  return {
    file,
    /** For this computer's loopback names. @param days until it expires; negative: days since it expired */
    async issue(days = 2): Promise<Certificate> {
      const serial = ++issued;
      const ownKeys = await newKeys();
      const certificate = await X509CertificateGenerator.create({
        ...{ ...base, subject: `CN=${name} ${serial}`, issuer: own.subject, publicKey: ownKeys.publicKey },
        ...{ signingKey: keys.privateKey, serialNumber: serial.toString(16).padStart(2, '0') },
        notAfter: new Date(Date.now() + days * DAY_MS),
        extensions: [
          // Distinguishes the authorities of two tests, which may have one name.
          await AuthorityKeyIdentifierExtension.create(keys.publicKey),
          new SubjectAlternativeNameExtension([
            { type: 'ip', value: '127.0.0.1' },
            { type: 'dns', value: 'localhost' },
          ]),
        ],
      });
      return write(join(folder, `${name}-${serial - 1}`), certificate, ownKeys);
    },
  };
}
