/** Certificates made for a test, by the openssl of the machine. */
import { execFileSync } from 'node:child_process';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';

export type Certificate = { readonly certificate: string; readonly key: string };

const KEY = ['-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:P-256', '-nodes'];

const openssl = (...words: string[]) => execFileSync('openssl', words, { stdio: ['ignore', 'pipe', 'pipe'] });

/** An authority of one's own; `file` is what its clients trust. */
export function makeAuthority(folder: string, name: string) {
  const [file, key] = [join(folder, `${name}.pem`), join(folder, `${name}.key`)];
  openssl('req', '-x509', ...KEY, '-keyout', key, '-out', file, '-subj', `/CN=${name}`, '-days', '2');
  let made = 0;
  return {
    file,
    /** For this machine's loopback names. @param days negative: it has ended so long ago */
    issue(days = 2): Certificate {
      const path = (kind: string) => join(folder, `${name}-${made}.${kind}`);
      made++;
      writeFileSync(path('ext'), 'subjectAltName=IP:127.0.0.1,DNS:localhost\n');
      openssl('req', ...KEY, '-keyout', path('key'), '-out', path('csr'), '-subj', `/CN=${name} ${made}`);
      const issuer = ['-CA', file, '-CAkey', key, '-set_serial', String(made)];
      openssl(
        ...['x509', '-req', '-in', path('csr'), '-extfile', path('ext'), '-out', path('pem')],
        ...issuer,
        '-days',
        String(days),
      );
      return { certificate: path('pem'), key: path('key') };
    },
  };
}
