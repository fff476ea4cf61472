/**
 * The keys of the authorization server, in one private file: they sign access tokens and cookies, and seal the
 * database. A signing key is published a day before its first use, so that every resource server has read it, and stays
 * published a day after its last one.
 */
import { generateKeyPairSync, randomBytes } from 'node:crypto';
import { z } from 'zod';
import { readPrivateFile, replacePrivateFile, writePrivateFile } from '../kit/identity/private-file.ts';
import { randomSecret } from '../kit/identity/secrets.ts';
import { ReveilleError } from '../wire/errors.ts';

const DAY_MS = 86_400_000;
/** A new key is made when the newest one has this age. */
const ROTATE_MS = 30 * DAY_MS;
const AHEAD_MS = DAY_MS;
const KEPT_MS = DAY_MS;

/** A private key for ES256 as JWK (RFC 7517), with its time of creation in epoch milliseconds. */
const signingKeySchema = z.object({
  created_at: z.int(),
  jwk: z.object({
    ...{ kty: z.literal('EC'), crv: z.literal('P-256'), alg: z.literal('ES256'), use: z.literal('sig') },
    ...{ kid: z.string().min(1), x: z.string(), y: z.string(), d: z.string() },
  }),
});
const keyFileSchema = z.object({
  signing: z.array(signingKeySchema).min(1),
  cookies: z.array(z.string().min(32)).min(1),
  storage: z.string().min(32),
});

export type SigningKey = z.output<typeof signingKeySchema>;
type KeyFile = z.output<typeof keyFileSchema>;

function makeSigningKey(now: number): SigningKey {
  const { privateKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' });
  const { x = '', y = '', d = '' } = privateKey.export({ format: 'jwk' });
  const kid = randomBytes(8).toString('hex');
  return { created_at: now, jwk: { kty: 'EC', crv: 'P-256', alg: 'ES256', use: 'sig', kid, x, y, d } };
}

/** The signing key: the newest one that has been published for a day, else the oldest. */
export function signingKeyAt(keys: readonly SigningKey[], now: number): SigningKey {
  return keys.findLast(({ created_at }) => now - created_at >= AHEAD_MS) ?? keys[0]!;
}

/** The keys at an instant, oldest first. Adds a key when one is due, and removes keys that no valid token can have. */
export function rotated(
  keys: readonly SigningKey[],
  now: number,
  make: (now: number) => SigningKey,
): readonly SigningKey[] {
  const newest = keys.at(-1);
  const all = newest === undefined || now - newest.created_at >= ROTATE_MS ? [...keys, make(now)] : keys;
  const current = signingKeyAt(all, now);
  const isOver = now - current.created_at >= AHEAD_MS + KEPT_MS;
  return isOver ? all.slice(all.indexOf(current)) : all;
}

export class OauthKeys {
  readonly #path: string;
  #file: KeyFile;

  /** @throws ReveilleError `forbidden` if others can read the file, `invalid_request` if it is damaged */
  constructor(path: string, now: number) {
    this.#path = path;
    this.#file = this.#load() ?? this.#make(now);
  }

  #load(): KeyFile | undefined {
    const text = readPrivateFile(this.#path);
    if (text === undefined) return undefined;
    try {
      return keyFileSchema.parse(JSON.parse(text));
    } catch (cause) {
      const message = `${this.#path} is damaged and was not changed; restore it from a backup, or move it away: then every client has to connect again`;
      throw new ReveilleError('invalid_request', message, { cause });
    }
  }

  #make(now: number): KeyFile {
    const file = { signing: [makeSigningKey(now)], cookies: [randomSecret()], storage: randomSecret() };
    writePrivateFile(this.#path, `${JSON.stringify(file)}\n`);
    return file;
  }

  /** Signs cookies and forms. */
  get cookieSecret(): string {
    return this.#file.cookies[0]!;
  }

  /** Seals the database. */
  get storageSecret(): string {
    return this.#file.storage;
  }

  /** The signing keys, the current one first. A due rotation happens now. */
  at(now: number): readonly SigningKey[] {
    const keys = rotated(this.#file.signing, now, makeSigningKey);
    if (keys !== this.#file.signing) {
      const file = { ...this.#file, signing: [...keys] };
      replacePrivateFile(this.#path, `${JSON.stringify(file)}\n`);
      this.#file = file;
    }
    const current = signingKeyAt(keys, now);
    return [current, ...keys.filter((key) => key !== current)];
  }

  /** The public keys. */
  published(now: number): { readonly keys: readonly object[] } {
    return { keys: this.at(now).map(({ jwk: { d: _, ...open } }) => open) };
  }
}
