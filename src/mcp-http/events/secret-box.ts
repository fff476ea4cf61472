/** Seals the secrets of subscriptions with AES-256-GCM. The key is in a file beside the database. */
import { createCipheriv, createDecipheriv, randomBytes } from 'node:crypto';
import { readPrivateFile, writePrivateFile } from '../../kit/identity/private-file.ts';
import { ReveilleError } from '../../wire/errors.ts';

const KEY = /^[0-9a-f]{64}$/;
const [IV_BYTES, TAG_BYTES] = [12, 16];

/** @throws ReveilleError `unavailable` when the file is not such a key, or cannot be written */
function loadOrCreate(path: string): Buffer {
  const existing = readPrivateFile(path)?.trim();
  if (existing === undefined) {
    writePrivateFile(path, `${randomBytes(32).toString('hex')}\n`);
    return loadOrCreate(path);
  }
  if (KEY.test(existing)) return Buffer.from(existing, 'hex');
  throw new ReveilleError('unavailable', `${path} must contain a key of 64 hex digits; restore it from a backup`, {
    retryable: false,
  });
}

export class SecretBox {
  readonly #key: Buffer;

  /** @throws ReveilleError as {@link readPrivateFile} and {@link writePrivateFile} */
  constructor(path: string) {
    this.#key = loadOrCreate(path);
  }

  /** @param about the record of the secret: it opens only with the same value */
  seal(secret: string, about: string): string {
    const iv = randomBytes(IV_BYTES);
    const cipher = createCipheriv('aes-256-gcm', this.#key, iv).setAAD(Buffer.from(about));
    return Buffer.concat([iv, cipher.update(secret, 'utf8'), cipher.final(), cipher.getAuthTag()]).toString('base64');
  }

  /** @returns `undefined` if the key or the record differs, or the sealed text was changed */
  open(sealed: string, about: string): string | undefined {
    const bytes = Buffer.from(sealed, 'base64');
    if (bytes.length <= IV_BYTES + TAG_BYTES) return undefined;
    const opened = createDecipheriv('aes-256-gcm', this.#key, bytes.subarray(0, IV_BYTES));
    opened.setAAD(Buffer.from(about)).setAuthTag(bytes.subarray(-TAG_BYTES));
    try {
      return opened.update(bytes.subarray(IV_BYTES, -TAG_BYTES), undefined, 'utf8') + opened.final('utf8');
    } catch {
      return undefined;
    }
  }
}
